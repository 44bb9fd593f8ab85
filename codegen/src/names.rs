//! The names under which a script finds servers and tools.
//!
//! A name that is an identifier stays what it is. Any other is made one, and when
//! that collides it gets a short hash of the wire name as a suffix: the outcome
//! depends on the set of names, never on their order.

use std::collections::{BTreeMap, BTreeSet};

use codegen_shared::identifiers::{continues_identifier, is_unsafe_member, starts_identifier};

pub use codegen_shared::identifiers::is_identifier;
pub(crate) use codegen_shared::identifiers::is_known_global;

use crate::canonical::Digest;

/// Member names, one for each wire name of a server, all distinct. A repeated wire name
/// gets the same member again.
#[must_use]
pub fn members(wire_names: &[&str]) -> Vec<String> {
    assign(wire_names, is_unsafe_member)
}

/// Names of the globals that carry the servers, all distinct.
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

/// The shortest hash suffix that is still free.
fn suffixed(base: &str, wire_name: &str, taken: &BTreeSet<String>) -> String {
    const HEX_DIGITS_MIN: usize = 4;
    let digest = Digest::of(wire_name.as_bytes());
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
    fn exact_identifiers_keep_their_names_and_others_are_made_into_some() {
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
    fn rivals_for_one_name_are_told_apart_by_their_own_hash() {
        check(
            &["get-user", "get_user", "get.user"],
            &["get_user_5d95", "get_user", "get_user_9c02"],
        );
    }

    #[test]
    fn a_tool_named_like_a_suffixed_one_moves_nobody_onto_it() {
        let names = ["get-user", "get_user", "get_user_5d95"];
        let found = members(&names);
        assert_eq!(found[2], "get_user_5d95");
        assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), 3);
    }

    #[test]
    fn the_order_of_the_list_renames_nobody() {
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
    fn a_server_never_hides_a_global_that_scripts_use() {
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
