//! Assigns the names under which a script finds servers and tools.
//!
//! A name that is an identifier stays unchanged. Any other name is converted to an identifier; if
//! that name is taken, a short hash of the wire name is appended. The result depends on the set of
//! names, never on their order.

use std::collections::{BTreeMap, BTreeSet};

use codegen_shared::identifiers::{continues_identifier, is_unsafe_member, starts_identifier};

pub use codegen_shared::identifiers::is_identifier;
pub(crate) use codegen_shared::identifiers::is_known_global;

use crate::canonical::Digest;

/// Returns distinct member names, one for each wire name of a server. A repeated wire name gets the
/// same member again.
#[must_use]
pub fn members(wire_names: &[&str]) -> Vec<String> {
    assign(wire_names, is_unsafe_member)
}

/// Returns distinct names of the globals for the servers.
#[must_use]
pub fn globals(server_names: &[&str]) -> Vec<String> {
    assign(server_names, is_known_global)
}

fn assign(names: &[&str], is_reserved: fn(&str) -> bool) -> Vec<String> {
    let distinct: BTreeSet<&str> = names.iter().copied().collect();
    let is_free = |name: &&str| is_identifier(name) && !is_reserved(name);
    let (exact, awkward): (Vec<&str>, Vec<&str>) = distinct.into_iter().partition(is_free);
    let mut chosen: BTreeMap<&str, String> =
        exact.iter().map(|it| (*it, (*it).to_owned())).collect();
    let mut taken: BTreeSet<String> = chosen.values().cloned().collect();

    let mut by_base: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for name in awkward {
        by_base
            .entry(sanitised(name, is_reserved))
            .or_default()
            .push(name);
    }
    let (alone, shared): (Vec<_>, Vec<_>) = by_base
        .into_iter()
        .partition(|(base, rivals)| rivals.len() == 1 && !taken.contains(base));
    for (base, rivals) in alone {
        taken.insert(base.clone());
        chosen.extend(rivals.into_iter().map(|name| (name, base.clone())));
    }
    for (base, rivals) in shared {
        for name in rivals {
            let member = suffixed(&base, name, &taken);
            taken.insert(member.clone());
            chosen.insert(name, member);
        }
    }
    names
        .iter()
        .map(|name| chosen.get(name).cloned().unwrap_or_default())
        .collect()
}

fn sanitised(name: &str, is_reserved: fn(&str) -> bool) -> String {
    let clean = |c: char| if continues_identifier(c) { c } else { '_' };
    let mut base: String = name.chars().map(clean).collect();
    if !base.starts_with(starts_identifier) {
        base.insert(0, '_');
    }
    while is_reserved(&base) {
        base.push('_');
    }
    base
}

/// Returns the name with the shortest hash suffix that is not taken.
fn suffixed(base: &str, wire_name: &str, taken: &BTreeSet<String>) -> String {
    const HEX_DIGITS_MIN: usize = 4;
    let digest = Digest::sha256(wire_name.as_bytes());
    let hex: String = digest.0.iter().map(|byte| format!("{byte:02x}")).collect();
    let lengths = HEX_DIGITS_MIN..=hex.len();
    let mut candidates =
        lengths.map(|length| format!("{base}_{}", hex.get(..length).unwrap_or(&hex)));
    candidates
        .find(|it| !taken.contains(it))
        .unwrap_or_else(|| format!("{base}_{hex}_"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(names: &[&str], expected: &[&str]) {
        assert_eq!(members(names), expected);
    }

    #[test]
    fn valid_identifiers_are_kept_and_others_converted() {
        check(
            &["get_user", "class", "日本語", "naïve"],
            &["get_user", "class", "日本語", "naïve"],
        );
        check(
            &["get-sum", "2fa", "a.b/c d"],
            &["get_sum", "_2fa", "a_b_c_d"],
        );
        check(
            &["then", "__proto__", "toJSON"],
            &["then_", "__proto___", "toJSON_"],
        );
    }

    #[test]
    fn name_collisions_are_resolved_by_hash() {
        check(
            &["get-user", "get_user", "get.user"],
            &["get_user_5d95", "get_user", "get_user_9c02"],
        );
    }

    #[test]
    fn suffixed_name_collision_moves_no_other_tool() {
        let names = ["get-user", "get_user", "get_user_5d95"];
        let found = members(&names);
        assert_eq!(found[2], "get_user_5d95");
        assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), 3);
    }

    #[test]
    fn names_do_not_depend_on_list_order() {
        let names = [
            "get-user", "get.user", "get user", "get_user", "then", "then_", "then-",
        ];
        let forwards = members(&names);
        let reversed: Vec<&str> = names.iter().rev().copied().collect();
        let mut backwards = members(&reversed);
        backwards.reverse();
        assert_eq!(forwards, backwards);
        assert_eq!(forwards.iter().collect::<BTreeSet<_>>().len(), names.len());
        assert!(
            forwards
                .iter()
                .all(|it| is_identifier(it) && !is_unsafe_member(it))
        );
    }

    #[test]
    fn server_global_never_shadows_builtin() {
        let found = globals(&["console", "Math", "my-server", "github", "input", "class"]);
        assert_eq!(
            found,
            [
                "console_",
                "Math_",
                "my_server",
                "github",
                "input_",
                "class_"
            ]
        );
    }
}
