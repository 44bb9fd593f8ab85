//! Prompts of servers beside our own one, named `server_prompt` where they are
//! listed. `server.prompt` names one too, and leaves no doubt.

use airlock_core::id::ServerName;
use serde_json::{Map, Value, json};

use super::{What, fetched, listed, readdressed, refusal, texts};
use crate::serve::desk::Desk;
use crate::serve::prompt;
use crate::serve::request::Request;
use crate::serve::rpc::{Refusal, put, shown};
use crate::serve::shelf::Shelf;
use crate::upstream::fetch::Fetch;

const LIST: (&str, &str) = ("prompts/list", "prompts");
const MESSAGES_MAX: usize = 1_000;

pub(in crate::serve) async fn list(desk: &Desk, shelf: &Shelf) -> Value {
    let mut result = prompt::list();
    let mut prompts: Vec<Value> = result
        .get_mut("prompts")
        .and_then(Value::as_array_mut)
        .map(std::mem::take)
        .unwrap_or_default();
    for (name, _, described) in named(desk, shelf).await {
        let mut entry = texts(&described, &["title", "description"]);
        entry.insert("name".into(), name.into());
        if let Some(Value::Array(arguments)) = described.get("arguments") {
            let arguments: Vec<_> = arguments.iter().map(argument).collect();
            entry.insert("arguments".into(), arguments.into());
        }
        prompts.push(entry.into());
    }
    put(&mut result, "prompts", prompts);
    result
}

fn argument(theirs: &Value) -> Value {
    let mut argument = texts(theirs, &["title", "description"]);
    let name = theirs.get("name").and_then(Value::as_str);
    argument.insert("name".into(), name.unwrap_or_default().into());
    let is_required = theirs.get("required") == Some(&Value::Bool(true));
    argument.insert("required".into(), is_required.into());
    argument.into()
}

/// Each prompt under its name in the list, with its server and what that says of it. Where
/// two would have the same name, the later one is called `server.prompt`.
async fn named(desk: &Desk, shelf: &Shelf) -> Vec<(String, ServerName, Value)> {
    const NAME_BYTES_MAX: usize = 256;
    let mut named: Vec<(String, ServerName, Value)> = Vec::new();
    for (server, prompts) in listed(desk, shelf, What::Prompts, LIST).await {
        for prompt in prompts {
            let Some(theirs) = prompt.get("name").and_then(Value::as_str) else {
                continue;
            };
            let is_shown = !theirs.chars().any(codegen::text::is_invisible);
            if theirs.is_empty() || theirs.len() > NAME_BYTES_MAX || !is_shown {
                continue;
            }
            let flat = format!("{}_{theirs}", server.0);
            let is_taken = named.iter().any(|(name, ..)| *name == flat);
            let name = if is_taken {
                format!("{}.{theirs}", server.0)
            } else {
                flat
            };
            named.push((name, server.clone(), prompt));
        }
    }
    named
}

/// Whose prompt a name means, and what it is called there.
pub(super) async fn whose(
    desk: &Desk,
    shelf: &Shelf,
    name: &str,
) -> Result<(ServerName, String), Refusal> {
    let offered = desk.settings().offers.of(shelf, What::Prompts);
    if let Some((server, theirs)) = name.split_once('.')
        && let Some(server) = offered.iter().find(|it| &*it.0 == server)
    {
        return Ok((server.clone(), theirs.to_owned()));
    }
    let rest = |server: &ServerName| {
        let rest = name.strip_prefix(&*server.0)?.strip_prefix('_')?;
        Some((server.clone(), rest.to_owned()))
    };
    let mut fitting: Vec<_> = offered.iter().filter_map(rest).collect();
    if fitting.len() > 1 {
        let listed = named(desk, shelf).await;
        let listed = listed.into_iter().find(|(flat, ..)| flat == name);
        fitting = listed
            .iter()
            .filter_map(|(_, server, _)| rest(server))
            .collect();
    }
    fitting
        .pop()
        .ok_or_else(|| Refusal::invalid(format!("there is no prompt `{}`", shown(name))))
}

pub(in crate::serve) async fn get(
    desk: &Desk,
    shelf: &Shelf,
    request: &Request,
) -> Result<Value, Refusal> {
    let name = request.params.get("name").and_then(Value::as_str);
    let name = name.ok_or_else(|| Refusal::invalid("`name` is missing, or is no string"))?;
    if name == prompt::NAME {
        return prompt::read(request, desk.settings().mode);
    }
    let (server, theirs) = whose(desk, shelf, name).await?;
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
    };
    let result = fetched(shelf, request, &server, fetch).await;
    let result = result.map_err(|unfetched| refusal(&server, unfetched))?;
    let mut messages: Vec<Value> = match result.get("messages") {
        Some(Value::Array(messages)) => messages.iter().take(MESSAGES_MAX).map(message).collect(),
        _ => Vec::new(),
    };
    for message in &mut messages {
        if let Some(content) = message.get_mut("content") {
            readdressed(desk, &server, content);
        }
    }
    let mut prompt = Value::from(texts(&result, &["description"]));
    put(&mut prompt, "messages", messages);
    Ok(prompt)
}

fn message(theirs: &Value) -> Value {
    let member = |key: &str| theirs.get(key).cloned().unwrap_or_default();
    json!({"role": member("role"), "content": member("content")})
}
