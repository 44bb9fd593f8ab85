//! What hosts can read: full descriptions of tools, which discloses them, and
//! values that were too long for a result.

use airlock_core::session::DESCRIPTIONS_URI;
use serde_json::{Value, json};

use super::desk::Desk;
use super::kept::Kept;
use super::meta;
use super::request::Request;
use super::rpc::{self, Refusal};
use super::shelf::Shelf;
use base64::prelude::{BASE64_STANDARD, Engine as _};

const NAME: &str = "tool_descriptions";
const TITLE: &str = "Tool descriptions - required before a tool is called";
const RUNS: &str = "airlock:///runs/";
/// Bytes of a kept text that one read gives.
const RANGE_BYTES_DEFAULT: usize = 20_000;
const RANGE_BYTES_MAX: usize = 1_000_000;
/// What a page of a kept text is, beside its text.
const PAGE_KEY: &str = "dev.airlock/page";
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
            "title": "A long value or console of a run, or a binary in its value",
            "description": "Of what was cut from a result, the characters that begin in `length` bytes from byte `from` on; `part` is value or console. Of a binary, which is binary-1, binary-2, …, those bytes. Each page says where the next one begins.",
        },
    ]})
}

pub(super) fn read(desk: &Desk, shelf: &Shelf, request: &Request) -> Result<Value, Refusal> {
    let uri = request.params.get("uri").and_then(Value::as_str);
    let uri = uri.ok_or_else(|| Refusal::invalid("`uri` is missing or not a string"))?;
    let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
    if path == DESCRIPTIONS_URI {
        let text = descriptions(desk, shelf, request, query)?;
        return Ok(contents(uri, "application/json", &text));
    }
    let kept = path
        .starts_with(RUNS)
        .then(|| request.session.kept.find(path))
        .flatten();
    match kept {
        Some(Kept::Text(text)) => page(&text, uri),
        Some(Kept::Binary { bytes, mime }) => part(&bytes, &mime, uri),
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

/// A part of a kept text.
fn page(text: &str, uri: &str) -> Result<Value, Refusal> {
    let Page { from, next, length } = Page::of(text, query_of(uri))?;
    let shown = text.get(from..next).unwrap_or_default();
    let shown = json!({"mimeType": "text/plain", "text": shown});
    Ok(with_next(shown, uri, (from, next, text.len()), length))
}

/// A part of something that is no text.
fn part(bytes: &[u8], mime: &str, uri: &str) -> Result<Value, Refusal> {
    let Range { from, end, length } = Range::of(bytes.len(), RANGE_BYTES_MAX, query_of(uri))?;
    let shown = BASE64_STANDARD.encode(bytes.get(from..end).unwrap_or_default());
    let shown = json!({"mimeType": mime, "blob": shown});
    Ok(with_next(shown, uri, (from, end, bytes.len()), length))
}

fn query_of(uri: &str) -> &str {
    uri.split_once('?').map_or("", |(_, query)| query)
}

/// What is shown of a kept thing. Behind it, while there is more, stands where that is: for
/// programs in the `_meta` of the page, for models in words of their own.
fn with_next(
    mut shown: Value,
    uri: &str,
    (from, next, bytes): (usize, usize, usize),
    length: usize,
) -> Value {
    let mut told = json!({"from": from, "bytes": bytes});
    if next < bytes {
        rpc::put(&mut told, "next", next);
    }
    rpc::put(&mut shown, "uri", uri);
    rpc::put(&mut shown, "_meta", json!({PAGE_KEY: told}));
    let mut pages = vec![shown];
    if next < bytes {
        let path = uri.split_once('?').map_or(uri, |(path, _)| path);
        let following = format!("{path}?from={next}&length={length}");
        let words = format!("… bytes {from} to {next} of {bytes}; the next page is at {following}");
        pages.push(json!({"uri": following, "mimeType": "text/plain", "text": words}));
    }
    json!({ "contents": pages })
}

/// Bytes that were asked for.
struct Range {
    from: usize,
    end: usize,
    length: usize,
}

impl Range {
    fn of(bytes: usize, length_default: usize, query: &str) -> Result<Self, Refusal> {
        let number = |name: &str, default: usize| match parameter(query, name) {
            None => Ok(default),
            Some(value) => value
                .parse::<usize>()
                .map_err(|_| Refusal::invalid(format!("`{name}` is not a whole number of bytes"))),
        };
        let (from, length) = (number("from", 0)?, number("length", length_default)?);
        if from > bytes {
            return Err(Refusal::invalid(format!(
                "`from` is {from}, and there are only {bytes} bytes"
            )));
        }
        if !(1..=RANGE_BYTES_MAX).contains(&length) {
            return Err(Refusal::invalid(format!(
                "`length` is {length}; one page has 1 to {RANGE_BYTES_MAX} bytes"
            )));
        }
        let end = from.saturating_add(length).min(bytes);
        Ok(Self { from, end, length })
    }
}

/// The characters that begin in a range of bytes: each stands in one page, however a reader
/// comes from one page to the next.
#[derive(Debug, PartialEq, Eq)]
struct Page {
    from: usize,
    /// Where the next one begins.
    next: usize,
    length: usize,
}

impl Page {
    fn of(text: &str, query: &str) -> Result<Self, Refusal> {
        let Range { from, end, length } = Range::of(text.len(), RANGE_BYTES_DEFAULT, query)?;
        Ok(Self {
            from: text.ceil_char_boundary(from),
            next: text.ceil_char_boundary(end),
            length,
        })
    }
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
    fn a_page_holds_the_characters_that_begin_in_its_range() {
        let text = "aä日b";
        for (query, expected) in [
            ("", "aä日b"),
            ("from=2", "日b"),
            ("from=1&length=1", "ä"),
            ("from=1&length=2", "ä"),
            ("from=1&length=3", "ä日"),
            ("from=2&length=1", ""),
            ("from=6&length=1", "b"),
            ("from=7", ""),
        ] {
            let Page { from, next, .. } = Page::of(text, query).unwrap();
            assert_eq!(text.get(from..next), Some(expected), "{query}");
        }
        for (query, part) in [
            ("from=-1", "`from` is not a whole number"),
            ("from=8", "only 7 bytes"),
            ("length=0", "1 to 1000000 bytes"),
            ("length=1000001", "1 to 1000000 bytes"),
        ] {
            let refused = Page::of(text, query).unwrap_err();
            assert!(refused.message.contains(part), "{query}: {refused:?}");
        }
    }

    /// By the length that a reader asked for, and by what each page says of the next.
    #[test]
    fn pages_join_to_the_whole_text() {
        for letter in ["a", "ä", "日", "🦀"] {
            for before in 0..4 {
                let text = format!("{}{}", "x".repeat(before), letter.repeat(50));
                for length in 1..9 {
                    for by_next in [false, true] {
                        let (mut joined, mut at) = (String::new(), 0);
                        while at < text.len() {
                            let query = format!("from={at}&length={length}");
                            let Page { from, next, .. } = Page::of(&text, &query).unwrap();
                            joined.push_str(text.get(from..next).unwrap());
                            at = if by_next { next } else { at + length };
                        }
                        assert_eq!(joined, text, "{before} {length} {by_next}");
                    }
                }
            }
        }
    }
}
