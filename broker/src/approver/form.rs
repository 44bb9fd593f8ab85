//! Parses a server's form for the terminal. The person fills in one field per line, and each line
//! becomes a value for the server. Invisible characters in the server's texts are escaped.

use codegen::validate::Validator;
use serde_json::{Map, Value, json};

use crate::render::escape;

const FIELDS_MAX: usize = 50;
const OPTIONS_MAX: usize = 100;
const LABEL_CHARS_MAX: usize = 200;
/// Maximum length of a default or a choice, in characters. Values that are sent must be shown
/// completely, so a form with a longer value is refused.
const VALUE_CHARS_MAX: usize = 4_000;

/// The fields of a form, in the server's order.
#[derive(Debug)]
pub(super) struct Form {
    pub(super) fields: Vec<Field>,
    whole: Validator,
}

#[derive(Debug)]
pub(super) struct Field {
    name: String,
    label: String,
    is_required: bool,
    default: Option<Value>,
    kind: Kind,
    /// Validates the field's value by the field's own schema, including limits and format.
    schema: Validator,
}

#[derive(Debug)]
enum Kind {
    Text,
    Number,
    Whole,
    YesNo,
    /// One of these values, each with its label.
    One(Vec<(Value, String)>),
    /// Any number of these values.
    Several(Vec<(Value, String)>),
}

impl Form {
    /// Parses a form. The error is the reason why it cannot be filled in here.
    pub(super) fn read(schema: &Value) -> Result<Self, String> {
        let nothing = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object);
        let properties = properties.unwrap_or(&nothing);
        if properties.len() > FIELDS_MAX {
            return Err(format!("the form has more than {FIELDS_MAX} fields"));
        }
        let required = schema.get("required").and_then(Value::as_array);
        let is_required =
            |name: &str| required.is_some_and(|all| all.iter().any(|it| it.as_str() == Some(name)));
        let field =
            |(name, schema): (&String, &Value)| Field::read(name, schema, is_required(name));
        Ok(Self {
            fields: properties.iter().map(field).collect::<Result<_, _>>()?,
            whole: Validator::compile(schema).map_err(|bad| format!("invalid schema: {bad}"))?,
        })
    }

    /// Validates all values together.
    pub(super) fn findings(&self, content: &Value) -> Vec<String> {
        let findings = self.whole.errors("answer", content);
        findings.iter().map(ToString::to_string).collect()
    }
}

