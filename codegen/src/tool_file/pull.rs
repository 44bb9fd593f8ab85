//! Creates or updates a tool file from the server's current description, and keeps the user's
//! edits.

use serde_json::{Map, Value};

use crate::canonical;
use crate::description::Description;

/// The pulled members that a person may edit.
const PULLED: [&str; 3] = ["title", "description", "arguments"];

/// What to do with a tool's file.
#[derive(Debug, Clone, PartialEq)]
pub enum PullOutcome {
    /// There was no file.
    New(Value),
    /// The server's description has not changed since the file was last compared with it.
    AsBefore,
    /// The server's description has changed, and the pulled text was not edited.
    Renewed(Value),
    /// The server's description has changed, and the file was edited.
    Edited,
    /// The server's description has changed, the file was edited, and a person has compared the
    /// two. The content stays, and the file counts as up to date.
    Accepted(Value),
}

/// Decides what to do with a file. `accept` means that a person has compared edited files with the
/// server's current description.
#[must_use]
pub fn pull(upstream: &Description, file: Option<&Value>, accept: bool) -> PullOutcome {
    let Some(before) = file.and_then(Value::as_object) else {
        return PullOutcome::New(fresh(upstream, Map::new()));
    };
    let seen = before.get("upstream").and_then(Value::as_str);
    if seen == Some(upstream.upstream.to_string().as_str()) {
        return PullOutcome::AsBefore;
    }
    let pulled = before.get("pulled").and_then(Value::as_str);
    if pulled == Some(of_pulled(before).as_str()) {
        let mut kept = before.clone();
        kept.retain(|key, _| !PULLED.contains(&key.as_str()));
        return PullOutcome::Renewed(fresh(upstream, kept));
    }
    if !accept {
        return PullOutcome::Edited;
    }
    let mut file = before.clone();
    file.insert("upstream".into(), upstream.upstream.to_string().into());
    PullOutcome::Accepted(Value::Object(file))
}

fn fresh(upstream: &Description, mut file: Map<String, Value>) -> Value {
    file.entry("$schema")
        .or_insert_with(|| "../format.schema.json".into());
    file.insert("name".into(), upstream.name.as_str().into());
    file.insert("upstream".into(), upstream.upstream.to_string().into());
    let texts = [("title", &upstream.title), ("description", &upstream.text)];
    for (key, text) in texts {
        if let Some(text) = text.as_ref().filter(|text| !text.is_empty()) {
            file.insert(key.into(), text.as_str().into());
        }
    }
    let arguments = arguments(&upstream.input_schema);
    if !arguments.is_empty() {
        file.insert("arguments".into(), arguments.into());
    }
    file.insert("pulled".into(), of_pulled(&file).into());
    Value::Object(file)
}

fn arguments(input: &Value) -> Map<String, Value> {
    let properties = input.get("properties").and_then(Value::as_object);
    let mut arguments = Map::new();
    for (name, property) in properties.into_iter().flatten() {
        let prose = property
            .get("description")
            .filter(|it| it.as_str().is_some_and(|it| !it.is_empty()));
        if let Some(prose) = prose {
            let mut argument = Map::new();
            argument.insert("description".into(), prose.clone());
            arguments.insert(name.clone(), argument.into());
        }
    }
    arguments
}

fn of_pulled(file: &Map<String, Value>) -> String {
    let present = PULLED
        .iter()
        .filter_map(|key| Some(((*key).to_owned(), file.get(*key)?.clone())));
    canonical::digest(&Value::Object(present.collect())).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn said(text: &str) -> Description {
        let properties = json!({"q": {"type": "string", "description": "Words."}, "n": {}});
        let tool =
            json!({"name": "t", "description": text, "inputSchema": {"properties": properties}});
        Description::parse("s", &tool).unwrap()
    }

    fn new(text: &str) -> Value {
        match pull(&said(text), None, false) {
            PullOutcome::New(value) => value,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn pulled_file_matches_server() {
        let file = new("Finds.");
        assert_eq!(file["description"], "Finds.");
        assert_eq!(file["arguments"], json!({"q": {"description": "Words."}}));
        assert_eq!(
            pull(&said("Finds."), Some(&file), false),
            PullOutcome::AsBefore
        );
        let text = super::super::formatted(&file);
        super::super::read(&text, file).unwrap();
    }

    #[test]
    fn unedited_file_is_updated_and_keeps_examples() {
        let mut file = new("Finds.");
        file["examples"] = json!([{"input": {}}]);
        let PullOutcome::Renewed(file) = pull(&said("Finds more."), Some(&file), false) else {
            panic!("not renewed")
        };
        assert_eq!(file["description"], "Finds more.");
        assert_eq!(file["examples"], json!([{"input": {}}]));
    }

    #[test]
    fn edited_file_is_kept_until_accepted() {
        let mut file = new("Finds.");
        file["description"] = "Finds, and well.".into();
        let now = said("Finds more.");
        assert_eq!(pull(&now, Some(&file), false), PullOutcome::Edited);
        let PullOutcome::Accepted(file) = pull(&now, Some(&file), true) else {
            panic!("not accepted")
        };
        assert_eq!(file["description"], "Finds, and well.");
        assert_eq!(pull(&now, Some(&file), false), PullOutcome::AsBefore);
        assert_eq!(
            pull(&now, Some(&json!({"name": "t"})), false),
            PullOutcome::Edited
        );
    }
}
