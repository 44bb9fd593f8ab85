//! Formats findings as SARIF 2.1.0 for review tools, with suggested fixes.

use airlock_core::policy::{Fix, Place};
use serde_json::{Value, json};

/// The findings of one command.
#[derive(Debug, Default)]
pub struct Sarif {
    /// The kinds of results, each with an identifier and a description.
    pub rules: Vec<(&'static str, &'static str)>,
    pub results: Vec<SarifResult>,
}

#[derive(Debug)]
pub struct SarifResult {
    pub rule: &'static str,
    pub level: SarifLevel,
    pub message: String,
    pub place: Option<Place>,
    pub fix: Option<Fix>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SarifLevel {
    Error,
    Warning,
    Note,
}

/// Formats a log. `uri` returns the URI of a file from the name that locations use for it.
#[must_use]
pub fn sarif(log: &Sarif, uri: impl Fn(&str) -> String) -> Value {
    let rule = |(id, about): &(&str, &str)| {
        json!({
            "id": id,
            "shortDescription": {"text": about},
        })
    };
    let rules: Vec<Value> = log.rules.iter().map(rule).collect();
    let index = |id: &str| log.rules.iter().position(|(rule, _)| *rule == id);
    let results: Vec<Value> = log
        .results
        .iter()
        .map(|result| result_json(result, index(result.rule), &uri))
        .collect();
    let driver = json!({
        "name": "airlock",
        "version": env!("CARGO_PKG_VERSION"),
        "rules": rules,
    });
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": driver},
            // Columns count characters, as in all other output of airlock.
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn result_json(result: &SarifResult, index: Option<usize>, uri: &impl Fn(&str) -> String) -> Value {
    let level = match result.level {
        SarifLevel::Error => "error",
        SarifLevel::Warning => "warning",
        SarifLevel::Note => "note",
    };
    let mut shown = json!({
        "ruleId": result.rule,
        "level": level,
        "message": {"text": result.message},
    });
    let mut set = |name: &str, value: Value| {
        if let Some(members) = shown.as_object_mut() {
            members.insert(name.to_owned(), value);
        }
    };
    if let Some(index) = index {
        set("ruleIndex", json!(index));
    }
    if let Some(place) = &result.place {
        let region = json!({"startLine": place.line, "startColumn": place.column});
        let location = json!({
            "artifactLocation": {"uri": uri(&place.file)},
            "region": region,
        });
        set("locations", json!([{"physicalLocation": location}]));
    }
    if let Some(fix) = &result.fix {
        set("fixes", json!([fix_of(fix, uri)]));
    }
    shown
}

fn fix_of(fix: &Fix, uri: &impl Fn(&str) -> String) -> Value {
    let replacement = |edit: &airlock_core::policy::Edit| {
        json!({
            "deletedRegion": {
                "startLine": edit.start.line, "startColumn": edit.start.column,
                "endLine": edit.end.line, "endColumn": edit.end.column,
            },
            "insertedContent": {"text": edit.text},
        })
    };
    let file = fix.edits.first().map_or("", |edit| &*edit.start.file);
    json!({
        "description": {"text": fix.what},
        "artifactChanges": [{
            "artifactLocation": {"uri": uri(file)},
            "replacements": fix.edits.iter().map(replacement).collect::<Vec<_>>(),
        }],
    })
}

/// Formats a path as part of a URI: `/` between its parts, and special characters percent-encoded.
#[must_use]
pub fn uri_of(path: &std::path::Path) -> String {
    let text = path.to_string_lossy();
    let mut uri = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(byte));
            }
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn sarif_path_is_an_encoded_uri() {
        assert_eq!(
            uri_of(Path::new("policies/a b#é.cedar")),
            "policies/a%20b%23%C3%A9.cedar"
        );
        assert_eq!(uri_of(Path::new("/x/y.cedar")), "/x/y.cedar");
    }

    #[test]
    fn sarif_result_names_rule_by_id_and_index() {
        let place = Place {
            file: "p/a.cedar".into(),
            line: 3,
            column: 7,
        };
        let log = Sarif {
            rules: vec![("one", "First."), ("two", "Second.")],
            results: vec![SarifResult {
                rule: "two",
                level: SarifLevel::Warning,
                message: "what".into(),
                place: Some(place),
                fix: None,
            }],
        };
        let shown = sarif(&log, |name| format!("here/{name}"));
        let result = &shown["runs"][0]["results"][0];
        assert_eq!(result["ruleIndex"], 1);
        assert_eq!(result["level"], "warning");
        let location = &result["locations"][0]["physicalLocation"];
        assert_eq!(location["artifactLocation"]["uri"], "here/p/a.cedar");
        assert_eq!(
            location["region"],
            json!({"startLine": 3, "startColumn": 7})
        );
        assert!(result.get("fixes").is_none(), "{result}");
    }
}
