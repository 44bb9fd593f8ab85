//! What the servers say now, in the form of a lock, and what of it is not what
//! the lock file has.

use std::collections::BTreeMap;

use airlock_core::problem::Problem;
use codegen::lock::{Lock, Server, Tool};

use super::offered::Offered;
use crate::lock_file::{self, Pin};

/// Of all servers that are reached somewhere; the host's own tools are not locked.
pub(super) fn lock<'a>(offered: impl IntoIterator<Item = &'a Offered>) -> Lock {
    let servers = offered
        .into_iter()
        .filter_map(|offer| Some((offer.server.clone(), server(offer)?)));
    Lock {
        servers: servers.collect(),
        ..Lock::default()
    }
}

fn server(offer: &Offered) -> Option<Server> {
    let mut tools = BTreeMap::new();
    for (said, description) in offer.usable() {
        let name = description.name.clone();
        tools
            .entry(name)
            .or_insert_with(|| Tool::of(said, description));
    }
    Some(Server {
        target: offer.target.clone()?,
        says: offer.says.clone(),
        tools,
    })
}

/// Everything that is refused because of the lock file, server by server.
pub(super) fn problems(lock: &Lock, offered: &[&Offered]) -> Vec<Problem> {
    let mut problems = Vec::new();
    for offer in offered {
        let (Some(target), Pin::Held(held)) = (&offer.target, &offer.pin) else {
            continue;
        };
        problems.extend(lock_file::stranger(lock, &offer.server, target));
        let (Some(held), Some(now)) = (held, server(offer)) else {
            continue;
        };
        for (name, tool) in &now.tools {
            let same = held
                .tools
                .get(name)
                .is_some_and(|it| it.digest == tool.digest);
            if !same {
                problems.push(lock_file::changed(held, &now, &offer.server, name));
            }
        }
    }
    problems
}