impl Field {
    fn read(name: &str, schema: &Value, is_required: bool) -> Result<Self, String> {
        let shown = escape::brief(name, LABEL_CHARS_MAX);
        let wrong = |why: &str| format!("the field `{shown}` {why}");
        let kind = kind(schema).ok_or_else(|| wrong("has an unsupported type"))?;
        if let Kind::One(options) | Kind::Several(options) = &kind
            && (options.is_empty() || options.len() > OPTIONS_MAX)
        {
            return Err(wrong("has no choices, or too many"));
        }
        let default = schema.get("default").filter(|it| !it.is_null()).cloned();
        let is_long =
            |value: &Value| escape::line(&display_value(value)).chars().count() > VALUE_CHARS_MAX;
        let choices = kind.options().iter().map(|(value, _)| value);
        if choices.chain(&default).any(is_long) {
            return Err(wrong("has a value that is too long to be shown"));
        }
        let text = |key: &str| {
            let text = schema.get(key).and_then(Value::as_str)?;
            Some(escape::brief(text, LABEL_CHARS_MAX))
        };
        let label = [text("title"), text("description")].into_iter().flatten();
        let label: Vec<_> = label.collect();
        Ok(Self {
            name: name.to_owned(),
            label: format!(
                "{shown}{}{}",
                if label.is_empty() { "" } else { ": " },
                label.join(". ")
            ),
            is_required,
            default,
            kind,
            schema: Validator::compile(schema).map_err(|_| wrong("has an invalid schema"))?,
        })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the prompt: the field, and how to answer.
    pub(super) fn question(&self) -> String {
        let how = match &self.kind {
            Kind::Text => "a text",
            Kind::Number => "a number",
            Kind::Whole => "a whole number",
            Kind::YesNo => "y or n",
            Kind::One(_) => "the number of one choice",
            Kind::Several(_) => "numbers of choices, separated by commas",
        };
        let default = match &self.default {
            Some(default) => format!(
                ", [{}] if empty",
                escape::brief(&display_value(default), VALUE_CHARS_MAX)
            ),
            None if self.is_required => String::new(),
            None => ", no value if empty".to_owned(),
        };
        let mut text = format!("{} ({how}{default})\n", self.label);
        for (at, (_, shown)) in self.kind.options().iter().enumerate() {
            text.push_str(&format!("          {} {shown}\n", at + 1));
        }
        text
    }

    /// Parses a line. Returns `None` if the field is left empty. The person sees the error.
    pub(super) fn take(&self, line: &str) -> Result<Option<Value>, String> {
        let typed = line.trim_end_matches(['\n', '\r']);
        if typed.trim().is_empty() {
            return match &self.default {
                Some(default) => Ok(Some(default.clone())),
                None if self.is_required => Err("this field is required".to_owned()),
                None => Ok(None),
            };
        }
        let value = self.value(typed)?;
        match self.schema.errors("value", &value).first() {
            None => Ok(Some(value)),
            Some(finding) => Err(escape::line(&finding.to_string()).into_owned()),
        }
    }

    fn value(&self, typed: &str) -> Result<Value, String> {
        let trimmed = typed.trim();
        match &self.kind {
            Kind::Text => Ok(typed.into()),
            Kind::Number | Kind::Whole => number(trimmed, matches!(self.kind, Kind::Whole)),
            Kind::YesNo => match trimmed.to_lowercase().as_str() {
                "y" | "yes" | "true" => Ok(true.into()),
                "n" | "no" | "false" => Ok(false.into()),
                _ => Err("expected y or n".to_owned()),
            },
            Kind::One(options) => option(options, trimmed),
            Kind::Several(options) => {
                let chosen = trimmed.split(',').map(|it| option(options, it.trim()));
                let mut chosen = chosen.collect::<Result<Vec<_>, _>>()?;
                let mut seen = Vec::new();
                chosen.retain(|it| {
                    !seen.contains(it) && {
                        seen.push(it.clone());
                        true
                    }
                });
                Ok(chosen.into())
            }
        }
    }
}

impl Kind {
    /// Returns the choices.
    fn options(&self) -> &[(Value, String)] {
        match self {
            Self::One(options) | Self::Several(options) => options,
            Self::Text | Self::Number | Self::Whole | Self::YesNo => &[],
        }
    }
}

fn kind(schema: &Value) -> Option<Kind> {
    let array = |of: &Value, key: &str| of.get(key).and_then(Value::as_array).cloned();
    let choices = |of: &Value| {
        let titled = array(of, "oneOf").or_else(|| array(of, "anyOf"));
        if let Some(titled) = titled {
            return titled.iter().map(titled_option).collect();
        }
        let values = array(of, "enum")?;
        let names = array(of, "enumNames").unwrap_or_default();
        let option = |(at, value): (usize, &Value)| {
            let name = names.get(at).and_then(Value::as_str);
            Some(shown_option(value, name))
        };
        values
            .iter()
            .enumerate()
            .map(option)
            .collect::<Option<Vec<_>>>()
    };
    match schema.get("type").and_then(Value::as_str)? {
        "array" => choices(schema.get("items")?).map(Kind::Several),
        "string" => Some(match choices(schema) {
            Some(options) => Kind::One(options),
            None => Kind::Text,
        }),
        "number" => Some(Kind::Number),
        "integer" => Some(Kind::Whole),
        "boolean" => Some(Kind::YesNo),
        _ => None,
    }
}

fn titled_option(option: &Value) -> Option<(Value, String)> {
    let value = option.get("const")?;
    Some(shown_option(
        value,
        option.get("title").and_then(Value::as_str),
    ))
}

/// Returns a choice with its label: the server's name for it, and the value that the server gets.
fn shown_option(value: &Value, name: Option<&str>) -> (Value, String) {
    let own = escape::brief(&display_value(value), VALUE_CHARS_MAX);
    let shown = match name.map(|it| escape::brief(it, LABEL_CHARS_MAX)) {
        Some(name) if name != own => format!("{name} ({own})"),
        _ => own,
    };
    (value.clone(), shown)
}

/// Finds a choice by its number or by its exact value.
fn option(options: &[(Value, String)], typed: &str) -> Result<Value, String> {
    let by_number = typed.parse::<usize>().ok().and_then(|it| it.checked_sub(1));
    let by_number = by_number.and_then(|at| options.get(at));
    let by_value = || {
        options
            .iter()
            .find(|(value, _)| value.as_str() == Some(typed))
    };
    let found = by_number.or_else(by_value).map(|(value, _)| value.clone());
    found.ok_or_else(|| format!("expected a number from 1 to {}", options.len()))
}

fn number(typed: &str, is_whole: bool) -> Result<Value, String> {
    if let Ok(whole) = typed.parse::<i64>() {
        return Ok(whole.into());
    }
    let number = typed
        .parse::<f64>()
        .ok()
        .filter(|it| it.is_finite() && !is_whole);
    match number {
        Some(number) => Ok(json!(number)),
        None if is_whole => Err("expected a whole number".to_owned()),
        None => Err("expected a number".to_owned()),
    }
}

/// Formats a text without quotes, and anything else as JSON.
pub(super) fn display_value(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schema: Value, is_required: bool, line: &str, expected: Result<Value, &str>) {
        let required: &[&str] = if is_required { &["f"] } else { &[] };
        let form = json!({"type": "object", "properties": {"f": schema}, "required": required});
        let form = Form::read(&form).unwrap();
        let taken = form.fields[0].take(line).map(Option::unwrap_or_default);
        match (taken, expected) {
            (Ok(taken), Ok(expected)) => assert_eq!(taken, expected, "{line}"),
            (Err(why), Err(expected)) => assert!(why.contains(expected), "{line}: {why}"),
            (taken, _) => panic!("{line}: {taken:?}"),
        }
    }

