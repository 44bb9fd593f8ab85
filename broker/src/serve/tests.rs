//! Whole conversations with a test host, in both eras and over both transports.

mod asks;
mod binaries;
mod busy;
mod connections;
mod continuing;
mod criteria;
mod disclosing;
mod discovery;
mod extracting;
mod fake_upstream;
mod filtering;
mod host;
mod http;
mod listening;
mod many_sessions;
mod offering;
mod parting;
mod protocol;
mod runs;
mod wire;

use serde_json::{Value, json};

use super::{Disclosure, ListMode, ServeSettings};
use crate::upstream::Era;
use host::{Host, HostKind, HostTransport};

const LEGACY: HostKind = HostKind {
    era: Era::Legacy,
    over: HostTransport::Streams,
    echoes_handle: true,
};
const MODERN: HostKind = HostKind {
    era: Era::Modern,
    over: HostTransport::Streams,
    echoes_handle: true,
};
/// Each era over each transport.
const WAYS: [HostKind; 4] = [
    LEGACY,
    MODERN,
    HostKind {
        over: HostTransport::Http,
        ..LEGACY
    },
    HostKind {
        over: HostTransport::Http,
        ..MODERN
    },
];

fn settings() -> ServeSettings {
    ServeSettings {
        disclosure: Disclosure::Progressive,
        ..ServeSettings::default()
    }
}

fn in_mode(mode: ListMode) -> ServeSettings {
    ServeSettings { mode, ..settings() }
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

fn is_error(result: &Value) -> bool {
    result["isError"] == json!(true)
}
