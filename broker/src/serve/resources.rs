//! Serves airlock's own resources: full descriptions of tools, and values that were too long for a
//! result. Reading a description discloses the tool.

use airlock_core::session::DESCRIPTIONS_URI;
use serde_json::{Value, json};

use super::context::ServeContext;
use super::disclosure;
use super::host_limits;
use super::request::Request;
use super::result_store::StoredContent;
use super::rpc::{self, RpcErrorResponse};
use crate::broker::tool_index::ToolIndex;
use crate::render::escape;
use base64::prelude::{BASE64_STANDARD, Engine as _};

const NAME: &str = "tool_descriptions";
const TITLE: &str = "Tool descriptions - required before a tool is called";
const RUNS: &str = "airlock:///runs/";
/// Default length of a page of a kept text, in bytes.
const RANGE_BYTES_DEFAULT: usize = 20_000;
const RANGE_BYTES_MAX: usize = 1_000_000;
/// The `_meta` key with the range of a page.
const PAGE_KEY: &str = "dev.airlock/page";
const TOOLS_MAX: usize = 200;

/// How to use the resource, for models that see it in a list.
const WORKFLOW: &str = "\
WORKFLOW
1. CHOOSE the tool by its short description from tools/list or search_tools. That is enough to choose by.
2. READ its full description here: resource:///tool_descriptions?tools=TOOL_NAME, \
or several at once: resource:///tool_descriptions?tools=TOOL_1,TOOL_2
3. CALL it with the parameters that you have read, directly or in a script.
A tool CANNOT be called before its description was read in this session: the call fails with \
TOOL_DESCRIPTION_REQUIRED. Reading a description authorizes the tool for the session. \
Reading this resource without ?tools= fails with MISSING_TOOL_SELECTION.";

/// Whether an address or a template belongs to airlock's own resources.
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
            "description": "Bytes `from` to `from` + `length` of a text that was cut (`part` is value or console) or of a binary (binary-1, binary-2, …). A text page has the characters that begin in that range. Each page names the next.",
        },
    ]})
}

pub(super) fn read(
    context: &ServeContext,
    tool_index: &ToolIndex,
    request: &Request,
) -> Result<Value, RpcErrorResponse> {
    let uri = request.params.get("uri").and_then(Value::as_str);
    let uri = uri.ok_or_else(|| RpcErrorResponse::invalid("`uri` is missing or not a string"))?;
    let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
    if path == DESCRIPTIONS_URI {
        let text = descriptions(context, tool_index, request, query)?;
        return Ok(contents(uri, "application/json", &text));
    }
    let kept = path
        .starts_with(RUNS)
        .then(|| request.session.stored_results.find(path))
        .flatten();
    match kept {
        Some(StoredContent::Text(text)) => page(&text, uri),
        Some(StoredContent::Binary { bytes, mime }) => part(&bytes, &mime, uri),
        None => Err(RpcErrorResponse::no_resource(uri, request.era)),
    }
}

fn contents(uri: &str, mime: &str, text: &str) -> Value {
    json!({"contents": [{"uri": uri, "mimeType": mime, "text": escape::message(text)}]})
}

