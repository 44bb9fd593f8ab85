//! Prompts of servers beside our own one, named `server_prompt`, and `server.prompt`
//! where that could be read in another way. Which name means what follows from the
//! names of the offered servers alone, whatever any of them lists: the part before the
//! first dot is a server, and without one exactly one server has to fit.

use std::collections::HashSet;

use airlock_core::id::ServerName;
use serde_json::{Map, Value};

use super::listing::{List, listed};
use super::{What, contents, fetched, is_plain, readdressed, refusal, texts, unusable};
use crate::serve::desk::Desk;
use crate::serve::prompt;
use crate::serve::request::Request;
use crate::serve::rpc::{Refusal, put, shown};
use crate::serve::shelf::Shelf;
use crate::upstream::fetch::{Fetch, Unfetched};

const LIST: List = List {
    what: What::Prompts,
    method: "prompts/list",
    key: "prompts",
    shown: entry,
};
const NAME_BYTES_MAX: usize = 256;
const ARGUMENTS_MAX: usize = 100;
const MESSAGES_MAX: usize = 1_000;

pub(in crate::serve) async fn list(desk: &Desk, shelf: &Shelf, request: &Request) -> Value {
    let mut result = prompt::list();
    let mut prompts: Vec<Value> = result
        .get_mut("prompts")
        .and_then(Value::as_array_mut)
        .map(std::mem::take)
        .unwrap_or_default();
    let offered = desk.settings().offers.of(shelf, What::Prompts);
    let mut taken = HashSet::new();
    for of_server in listed(desk, shelf, request, LIST).await {
        for entry in &of_server.pages.items {
            let Some(theirs) = entry.get("name").and_then(Value::as_str) else {
                continue;
            };
            let name = name(&offered, &of_server.server, theirs);
            if taken.insert(name.clone()) {
                let mut entry = entry.clone();
                put(&mut entry, "name", name);
                prompts.push(entry);
            }
        }
    }
    put(&mut result, "prompts", prompts);
    result
}

/// What is shown of a prompt, under the name that it has at its server. One whose names would
/// have to be changed to be seen could not be asked for.
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

/// The name of a prompt in the list: one that means it and nothing else.
fn name(offered: &[ServerName], server: &ServerName, theirs: &str) -> String {
    let flat = format!("{}_{theirs}", server.0);
    match meant(offered, &flat) {
        Meant::One(it, rest) if it == *server && rest == theirs && flat != prompt::NAME => flat,
        _ => format!("{}.{theirs}", server.0),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Meant {
    Nothing,
    /// A server, and how it calls the prompt.
    One(ServerName, String),
    /// It could be a prompt of each of these.
    Unclear(Vec<String>),
}

/// How a name is read where these servers are offered. The names of servers have no dots.
fn meant(offered: &[ServerName], name: &str) -> Meant {
    if let Some((server, theirs)) = name.split_once('.')
        && let Some(server) = offered.iter().find(|it| &*it.0 == server)
    {
        return Meant::One(server.clone(), theirs.to_owned());
    }
    let rest = |server: &ServerName| {
        let rest = name.strip_prefix(&*server.0)?.strip_prefix('_')?;
        Some((server.clone(), rest.to_owned()))
    };
    let mut fitting: Vec<_> = offered.iter().filter_map(rest).collect();
    match (fitting.pop(), fitting.is_empty()) {
        (None, _) => Meant::Nothing,
        (Some((server, theirs)), true) => Meant::One(server, theirs),
        (Some(last), false) => {
            let dotted = fitting.into_iter().chain([last]);
            Meant::Unclear(
                dotted
                    .map(|(it, rest)| format!("{}.{rest}", it.0))
                    .collect(),
            )
        }
    }
}

/// Whose prompt a name means, and what it is called there.
pub(super) fn whose(
    desk: &Desk,
    shelf: &Shelf,
    name: &str,
) -> Result<(ServerName, String), Refusal> {
    let offered = desk.settings().offers.of(shelf, What::Prompts);
    match meant(&offered, name) {
        Meant::One(server, theirs) => Ok((server, theirs)),
        Meant::Nothing => Err(Refusal::invalid(format!(
            "there is no prompt `{}`",
            shown(name)
        ))),
        Meant::Unclear(names) => Err(Refusal::invalid(format!(
            "`{}` could be any of several prompts: {}",
            shown(name),
            shown(&names.join(", "))
        ))),
    }
}

pub(in crate::serve) async fn get(
    desk: &Desk,
    shelf: &Shelf,
    request: &Request,
) -> Result<Value, Refusal> {
    let name = request.params.get("name").and_then(Value::as_str);
    let name = name.ok_or_else(|| Refusal::invalid("`name` is missing or not a string"))?;
    let (server, theirs) = whose(desk, shelf, name)?;
    let mut params = Map::new();
    params.insert("name".into(), theirs.clone().into());
    match request.params.get("arguments") {
        None | Some(Value::Null) => {}
        Some(arguments @ Value::Object(_)) => {
            params.insert("arguments".into(), arguments.clone());
        }
        Some(_) => return Err(Refusal::invalid("`arguments` is not an object")),
    }
    let fetch = Fetch {
        method: "prompts/get",
        params,
        name: Some(theirs),
        bytes_max: usize::MAX,
    };
    let result = fetched(desk, shelf, request, (&server, fetch)).await;
    let prompt = result.and_then(|result| shown_prompt(desk, &server, &result));
    prompt.map_err(|unfetched| refusal(&server, unfetched))
}

fn shown_prompt(desk: &Desk, server: &ServerName, theirs: &Value) -> Result<Value, Unfetched> {
    let messages = theirs.get("messages").and_then(Value::as_array);
    let messages = messages.into_iter().flatten().take(MESSAGES_MAX);
    let messages = messages.map(|theirs| {
        let mut message = message(theirs)?;
        if let Some(content) = message.get_mut("content") {
            readdressed(desk, server, content);
        }
        Some(message)
    });
    let Some(messages) = messages.collect::<Option<Vec<_>>>() else {
        let why = "a message of its prompt is invalid or has an unknown role";
        return Err(unusable(why));
    };
    let mut prompt = Value::from(texts(theirs, &["description"]));
    put(&mut prompt, "messages", messages);
    Ok(prompt)
}

/// A prompt speaks for the user or the assistant, and never for whoever set them up.
fn message(theirs: &Value) -> Option<Value> {
    let role = theirs.get("role").and_then(Value::as_str);
    let role = role.filter(|it| matches!(*it, "user" | "assistant"))?;
    let mut message = Map::new();
    message.insert("role".into(), role.into());
    message.insert("content".into(), content(theirs.get("content")?)?.into());
    Some(message.into())
}

/// One block, with what the protocol has for it.
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
            content.insert(key.into(), theirs.get(key)?.as_str()?.into());
        }
    }
    Some(content)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_name_in_the_list_means_one_prompt_and_nothing_else() {
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
            let expected = Meant::One(server.clone(), theirs.to_owned());
            assert_eq!(meant(&offered, &listed), expected, "{listed}");
        }
        let unclear = Meant::Unclear(vec!["a.b_c".into(), "a_b.c".into()]);
        assert_eq!(meant(&offered, "a_b_c"), unclear);
        for nothing in ["b_c", "c.d", "", "a"] {
            assert_eq!(meant(&offered, nothing), Meant::Nothing, "{nothing}");
        }
    }

    #[test]
    fn names_that_hide_something_are_not_listed() {
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
    fn a_message_is_the_users_or_the_assistants_and_of_a_known_kind() {
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
