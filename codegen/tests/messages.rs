//! `messages/NAME.json` contains a schema and arguments that do not fit the schema. `NAME.txt`
//! contains the resulting messages. Some of the schemas are modelled on schemas of real servers.
//! With `AIRLOCK_BLESS=1` the texts are rewritten instead of compared.
#![expect(clippy::disallowed_methods, reason = "goldens are files")]
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot read its input has failed"
)]

use std::fs;
use std::path::Path;

use codegen::validate::{Severity, Validator};
use serde_json::Value;

#[test]
fn wrong_arguments_match_message_goldens() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/messages");
    let bless = std::env::var("AIRLOCK_BLESS").is_ok_and(|it| it == "1");
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|it| it != "json") {
            continue;
        }
        let case: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let wrong = case.get("wrong").and_then(Value::as_array).unwrap();
        count += wrong.len();
        let text = messages(case.get("schema").unwrap(), wrong);
        let golden = path.with_extension("txt");
        if bless {
            fs::write(&golden, text).unwrap();
        } else {
            let expected = fs::read_to_string(&golden).unwrap_or_default();
            assert_eq!(
                text,
                expected,
                "{} differs; AIRLOCK_BLESS=1 rewrites it",
                golden.display()
            );
        }
    }
    assert!(count >= 75, "{count}");
}

fn messages(schema: &Value, wrong: &[Value]) -> String {
    let validator = Validator::compile(schema).unwrap();
    let mut text = String::new();
    for value in wrong {
        text.push_str(&format!("{value}\n"));
        let findings = validator.check("args", value);
        assert!(!findings.is_empty(), "{value} fits");
        for finding in findings {
            let mark = if finding.severity == Severity::Warning {
                "warning: "
            } else {
                ""
            };
            text.push_str(&format!("  {mark}{finding}\n"));
        }
    }
    text
}