fn descriptions(
    context: &ServeContext,
    tool_index: &ToolIndex,
    request: &Request,
    query: &str,
) -> Result<String, RpcErrorResponse> {
    let wanted: Vec<String> = parameter(query, "tools")
        .map(|list| list.split(',').map(|name| name.trim().to_owned()).collect())
        .unwrap_or_default();
    let wanted: Vec<String> = wanted.into_iter().filter(|name| !name.is_empty()).collect();
    if wanted.is_empty() {
        return Ok(missing_selection().to_string());
    }
    if wanted.len() > TOOLS_MAX {
        let message = format!("at most {TOOLS_MAX} tools can be described at once");
        return Err(RpcErrorResponse::invalid(message));
    }
    let details =
        disclosure::disclose(context, tool_index, &request.session, &wanted).map_err(|why| {
            let error = json!({"error": {"code": "RATE_LIMITED", "message": why}});
            RpcErrorResponse {
                data: Some(error),
                ..RpcErrorResponse::invalid(why)
            }
        })?;
    Ok(Value::Object(details.entries).to_string())
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

/// Returns a page of a kept text.
fn page(text: &str, uri: &str) -> Result<Value, RpcErrorResponse> {
    let Page { from, next, length } = Page::parse(text, query_of(uri))?;
    let shown = text.get(from..next).unwrap_or_default();
    let shown = json!({"mimeType": "text/plain", "text": shown});
    let end = next;
    let range = Range { from, end, length };
    Ok(with_next(shown, uri, &range, text.len()))
}

/// Returns a range of kept binary data.
fn part(bytes: &[u8], mime: &str, uri: &str) -> Result<Value, RpcErrorResponse> {
    let range = Range::parse(bytes.len(), RANGE_BYTES_MAX, query_of(uri))?;
    let shown = BASE64_STANDARD.encode(bytes.get(range.from..range.end).unwrap_or_default());
    let shown = json!({"mimeType": mime, "blob": shown});
    Ok(with_next(shown, uri, &range, bytes.len()))
}

fn query_of(uri: &str) -> &str {
    uri.split_once('?').map_or("", |(_, query)| query)
}

/// Builds the response for a page. If more follows, the response contains the position of the next
/// page: in the page's `_meta` for programs, and as text for models.
fn with_next(mut shown: Value, uri: &str, range: &Range, bytes: usize) -> Value {
    let (from, next, length) = (range.from, range.end, range.length);
    let mut told = json!({"from": from, "bytes": bytes});
    if next < bytes {
        rpc::set_member(&mut told, "next", next);
    }
    rpc::set_member(&mut shown, "uri", uri);
    rpc::set_member(&mut shown, "_meta", json!({PAGE_KEY: told}));
    let mut pages = vec![shown];
    if next < bytes {
        let path = uri.split_once('?').map_or(uri, |(path, _)| path);
        let following = format!("{path}?from={next}&length={length}");
        let words = format!("… bytes {from} to {next} of {bytes}; the next page is at {following}");
        pages.push(json!({"uri": following, "mimeType": "text/plain", "text": words}));
    }
    json!({ "contents": pages })
}

/// The requested range, in bytes.
struct Range {
    from: usize,
    end: usize,
    length: usize,
}

impl Range {
    fn new(bytes: usize, from: usize, length: usize) -> Result<Self, String> {
        if from > bytes {
            return Err(format!(
                "`from` is {from}, and there are only {bytes} bytes"
            ));
        }
        if !(1..=RANGE_BYTES_MAX).contains(&length) {
            return Err(format!(
                "`length` is {length}; one page has 1 to {RANGE_BYTES_MAX} bytes"
            ));
        }
        let end = from.saturating_add(length).min(bytes);
        Ok(Self { from, end, length })
    }

    fn parse(bytes: usize, length_default: usize, query: &str) -> Result<Self, RpcErrorResponse> {
        let number = |name: &str, default: usize| match parameter(query, name) {
            None => Ok(default),
            Some(value) => value.parse::<usize>().map_err(|_| {
                RpcErrorResponse::invalid(format!("`{name}` is not a whole number of bytes"))
            }),
        };
        let (from, length) = (number("from", 0)?, number("length", length_default)?);
        Self::new(bytes, from, length).map_err(RpcErrorResponse::invalid)
    }
}

/// The characters that begin in a range of bytes. Adjacent ranges therefore contain each character
/// exactly once.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) from: usize,
    /// Byte position at which the next page begins.
    pub(super) next: usize,
    length: usize,
}

impl Page {
    pub(super) fn new(text: &str, from: usize, length: usize) -> Result<Self, String> {
        Ok(Self::of(text, Range::new(text.len(), from, length)?))
    }

    /// Shortens the page to this length in JSON.
    pub(super) fn within(self, text: &str, encoded_bytes_max: usize) -> Self {
        let part = text.get(self.from..self.next).unwrap_or_default();
        let bytes = host_limits::encoded_prefix(part, encoded_bytes_max);
        Self {
            next: self.from + bytes,
            ..self
        }
    }

    fn parse(text: &str, query: &str) -> Result<Self, RpcErrorResponse> {
        let range = Range::parse(text.len(), RANGE_BYTES_DEFAULT, query)?;
        Ok(Self::of(text, range))
    }

    fn of(text: &str, Range { from, end, length }: Range) -> Self {
        Self {
            from: text.ceil_char_boundary(from),
            next: text.ceil_char_boundary(end),
            length,
        }
    }
}

/// Returns a decoded parameter of a query.
fn parameter(query: &str, name: &str) -> Option<String> {
    let pair = |part: &str| {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        (decoded(key) == name).then(|| decoded(value))
    };
    query.split('&').find_map(pair)
}

/// Decodes percent-encoding. A plus sign stays a plus sign.
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
    fn query_parameter_is_found_and_decoded() {
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
    fn page_holds_characters_starting_in_its_range() {
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
            let Page { from, next, .. } = Page::parse(text, query).unwrap();
            assert_eq!(text.get(from..next), Some(expected), "{query}");
        }
        for (query, part) in [
            ("from=-1", "`from` is not a whole number"),
            ("from=8", "only 7 bytes"),
            ("length=0", "1 to 1000000 bytes"),
            ("length=1000001", "1 to 1000000 bytes"),
        ] {
            let refused = Page::parse(text, query).unwrap_err();
            assert!(refused.message.contains(part), "{query}: {refused:?}");
        }
    }

    /// Reads all pages twice: in steps of the requested length, and by the position that each page
    /// gives for the next.
    #[test]
    fn pages_concatenate_to_full_text() {
        for letter in ["a", "ä", "日", "🦀"] {
            for before in 0..4 {
                let text = format!("{}{}", "x".repeat(before), letter.repeat(50));
                for length in 1..9 {
                    for by_next in [false, true] {
                        let (mut joined, mut at) = (String::new(), 0);
                        while at < text.len() {
                            let query = format!("from={at}&length={length}");
                            let Page { from, next, .. } = Page::parse(&text, &query).unwrap();
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
