//! Puts the servers of agent hosts behind airlock: finds the hosts' configuration files, moves their
//! servers into a configuration of airlock, and restores the files.
//!
//! Nothing here connects to a server, and only [`changes`] writes files.

mod changes;
mod command;
mod credentials;
mod disabled;
mod entry;
mod host_file;
mod known;
mod placeholders;
mod plan;
mod toml_text;

pub(crate) use changes::{Change, Created, Undone, undo, write};
pub(crate) use command::AirlockCommand;
pub(crate) use credentials::may_have_credential;
pub(crate) use host_file::{AIRLOCK, is_airlock, servers_of};
pub(crate) use known::{HostFile, KNOWN_IDS, Scope, find};
pub(crate) use plan::{CONFIG, HostPlan, plan};
