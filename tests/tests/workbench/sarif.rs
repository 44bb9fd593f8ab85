//! Validates SARIF output against the published schema of version 2.1.0, which comes in an npm
//! package, and compares its fixes with those in the JSON output.

use std::sync::OnceLock;

use serde_json::{Value, json};

use super::planted::{Mistake, PlantedFolder};

/// Returns the published schema, or `None` after printing a `SKIP:` line with the reason.
fn schema() -> Option<&'static jsonschema::Validator> {
    static SCHEMA: OnceLock<Option<jsonschema::Validator>> = OnceLock::new();
    let validator = SCHEMA.get_or_init(|| match tests::sarif::schema() {
        Ok(path) => {
            let text = std::fs::read_to_string(path).expect("the unpacked schema");
            let mut schema: Value = serde_json::from_str(&text).expect("a schema is JSON");
            // The published pattern for languages has one bracket too many.
            let definitions = schema["definitions"].as_object_mut().expect("definitions");
            for definition in definitions.values_mut() {
                let language = definition.pointer_mut("/properties/language");
                language
                    .and_then(Value::as_object_mut)
                    .map(|it| it.remove("pattern"));
            }
            Some(jsonschema::validator_for(&schema).expect("the schema compiles"))
        }
        Err(why) => {
            eprintln!("SKIP: the schema of SARIF: {why:#}");
            None
        }
    });
    validator.as_ref()
}

/// Fails unless a log is valid under the schema.
pub(crate) fn is_valid(log: &Value) {
    let run = &log["runs"][0];
    assert_eq!(log["version"], "2.1.0");
    assert_eq!(run["tool"]["driver"]["name"], "airlock");
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    for result in run["results"].as_array().unwrap() {
        let at = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(rules[at]["id"], result["ruleId"], "{result}");
        assert!(
            result["message"]["text"]
                .as_str()
                .is_some_and(|it| !it.is_empty())
        );
    }
    if let Some(schema) = schema() {
        let errors: Vec<_> = schema.iter_errors(log).map(|it| it.to_string()).collect();
        assert!(errors.is_empty(), "{errors:#?}\n{log:#}");
        let mut broken = log.clone();
        broken["runs"][0]["tool"] = json!({});
        assert!(!schema.is_valid(&broken), "the schema accepts a broken log");
    }
}

#[test]
fn sarif_findings_have_fixes_of_json() {
    let planted = PlantedFolder::new();
    for mistake in PlantedFolder::mistakes()
        .into_iter()
        .filter(Mistake::can_be_found)
    {
        let log = planted
            .check(&mistake, &mistake.text, "sarif")
            .expect_code(32)
            .json();
        is_valid(&log);
        let [result] = log["runs"][0]["results"].as_array().unwrap().as_slice() else {
            panic!("{}: expected one result\n{log:#}", mistake.name);
        };
        let file = format!("planted/{}", mistake.file());
        let location = &result["locations"][0]["physicalLocation"];
        assert_eq!(location["artifactLocation"]["uri"], *file, "{result}");
        let change = &result["fixes"][0]["artifactChanges"][0];
        assert_eq!(change["artifactLocation"]["uri"], *file, "{result}");
        let edits = change["replacements"].as_array().unwrap().iter().map(|it| {
            let region = &it["deletedRegion"];
            let text = it["insertedContent"]["text"].as_str().unwrap().to_owned();
            let start = json!([region["startLine"], region["startColumn"]]);
            (start, json!([region["endLine"], region["endColumn"]]), text)
        });
        let fixed = mistake.fixed(&edits.collect::<Vec<_>>());
        let after = planted
            .check(&mistake, &fixed, "sarif")
            .expect_code(0)
            .json();
        is_valid(&after);
        assert_eq!(after["runs"][0]["results"], json!([]));
    }
}
