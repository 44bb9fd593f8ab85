//! Lists of a description whose order does not count. Some servers build a set at each start, and
//! list its members in another order each time. Only the order can be exempt: every other
//! difference changes what the description says.

use serde_json::{Map, Value};

use super::{Lock, LockedTool};
use crate::canonical;

/// Maximum nesting of a description that is searched for lists.
const DEPTH_MAX: usize = 40;

/// A list of a tool that has the accepted members in another order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReorderedList {
    pub server: String,
    pub tool: String,
    /// JSON pointer into the description.
    pub field: String,
}

/// Gives each exempt list of a description, as a server sent it, the accepted order. A list with
/// other members stays as it is.
pub fn settle(said: &mut Value, locked: &LockedTool) {
    for field in &locked.exempt {
        let (Some(accepted), Some(now)) =
            (pointed(&locked.description, field), said.pointer_mut(field))
        else {
            continue;
        };
        if is_reordered(accepted, now) {
            *now = accepted.clone();
        }
    }
}

/// Gives the exempt lists of `now` the order that `before` accepted, and keeps the exemptions.
/// Returns the lists that were moved.
pub fn settle_all(now: &mut Lock, before: &Lock) -> Vec<ReorderedList> {
    let mut moved = Vec::new();
    for (server, tools) in &mut now.servers {
        let Some(accepted) = before.servers.get(server) else {
            continue;
        };
        for (name, tool) in &mut tools.tools {
            let Some(accepted) = accepted.tools.get(name).filter(|it| !it.exempt.is_empty()) else {
                continue;
            };
            let mut described = Value::Object(std::mem::take(&mut tool.description));
            let lists = moved_lists(&accepted.description, &described);
            let lists = lists.into_iter().filter(|it| accepted.exempt.contains(it));
            moved.extend(lists.map(|field| ReorderedList {
                server: server.clone(),
                tool: name.clone(),
                field,
            }));
            settle(&mut described, accepted);
            tool.digest = canonical::digest(&described);
            // An exemption of a field that is gone has nothing to refer to.
            let stays = |field: &&String| described.pointer(field).is_some_and(Value::is_array);
            tool.exempt = accepted.exempt.iter().filter(stays).cloned().collect();
            if let Value::Object(members) = described {
                tool.description = members;
            }
        }
    }
    moved
}

/// Returns the pointers of all lists that have the same members in another order.
pub(super) fn moved_lists(before: &Map<String, Value>, now: &Value) -> Vec<String> {
    let mut found = Vec::new();
    if let Some(now) = now.as_object() {
        members(before, now, &mut String::new(), 0, &mut found);
    }
    found
}

fn members(
    before: &Map<String, Value>,
    now: &Map<String, Value>,
    at: &mut String,
    depth: usize,
    found: &mut Vec<String>,
) {
    if depth > DEPTH_MAX {
        return;
    }
    for (name, before) in before {
        let Some(now) = now.get(name) else { continue };
        let length = at.len();
        at.push('/');
        at.push_str(&name.replace('~', "~0").replace('/', "~1"));
        match (before, now) {
            (Value::Object(before), Value::Object(now)) => {
                members(before, now, at, depth + 1, found);
            }
            _ if is_reordered(before, now) => found.push(at.clone()),
            _ => {}
        }
        at.truncate(length);
    }
}

/// Whether two lists have the same members, each as often, in another order.
fn is_reordered(before: &Value, now: &Value) -> bool {
    let (Value::Array(before), Value::Array(now)) = (before, now) else {
        return false;
    };
    let sorted = |items: &[Value]| {
        let mut texts: Vec<Vec<u8>> = items.iter().map(canonical::canonical).collect();
        texts.sort();
        texts
    };
    before != now && before.len() == now.len() && sorted(before) == sorted(now)
}

