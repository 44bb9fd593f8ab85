//! What an argument of a prompt or of an address could be, as its server says.

use airlock_core::id::ServerName;
use serde_json::{Map, Value, json};

use super::{fetched, prompts, refusal, resources};
use crate::serve::desk::Desk;
use crate::serve::prompt;
use crate::serve::request::Request;
use crate::serve::resources as own;
use crate::serve::rpc::{Refusal, shown};
use crate::serve::shelf::Shelf;
use crate::upstream::fetch::Fetch;

/// The protocol allows no more.
const VALUES_MAX: usize = 100;

pub(in crate::serve) async fn complete(
    desk: &Desk,
    shelf: &Shelf,
    request: &Request,
) -> Result<Value, Refusal> {
    let params = &request.params;
    let is_argument = |it: &&Value| it.get("name").is_some_and(Value::is_string);
    let Some(argument) = params.get("argument").filter(is_argument) else {
        return Err(Refusal::invalid("`argument` is missing, or has no `name`"));
    };
    let Some((server, reference)) = meant(desk, shelf, params.get("ref")).await? else {
        return Ok(json!({"completion": {"values": [], "hasMore": false}}));
    };
    let mut asked = Map::new();
    asked.insert("ref".into(), reference);
    asked.insert("argument".into(), argument.clone());
    if let Some(context @ Value::Object(_)) = params.get("context") {
        asked.insert("context".into(), context.clone());
    }
    let fetch = Fetch {
        method: "completion/complete",
        params: asked,
        name: None,
    };
    let result = fetched(shelf, request, &server, fetch).await;
    let result = result.map_err(|unfetched| refusal(&server, unfetched))?;
    let completion = result.get("completion").unwrap_or(&Value::Null);
    let values = completion.get("values").and_then(Value::as_array);
    let texts = values.into_iter().flatten().filter(|it| it.is_string());
    let values: Vec<_> = texts.take(VALUES_MAX).cloned().collect();
    let mut said = json!({"values": values});
    for key in ["total", "hasMore"] {
        if let Some(value) = completion
            .get(key)
            .filter(|it| it.is_u64() || it.is_boolean())
        {
            crate::serve::rpc::put(&mut said, key, value.clone());
        }
    }
    Ok(json!({"completion": said}))
}

/// What is completed, as its server calls it; none for what is our own.
async fn meant(
    desk: &Desk,
    shelf: &Shelf,
    reference: Option<&Value>,
) -> Result<Option<(ServerName, Value)>, Refusal> {
    let text = |key: &str| reference.and_then(|it| it.get(key)).and_then(Value::as_str);
    match text("type") {
        Some("ref/prompt") => {
            let name = text("name").unwrap_or_default();
            if name == prompt::NAME {
                return Ok(None);
            }
            let (server, theirs) = prompts::whose(desk, shelf, name).await?;
            Ok(Some((
                server,
                json!({"type": "ref/prompt", "name": theirs}),
            )))
        }
        Some("ref/resource") => {
            let uri = text("uri").unwrap_or_default();
            if own::is_own(uri) {
                return Ok(None);
            }
            let whose = resources::whose(desk, shelf, uri).await;
            let (server, theirs) = whose.ok_or_else(|| {
                Refusal::invalid(format!("there is no resource `{}`", shown(uri)))
            })?;
            Ok(Some((
                server,
                json!({"type": "ref/resource", "uri": theirs}),
            )))
        }
        _ => Err(Refusal::invalid("`ref` is neither a prompt nor a resource")),
    }
}