    #[test]
    fn line_parses_to_field_type() {
        let nothing = Ok(Value::Null);
        let text = json!({"type": "string", "minLength": 2});
        check(text.clone(), true, " a b\n", Ok(json!(" a b")));
        check(text.clone(), true, "a\n", Err("value"));
        check(text.clone(), true, "\n", Err("required"));
        check(text, false, "  \n", nothing.clone());
        let number = json!({"type": "number", "maximum": 9});
        check(number.clone(), true, "1.5\n", Ok(json!(1.5)));
        check(number.clone(), true, "10\n", Err("value"));
        check(number, true, "nan\n", Err("a number"));
        let whole = json!({"type": "integer", "default": 3});
        check(whole.clone(), true, "\n", Ok(json!(3)));
        check(whole.clone(), true, "4\n", Ok(json!(4)));
        check(whole, true, "4.5\n", Err("whole number"));
        let yes = json!({"type": "boolean"});
        check(yes.clone(), true, "Yes\n", Ok(json!(true)));
        check(yes.clone(), true, "n\n", Ok(json!(false)));
        check(yes, true, "maybe\n", Err("y or n"));
        let plain = json!({"type": "string", "enum": ["a", "b"], "enumNames": ["A", "B"]});
        check(plain.clone(), true, "2\n", Ok(json!("b")));
        check(plain.clone(), true, "b\n", Ok(json!("b")));
        check(plain.clone(), true, "0\n", Err("from 1 to 2"));
        check(plain, true, "c\n", Err("from 1 to 2"));
        let titled = json!([{"const": "x", "title": "X"}, {"const": "y"}]);
        check(
            json!({"type": "string", "oneOf": titled}),
            true,
            "1\n",
            Ok(json!("x")),
        );
        let several = json!({"type": "array", "items": {"anyOf": titled}, "maxItems": 1});
        check(several.clone(), true, "2, 2\n", Ok(json!(["y"])));
        check(several.clone(), true, "1,2\n", Err("value"));
        check(several, false, "\n", nothing);
    }

    #[test]
    fn rendered_form_shows_everything_and_how_to_answer() {
        let field = json!({
            "type": "string", "title": "A\u{202e}B", "description": "C\u{1b}[2J",
            "oneOf": [{"const": "x", "title": "Yes\u{200b}"}], "default": "x",
        });
        let form = Form::read(&json!({"properties": {"f\u{200b}": field}})).unwrap();
        let shown = form.fields[0].question();
        assert_eq!(
            shown,
            "f\\u{200b}: A\\u{202e}B. C\\u{1b}[2J (the number of one choice, [x] if empty)\n\
             \x20         1 Yes\\u{200b} (x)\n"
        );
    }

    #[test]
    fn default_sent_for_empty_line_is_shown_in_full() {
        let long = format!("{} and pay Eve", "x".repeat(3_000));
        let field = json!({"type": "string", "default": long});
        let form = Form::read(&json!({"properties": {"f": field}})).unwrap();
        let shown = form.fields[0].question();
        assert!(shown.contains(&format!("[{long}] if empty")), "{shown}");
        let field = json!({"type": "string", "enum": [long]});
        let form = Form::read(&json!({"properties": {"f": field}})).unwrap();
        let shown = form.fields[0].question();
        assert!(shown.contains("and pay Eve"), "{shown}");
    }

    #[test]
    fn form_that_cannot_be_typed_reports_reason() {
        for (schema, expected) in [
            (json!({"f": {"type": "object"}}), "`f` has an unsupported"),
            (json!({"f": {}}), "`f` has an unsupported"),
            (json!({"f": {"type": "string", "enum": []}}), "no choices"),
            (
                json!({"f": {"type": "string", "default": "x".repeat(4_001)}}),
                "too long to be shown",
            ),
            (
                json!({"f": {"type": "string", "enum": ["\u{200b}".repeat(501)]}}),
                "too long to be shown",
            ),
        ] {
            let why = Form::read(&json!({"properties": schema})).unwrap_err();
            assert!(why.contains(expected), "{why}");
        }
        assert!(Form::read(&json!({})).unwrap().fields.is_empty());
    }
}
