//! A tool file out of what a server says now, without losing what somebody wrote.

use serde_json::{Map, Value};

use crate::canonical;
use crate::description::Description;

/// What somebody may edit of that which is pulled.
const PULLED: [&str; 3] = ["title", "description", "arguments"];

/// What is to become of a tool's file.
#[derive(Debug, Clone, PartialEq)]
pub enum Pulled {
    /// There was none.
    New(Value),
    /// The server says what it said when the file was last compared with it.
    AsBefore,
    /// The server says something else, and what was pulled before was not edited since.
    Renewed(Value),
    /// The server says something else, and somebody has edited the file.
    Edited,
    /// Likewise, and somebody has compared the two: the file is as it was, and up to date.
    Accepted(Value),
}

/// `accept` says that edited files have been compared with what the server says now.
#[must_use]
pub fn pull(upstream: &Description, file: Option<&Value>, accept: bool) -> Pulled {
    let Some(before) = file.and_then(Value::as_object) else {
        return Pulled::New(fresh(upstream, Map::new()));
    };
    let seen = before.get("upstream").and_then(Value::as_str);
    if seen == Some(upstream.upstream.to_string().as_str()) {
        return Pulled::AsBefore;
    }
    let pulled = before.get("pulled").and_then(Value::as_str);
    if pulled == Some(of_pulled(before).as_str()) {
        let mut kept = before.clone();
        kept.retain(|key, _| !PULLED.contains(&key.as_str()));
        return Pulled::Renewed(fresh(upstream, kept));
    }
    if !accept {
        return Pulled::Edited;
    }
    let mut file = before.clone();
    file.insert("upstream".into(), upstream.upstream.to_string().into());
    Pulled::Accepted(Value::Object(file))
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
            Pulled::New(value) => value,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_pulled_is_what_the_server_says() {
        let file = new("Finds.");
        assert_eq!(file["description"], "Finds.");
        assert_eq!(file["arguments"], json!({"q": {"description": "Words."}}));
        assert_eq!(pull(&said("Finds."), Some(&file), false), Pulled::AsBefore);
        let text = super::super::formatted(&file);
        super::super::read(&text, file).unwrap();
    }

    #[test]
    fn what_nobody_edited_is_renewed_and_keeps_its_examples() {
        let mut file = new("Finds.");
        file["examples"] = json!([{"input": {}}]);
        let Pulled::Renewed(file) = pull(&said("Finds more."), Some(&file), false) else {
            panic!("not renewed")
        };
        assert_eq!(file["description"], "Finds more.");
        assert_eq!(file["examples"], json!([{"input": {}}]));
    }

    #[test]
    fn what_somebody_edited_stays_until_they_have_compared_it() {
        let mut file = new("Finds.");
        file["description"] = "Finds, and well.".into();
        let now = said("Finds more.");
        assert_eq!(pull(&now, Some(&file), false), Pulled::Edited);
        let Pulled::Accepted(file) = pull(&now, Some(&file), true) else {
            panic!("not accepted")
        };
        assert_eq!(file["description"], "Finds, and well.");
        assert_eq!(pull(&now, Some(&file), false), Pulled::AsBefore);
        assert_eq!(
            pull(&now, Some(&json!({"name": "t"})), false),
            Pulled::Edited
        );
    }
}
