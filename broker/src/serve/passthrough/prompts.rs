//! Passes on prompts of servers, in addition to airlock's own prompt. A prompt is named
//! `server_prompt`, or `server.prompt` if the first form is ambiguous. The meaning of a name
//! depends only on the names of the offered servers, not on their lists. If the part before the
//! first dot is the name of a server, the prompt belongs to that server. Otherwise the name must
//! begin with the name of exactly one server and `_`.

use std::collections::HashSet;

use airlock_core::id::ServerName;
use serde_json::{Map, Value};

use super::listing::{PassthroughList, listed};
use super::{contents, fetched, is_plain, readdressed, refusal, texts, unusable};
use crate::broker::tool_index::ToolIndex;
use crate::config::OfferKind;
use crate::render::escape;
use crate::serve::context::ServeContext;
use crate::serve::prompt;
use crate::serve::request::Request;
use crate::serve::rpc::{RpcErrorResponse, sanitize, set_member};
use crate::upstream::fetch::{Fetch, FetchError};

const LIST: PassthroughList = PassthroughList {
    what: OfferKind::Prompts,
    method: "prompts/list",
    key: "prompts",
    shown: entry,
};
const NAME_BYTES_MAX: usize = 256;
const ARGUMENTS_MAX: usize = 100;
const MESSAGES_MAX: usize = 1_000;

pub(in crate::serve) async fn list(
    context: &ServeContext,
    tool_index: &ToolIndex,
    request: &Request,
) -> Value {
    let mut result = prompt::list();
    let mut prompts: Vec<Value> = result
        .get_mut("prompts")
        .and_then(Value::as_array_mut)
        .map(std::mem::take)
        .unwrap_or_default();
    let offered = context.settings().offers.of(tool_index, OfferKind::Prompts);
    let mut taken = HashSet::new();
    for of_server in listed(context, tool_index, request, LIST).await {
        for entry in &of_server.pages.items {
            let Some(theirs) = entry.get("name").and_then(Value::as_str) else {
                continue;
            };
            let name = name(&offered, &of_server.server, theirs);
            if taken.insert(name.clone()) {
                let mut entry = entry.clone();
                set_member(&mut entry, "name", name);
                prompts.push(entry);
            }
        }
    }
    set_member(&mut result, "prompts", prompts);
    result
}

/// Returns the fields of a prompt that are shown, with the name that the prompt has at its server.
/// Returns `None` if a name would have to be escaped, because a host could not request the prompt
/// by the escaped name.
fn entry(theirs: &Value) -> Option<Value> {
    let mut entry = texts(theirs, &["title", "description"]);
    entry.insert("name".into(), named(theirs)?.into());
    if let Some(Value::Array(arguments)) = theirs.get("arguments") {
        let arguments = arguments.iter().take(ARGUMENTS_MAX + 1).map(argument);
        let arguments: Vec<Value> = arguments.collect::<Option<_>>()?;
        if arguments.len() > ARGUMENTS_MAX {
            return None;
        }
        entry.insert("arguments".into(), arguments.into());
    }
    Some(entry.into())
}

fn argument(theirs: &Value) -> Option<Value> {
    let mut argument = texts(theirs, &["title", "description"]);
    argument.insert("name".into(), named(theirs)?.into());
    let is_required = theirs.get("required") == Some(&Value::Bool(true));
    argument.insert("required".into(), is_required.into());
    Some(argument.into())
}

fn named(theirs: &Value) -> Option<&str> {
    let name = theirs.get("name").and_then(Value::as_str);
    name.filter(|it| !it.is_empty() && is_plain(it, NAME_BYTES_MAX))
}

