//! What hosts can read: full descriptions of tools, which discloses them, and
//! values that were too long for a result.

use std::sync::Arc;

use airlock_core::session::DESCRIPTIONS_URI;
use serde_json::{Value, json};

use super::desk::Desk;
use super::meta;
use super::request::Request;
use super::rpc::Refusal;
use super::shelf::Shelf;

const NAME: &str = "tool_descriptions";
const TITLE: &str = "Tool descriptions - required before a tool is called";
const RUNS: &str = "airlock:///runs/";
/// Bytes of a kept text that one read gives.
const RANGE_BYTES_DEFAULT: usize = 20_000;
const RANGE_BYTES_MAX: usize = 1_000_000;
const TOOLS_MAX: usize = 200;

/// How the resource is used, for models that see it in a list.
const WORKFLOW: &str = "\
WORKFLOW
1. CHOOSE the tool by its short description from tools/list or search_tools. That is enough to choose by.
2. READ its full description here: resource:///tool_descriptions?tools=TOOL_NAME, \
or several at once: resource:///tool_descriptions?tools=TOOL_1,TOOL_2
3. CALL it with the parameters that you have read, directly or in a script.
A tool CANNOT be called before its description was read in this session: the call fails with \
TOOL_DESCRIPTION_REQUIRED. Reading a description authorizes the tool for the session. \
Reading this resource without ?tools= fails with MISSING_TOOL_SELECTION.";

/// Whether an address, or a pattern of some, is one of ours.
pub(super) fn is_own(uri: &str) -> bool {
    uri.starts_with(DESCRIPTIONS_URI) || uri.starts_with(RUNS)
}

pub(super) fn list() -> Value {
    json!({"resources": [{
        "uri": DESCRIPTIONS_URI,
        "name": NAME,
        "title": TITLE,
        "description": WORKFLOW,
        "mimeType": "application/json",
    }]})
}

pub(super) fn templates() -> Value {
    json!({"resourceTemplates": [
        {
            "uriTemplate": format!("{DESCRIPTIONS_URI}{{?tools}}"),
            "name": NAME,
            "title": TITLE,
            "description": "Full descriptions of the tools in `tools`, separated by commas.",
            "mimeType": "application/json",
        },
        {
            "uriTemplate": format!("{RUNS}{{run}}/{{part}}{{?from,length}}"),
            "name": "run_part",
            "title": "A long value or console of a run",
            "description": "Bytes `from` on of what was cut from a result; `part` is value or console.",
            "mimeType": "text/plain",
        },
    ]})
}

pub(super) fn read(desk: &Desk, shelf: &Shelf, request: &Request) -> Result<Value, Refusal> {
    let uri = request.params.get("uri").and_then(Value::as_str);
    let uri = uri.ok_or_else(|| Refusal::invalid("`uri` is missing, or is no string"))?;
    let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
    if path == DESCRIPTIONS_URI {
        let text = descriptions(desk, shelf, request, query)?;
        return Ok(contents(uri, "application/json", &text));
    }
    let kept = path
        .starts_with(RUNS)
        .then(|| request.session.kept(path))
        .flatten();
    match kept {
        Some(text) => Ok(contents(uri, "text/plain", range(&text, query)?)),
        None => Err(Refusal::no_resource(uri, request.era)),
    }
}

fn contents(uri: &str, mime: &str, text: &str) -> Value {
    json!({"contents": [{"uri": uri, "mimeType": mime, "text": text}]})
}

fn descriptions(
    desk: &Desk,
    shelf: &Shelf,
    request: &Request,
    query: &str,
) -> Result<String, Refusal> {
    let wanted: Vec<String> = parameter(query, "tools")
        .map(|list| list.split(',').map(|name| name.trim().to_owned()).collect())
        .unwrap_or_default();
    let wanted: Vec<String> = wanted.into_iter().filter(|name| !name.is_empty()).collect();
    if wanted.is_empty() {
        return Ok(missing_selection().to_string());
    }
    if wanted.len() > TOOLS_MAX {
        let message = format!("at most {TOOLS_MAX} tools can be described at once");
        return Err(Refusal::invalid(message));
    }
    let shelved = meta::disclose(desk, shelf, &request.session, &wanted).map_err(|why| {
        let error = json!({"error": {"code": "RATE_LIMITED", "message": why}});
        Refusal {
            data: Some(error),
            ..Refusal::invalid(why)
        }
    })?;
    Ok(Value::Object(shelved.entries).to_string())
}

fn missing_selection() -> Value {
    json!({"error": {
        "code": "MISSING_TOOL_SELECTION",
        "message": "You must specify one or more tool names in the 'tools' parameter.",
        "examples": [
            format!("{DESCRIPTIONS_URI}?tools=tool_name"),
            format!("{DESCRIPTIONS_URI}?tools=tool1,tool2"),
        ],
    }})
}

fn range<'a>(text: &'a Arc<str>, query: &str) -> Result<&'a str, Refusal> {
    let number = |name: &str, default: usize| match parameter(query, name) {
        None => Ok(default),
        Some(value) => value
            .parse::<usize>()
            .map_err(|_| Refusal::invalid(format!("`{name}` is no whole number of bytes"))),
    };
    let from = text.ceil_char_boundary(number("from", 0)?.min(text.len()));
    let length = number("length", RANGE_BYTES_DEFAULT)?.min(RANGE_BYTES_MAX);
    let end = text.floor_char_boundary(from.saturating_add(length).min(text.len()));
    Ok(text.get(from..end.max(from)).unwrap_or_default())
}

/// A parameter of a query, decoded.
fn parameter(query: &str, name: &str) -> Option<String> {
    let pair = |part: &str| {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        (decoded(key) == name).then(|| decoded(value))
    };
    query.split('&').find_map(pair)
}

/// Percent signs and their digits as what they stand for; a plus sign is itself.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).and_then(|it| std::str::from_utf8(it).ok());
        let byte = digits
            .filter(|it| *first == b'%' && it.bytes().all(|b| b.is_ascii_hexdigit()))
            .and_then(|it| u8::from_str_radix(it, 16).ok());
        match byte {
            Some(byte) => {
                bytes.push(byte);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_found_and_decoded() {
        for (query, expected) in [
            ("tools=fs.read,git.log", Some("fs.read,git.log")),
            ("x=1&tools=fs.a%2Cfs.b%20c", Some("fs.a,fs.b c")),
            ("tools=", Some("")),
            ("tools", Some("")),
            ("tool=x", None),
            ("tools=%zz%4", Some("%zz%4")),
            ("", None),
        ] {
            assert_eq!(parameter(query, "tools").as_deref(), expected, "{query}");
        }
    }

    #[test]
    fn a_range_never_cuts_a_character() {
        let text: Arc<str> = "aä日b".into();
        for (query, expected) in [
            ("", "aä日b"),
            ("from=2", "日b"),
            ("from=1&length=2", "ä"),
            ("from=1&length=3", "ä"),
            ("from=99", ""),
            ("length=0", ""),
        ] {
            assert_eq!(range(&text, query).unwrap(), expected, "{query}");
        }
        assert!(range(&text, "from=-1").is_err());
    }
}
