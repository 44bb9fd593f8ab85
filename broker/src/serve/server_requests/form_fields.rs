//! Makes a form safe to display, so that no character in the form hides or reorders text. Labels
//! are escaped. Names of fields and choices go back to the server unchanged. A form with invisible
//! characters in such a name is therefore refused.

use serde_json::Value;

use crate::render::escape;

const LABEL_CHARS_MAX: usize = 400;
const HIDDEN: &str = "a name or a value in the form contains invisible characters";

pub(super) fn make_plain(schema: &mut Value) -> Result<(), &'static str> {
    match schema {
        Value::Object(members) => members.iter_mut().try_for_each(|(key, member)| {
            seen(key)?;
            match (key.as_str(), member) {
                // A default text is allowed to have several lines.
                ("default", Value::String(text)) if escape::block(text) == *text => Ok(()),
                ("title" | "description", Value::String(label)) => make_label(label),
                ("enumNames", Value::Array(labels)) => {
                    labels.iter_mut().try_for_each(|label| match label {
                        Value::String(label) => make_label(label),
                        other => make_plain(other),
                    })
                }
                // The keys of this object are names of fields. A field may even have a name such as
                // `title`.
                ("properties", Value::Object(fields)) => {
                    fields.iter_mut().try_for_each(|(name, field)| {
                        seen(name)?;
                        make_plain(field)
                    })
                }
                (_, member) => make_plain(member),
            }
        }),
        Value::Array(items) => items.iter_mut().try_for_each(make_plain),
        Value::String(text) => seen(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

fn make_label(label: &mut String) -> Result<(), &'static str> {
    *label = escape::brief(label, LABEL_CHARS_MAX);
    Ok(())
}

fn seen(text: &str) -> Result<(), &'static str> {
    if escape::line(text) == text {
        Ok(())
    } else {
        Err(HIDDEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const HIDES: &str = "A\u{202e}B";
    const SHOWN: &str = "A\\u{202e}B";

    #[test]
    fn labels_are_spelled_out_everywhere() {
        let form = |label: &str| {
            json!({"type": "object", "title": label, "description": label, "properties": {
                "title": {"type": "string", "title": label, "default": "two\nlines"},
                "a": {"enum": ["x"], "enumNames": [label]},
                "b": {"oneOf": [{"const": "x", "title": label}]},
                "c": {"items": {"anyOf": [{"const": "x", "title": label}]}},
            }})
        };
        let mut shown = form(HIDES);
        make_plain(&mut shown).unwrap();
        assert_eq!(shown, form(SHOWN));
    }

    #[test]
    fn form_with_hidden_text_in_answers_is_not_shown() {
        for field in [
            json!({"enum": [HIDES]}),
            json!({"default": HIDES}),
            json!({"enum": ["a\n\nAllow call 3?"]}),
            json!({"const": "a\tb"}),
            json!({"a\nb": 1}),
            json!({"oneOf": [{"const": HIDES, "title": "x"}]}),
            json!({"items": {"enum": [HIDES]}}),
            json!({HIDES: 1}),
            json!({"title": {"x": HIDES}}),
        ] {
            let mut form = json!({"properties": {"x": field}});
            assert_eq!(make_plain(&mut form), Err(HIDDEN), "{form}");
        }
        let mut form = json!({"properties": {HIDES: {"type": "string"}}});
        assert_eq!(make_plain(&mut form), Err(HIDDEN));
    }
}