fn pointed<'a>(members: &'a Map<String, Value>, field: &str) -> Option<&'a Value> {
    let (first, rest) = match field.strip_prefix('/')?.split_once('/') {
        Some((first, rest)) => (first, format!("/{rest}")),
        None => (field.strip_prefix('/')?, String::new()),
    };
    let first = first.replace("~1", "/").replace("~0", "~");
    members.get(&first)?.pointer(&rest)
}

impl LockedTool {
    /// Returns an exemption that names no list of the accepted description.
    pub(super) fn unfit_exemption(&self) -> Option<&str> {
        let is_list = |field: &str| pointed(&self.description, field).is_some_and(Value::is_array);
        self.exempt
            .iter()
            .map(String::as_str)
            .find(|it| !is_list(it))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::description::Description;
    use crate::lock::LockedServer;

    fn said(kinds: &Value, text: &str) -> Value {
        json!({"name": "t", "description": text, "inputSchema": {"type": "object", "properties":
            {"kind": {"enum": kinds}}, "required": []}})
    }

    fn locked(said: &Value, exempt: &[&str]) -> LockedTool {
        let description = Description::parse("s", said).unwrap();
        LockedTool {
            exempt: exempt.iter().map(|it| (*it).to_owned()).collect(),
            ..LockedTool::new(said, &description)
        }
    }

    fn lock(tool: LockedTool) -> Lock {
        let server = LockedServer {
            target: "x".into(),
            says: None,
            tools: [("t".to_owned(), tool)].into(),
        };
        Lock {
            servers: [("s".to_owned(), server)].into(),
            ..Lock::default()
        }
    }

    const KINDS: &str = "/inputSchema/properties/kind/enum";

    #[test]
    fn exempt_list_gets_the_accepted_order_and_its_digest() {
        let accepted = locked(&said(&json!(["a", "b", "c"]), "x"), &[KINDS]);
        let mut now = said(&json!(["c", "a", "b"]), "x");
        settle(&mut now, &accepted);
        let description = Description::parse("s", &now).unwrap();
        assert_eq!(description.upstream, accepted.digest);
    }

    #[test]
    fn other_members_and_other_fields_are_never_exempt() {
        let accepted = locked(&said(&json!(["a", "b"]), "x"), &[KINDS]);
        for changed in [
            said(&json!(["a", "b", "b"]), "x"),
            said(&json!(["a", "c"]), "x"),
            said(&json!(["b", "a"]), "y"),
        ] {
            let mut now = changed;
            settle(&mut now, &accepted);
            let description = Description::parse("s", &now).unwrap();
            assert_ne!(description.upstream, accepted.digest, "{now}");
        }
        let not_exempt = locked(&said(&json!(["a", "b"]), "x"), &[]);
        let mut now = said(&json!(["b", "a"]), "x");
        settle(&mut now, &not_exempt);
        assert_eq!(now, said(&json!(["b", "a"]), "x"));
    }

    #[test]
    fn new_lock_keeps_exemptions_and_names_moved_lists() {
        let before = lock(locked(&said(&json!(["a", "b"]), "x"), &[KINDS]));
        let mut now = lock(locked(&said(&json!(["b", "a"]), "x"), &[]));
        let moved = settle_all(&mut now, &before);
        assert_eq!(now, before);
        assert_eq!(moved.len(), 1);
        assert_eq!(moved[0].field, KINDS);
        assert_eq!(settle_all(&mut now, &before), []);
    }

    #[test]
    fn exemption_must_name_a_list() {
        for field in [
            "/description",
            "/inputSchema/properties",
            "/nowhere",
            "",
            "x",
        ] {
            let lock = lock(locked(&said(&json!(["a"]), "x"), &[field]));
            let text: Value = serde_json::from_str(&lock.text()).unwrap();
            let refused = Lock::read(&text).unwrap_err().to_string();
            assert!(refused.contains("`exempt`"), "{field}: {refused}");
        }
        let lock = lock(locked(&said(&json!(["a"]), "x"), &[KINDS]));
        let text: Value = serde_json::from_str(&lock.text()).unwrap();
        assert_eq!(Lock::read(&text).unwrap(), lock);
    }
}