/// Returns the name of a prompt in the list. The name is unambiguous.
fn name(offered: &[ServerName], server: &ServerName, theirs: &str) -> String {
    let flat = format!("{}_{theirs}", server.0);
    match meant(offered, &flat) {
        PromptMatch::One(it, rest) if it == *server && rest == theirs && flat != prompt::NAME => {
            flat
        }
        _ => format!("{}.{theirs}", server.0),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum PromptMatch {
    Nothing,
    /// A server, and the name of the prompt there.
    One(ServerName, String),
    /// The name could mean a prompt of each of these servers.
    Unclear(Vec<String>),
}

/// Interprets a name for these offered servers. Names of servers contain no dots.
fn meant(offered: &[ServerName], name: &str) -> PromptMatch {
    if let Some((server, theirs)) = name.split_once('.')
        && let Some(server) = offered.iter().find(|it| &*it.0 == server)
    {
        return PromptMatch::One(server.clone(), theirs.to_owned());
    }
    let rest = |server: &ServerName| {
        let rest = name.strip_prefix(&*server.0)?.strip_prefix('_')?;
        Some((server.clone(), rest.to_owned()))
    };
    let mut fitting: Vec<_> = offered.iter().filter_map(rest).collect();
    match (fitting.pop(), fitting.is_empty()) {
        (None, _) => PromptMatch::Nothing,
        (Some((server, theirs)), true) => PromptMatch::One(server, theirs),
        (Some(last), false) => {
            let dotted = fitting.into_iter().chain([last]);
            PromptMatch::Unclear(
                dotted
                    .map(|(it, rest)| format!("{}.{rest}", it.0))
                    .collect(),
            )
        }
    }
}

/// Returns the server to which a prompt belongs, and the prompt's name at that server.
pub(super) fn whose(
    context: &ServeContext,
    tool_index: &ToolIndex,
    name: &str,
) -> Result<(ServerName, String), RpcErrorResponse> {
    let offered = context.settings().offers.of(tool_index, OfferKind::Prompts);
    match meant(&offered, name) {
        PromptMatch::One(server, theirs) => Ok((server, theirs)),
        PromptMatch::Nothing => Err(RpcErrorResponse::invalid(format!(
            "there is no prompt `{}`",
            sanitize(name)
        ))),
        PromptMatch::Unclear(names) => Err(RpcErrorResponse::invalid(format!(
            "ambiguous prompt name `{}`; use one of: {}",
            sanitize(name),
            sanitize(&names.join(", "))
        ))),
    }
}

pub(in crate::serve) async fn get(
    context: &ServeContext,
    tool_index: &ToolIndex,
    request: &Request,
) -> Result<Value, RpcErrorResponse> {
    let name = request.params.get("name").and_then(Value::as_str);
    let name =
        name.ok_or_else(|| RpcErrorResponse::invalid("`name` is missing or not a string"))?;
    let (server, theirs) = whose(context, tool_index, name)?;
    let mut params = Map::new();
    params.insert("name".into(), theirs.clone().into());
    match request.params.get("arguments") {
        None | Some(Value::Null) => {}
        Some(arguments @ Value::Object(_)) => {
            params.insert("arguments".into(), arguments.clone());
        }
        Some(_) => return Err(RpcErrorResponse::invalid("`arguments` is not an object")),
    }
    let fetch = Fetch {
        method: "prompts/get",
        params,
        name: Some(theirs),
        bytes_max: usize::MAX,
    };
    let result = fetched(context, tool_index, request, &server, fetch).await;
    let prompt = result.and_then(|result| shown_prompt(context, &server, &result));
    prompt.map_err(|unfetched| refusal(&server, unfetched))
}

fn shown_prompt(
    context: &ServeContext,
    server: &ServerName,
    theirs: &Value,
) -> Result<Value, FetchError> {
    let messages = theirs.get("messages").and_then(Value::as_array);
    let messages = messages.into_iter().flatten().take(MESSAGES_MAX);
    let messages = messages.map(|theirs| {
        let mut message = message(theirs)?;
        if let Some(content) = message.get_mut("content") {
            readdressed(context, server, content);
        }
        Some(message)
    });
    let Some(messages) = messages.collect::<Option<Vec<_>>>() else {
        let why = "the prompt has a message that is invalid or has an unknown role";
        return Err(unusable(why));
    };
    let mut prompt = Value::from(texts(theirs, &["description"]));
    set_member(&mut prompt, "messages", messages);
    Ok(prompt)
}

/// Returns a message if its role is `user` or `assistant`. A prompt of a server must not contain
/// system messages.
fn message(theirs: &Value) -> Option<Value> {
    let role = theirs.get("role").and_then(Value::as_str);
    let role = role.filter(|it| matches!(*it, "user" | "assistant"))?;
    let mut message = Map::new();
    message.insert("role".into(), role.into());
    message.insert("content".into(), content(theirs.get("content")?)?.into());
    Some(message.into())
}

/// Returns one content block with the members that the protocol defines.
fn content(theirs: &Value) -> Option<Map<String, Value>> {
    let kind = theirs.get("type")?.as_str()?;
    let mut content = match kind {
        "text" | "image" | "audio" => texts(theirs, &["mimeType"]),
        "resource_link" => texts(theirs, &["name", "title", "description", "mimeType"]),
        "resource" => {
            let mut content = Map::new();
            let resource = theirs.get("resource").filter(|it| it.is_object())?;
            content.insert("resource".into(), contents(resource).into());
            content
        }
        _ => return None,
    };
    content.insert("type".into(), kind.into());
    for (of, key) in [
        ("text", "text"),
        ("image", "data"),
        ("audio", "data"),
        ("resource_link", "uri"),
    ] {
        if of == kind {
            let text = escape::message(theirs.get(key)?.as_str()?);
            content.insert(key.into(), text.into());
        }
    }
    Some(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn listed_prompt_name_is_unambiguous() {
        let offered = ["a", "a_b", "use"].map(|it| ServerName(it.into()));
        let [a, a_b, uses] = &offered;
        for (server, theirs, expected) in [
            (a, "x", "a_x"),
            (a, "b", "a_b"),
            (a, "x.y", "a_x.y"),
            (a, "b_c", "a.b_c"),
            (a, "b.c", "a.b.c"),
            (a_b, "c", "a_b.c"),
            (uses, "tools", "use.tools"),
        ] {
            let listed = name(&offered, server, theirs);
            assert_eq!(listed, expected);
            let expected = PromptMatch::One(server.clone(), theirs.to_owned());
            assert_eq!(meant(&offered, &listed), expected, "{listed}");
        }
        let unclear = PromptMatch::Unclear(vec!["a.b_c".into(), "a_b.c".into()]);
        assert_eq!(meant(&offered, "a_b_c"), unclear);
        for nothing in ["b_c", "c.d", "", "a"] {
            assert_eq!(meant(&offered, nothing), PromptMatch::Nothing, "{nothing}");
        }
    }

    #[test]
    fn prompt_names_with_hidden_characters_are_not_listed() {
        for (theirs, is_listed) in [
            (json!({"name": "x", "arguments": [{"name": "y"}]}), true),
            (json!({"name": "x\u{202e}"}), false),
            (
                json!({"name": "x", "arguments": [{"name": "y\u{1b}[2J"}]}),
                false,
            ),
            (json!({"name": "x", "arguments": [{"name": 1}]}), false),
            (json!({"name": ""}), false),
        ] {
            assert_eq!(entry(&theirs).is_some(), is_listed, "{theirs}");
        }
    }

    #[test]
    fn prompt_message_needs_known_role_and_type() {
        let text = json!({"type": "text", "text": "hi", "more": 1});
        let bare = json!({"type": "text", "text": "hi"});
        for (theirs, expected) in [
            (
                json!({"role": "user", "content": text}),
                Some(json!({"role": "user", "content": bare})),
            ),
            (json!({"role": "system", "content": text}), None),
            (json!({"role": {"x": 1}, "content": text}), None),
            (json!({"role": "user", "content": "hi"}), None),
            (
                json!({"role": "user", "content": {"type": "text", "text": 1}}),
                None,
            ),
            (json!({"role": "user"}), None),
        ] {
            assert_eq!(message(&theirs), expected, "{theirs}");
        }
    }
}
