//! Converts the current tool descriptions to a lock, and finds the differences from the lock file.

use std::collections::BTreeMap;

use airlock_core::problem::Problem;
use codegen::lock::{Lock, LockedServer, LockedTool};

use super::server_tools::ServerTools;
use crate::lock_file::{self, Pin};

/// Returns the lock of all servers that have a target. In-process tools are not locked.
pub(super) fn lock<'a>(offered: impl IntoIterator<Item = &'a ServerTools>) -> Lock {
    let servers = offered
        .into_iter()
        .filter_map(|offer| Some((offer.server.clone(), server(offer)?)));
    Lock {
        servers: servers.collect(),
        ..Lock::default()
    }
}

fn server(offer: &ServerTools) -> Option<LockedServer> {
    let mut tools = BTreeMap::new();
    for (said, description) in offer.usable() {
        let name = description.name.clone();
        tools
            .entry(name)
            .or_insert_with(|| LockedTool::new(said, description));
    }
    Some(LockedServer {
        target: offer.target.clone()?,
        says: offer.about.says.clone(),
        tools,
    })
}

/// Returns the problems of all servers and tools that are refused because of the lock file.
pub(super) fn problems(lock: &Lock, offered: &[&ServerTools]) -> Vec<Problem> {
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
