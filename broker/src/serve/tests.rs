//! Whole conversations with a host that is written here, in both eras, over both transports.

mod asks;
mod behind;
mod binaries;
mod busy;
mod connections;
mod criteria;
mod disclosing;
mod discovery;
mod extracting;
mod filtering;
mod host;
mod http;
mod listening;
mod offering;
mod parting;
mod protocol;
mod runs;
mod wire;

use serde_json::{Value, json};

use super::{Disclosure, Mode, Settings};
use crate::upstream::Era;
use host::{Host, Over, Way};

const LEGACY: Way = Way {
    era: Era::Legacy,
    over: Over::Streams,
};
const MODERN: Way = Way {
    era: Era::Modern,
    over: Over::Streams,
};
/// Both eras over both transports.
const WAYS: [Way; 4] = [
    LEGACY,
    MODERN,
    Way {
        over: Over::Http,
        ..LEGACY
    },
    Way {
        over: Over::Http,
        ..MODERN
    },
];

fn settings() -> Settings {
    Settings {
        disclosure: Disclosure::Progressive,
        ..Settings::default()
    }
}

fn in_mode(mode: Mode) -> Settings {
    Settings { mode, ..settings() }
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

fn is_error(result: &Value) -> bool {
    result["isError"] == json!(true)
}
