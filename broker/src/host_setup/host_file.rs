//! Reads and edits the table of servers in a host's configuration file. An edit keeps the comments
//! and the layout of everything else in the file.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use serde_json::{Map, Value};
use toml_edit::{DocumentMut, Item, Table, TableLike};

use super::command::PACKAGE;
use super::known::{Format, HostFile};

/// The name of airlock's own entry.
pub(crate) const AIRLOCK: &str = "airlock";
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Why a file cannot be read or edited. Contains no text of the file, which may hold credentials.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum FileError {
    #[error("the file is not valid {format}, line {line}")]
    Syntax { format: &'static str, line: usize },
    #[error("`{0}` is not a table of servers")]
    NotATable(String),
    #[error("the server `{0}` is in the file twice")]
    Twice(String),
}

/// Whether an entry starts `airlock serve`.
pub(crate) fn is_airlock(entry: &Value) -> bool {
    let args = entry.get("args").and_then(Value::as_array);
    let mut words = args.into_iter().flatten().filter_map(Value::as_str);
    let command = entry.get("command").and_then(Value::as_str);
    let program = command.and_then(|it| it.rsplit('/').next());
    let is_ours = |word: &str| word == AIRLOCK || word.starts_with(PACKAGE);
    let is_named = program.is_some_and(is_ours) || words.clone().any(is_ours);
    is_named && words.any(|it| it == "serve")
}

/// Returns the entries of the servers of a place in a host's file.
pub(crate) fn servers_of(file: &HostFile, text: &str) -> Result<Map<String, Value>, String> {
    servers(file.kind.format(), text, &file.keys).map_err(|error| error.to_string())
}

/// Returns the entries of the servers below `keys`. A file without such a table has none.
pub(super) fn servers(
    format: Format,
    text: &str,
    keys: &[String],
) -> Result<Map<String, Value>, FileError> {
    match format {
        Format::Json => {
            let root = parse_json(text)?;
            let Some(object) = object_at(&root, keys)? else {
                return Ok(Map::new());
            };
            let mut servers = Map::new();
            for property in object.properties() {
                let name = property.decoded_name().unwrap_or_default();
                let value = property.to_serde_value().unwrap_or_default();
                if servers.insert(name.clone(), value).is_some() {
                    return Err(FileError::Twice(name));
                }
            }
            Ok(servers)
        }
        Format::Toml => {
            let document = toml::from_str::<toml::Value>(text).map_err(|error| {
                let at = error.span().map_or(0, |span| span.start);
                syntax("TOML", text, at)
            })?;
            let table = keys.iter().try_fold(&document, |at, key| at.get(key));
            let Some(table) = table else {
                return Ok(Map::new());
            };
            let table = table
                .as_table()
                .and_then(|it| serde_json::to_value(it).ok());
            match table {
                Some(Value::Object(servers)) => Ok(servers),
                _ => Err(FileError::NotATable(keys.join("."))),
            }
        }
    }
}

/// Removes entries and adds the entry of airlock.
pub(super) fn edit(
    format: Format,
    text: &str,
    keys: &[String],
    removed: &[String],
    entry: &Value,
) -> Result<String, FileError> {
    match format {
        Format::Json => {
            let root = parse_json(text)?;
            let object = object_at(&root, keys)?;
            let object = object.ok_or_else(|| FileError::NotATable(keys.join(".")))?;
            for name in removed {
                let named = object.properties().into_iter();
                let mut named = named.filter(|it| it.decoded_name().as_deref() == Some(name));
                if let Some(property) = named.next() {
                    property.remove();
                }
            }
            object.append(AIRLOCK, json_input(entry));
            let mark = text.starts_with(BYTE_ORDER_MARK).then_some(BYTE_ORDER_MARK);
            Ok(mark.into_iter().chain(root.to_string().chars()).collect())
        }
        Format::Toml => {
            let mut document: DocumentMut =
                text.parse().map_err(|error: toml_edit::TomlError| {
                    let at = error.span().map_or(0, |span| span.start);
                    syntax("TOML", text, at)
                })?;
            let mut at: &mut dyn TableLike = document.as_table_mut();
            for key in keys {
                let item = at.get_mut(key).and_then(Item::as_table_like_mut);
                at = item.ok_or_else(|| FileError::NotATable(keys.join(".")))?;
            }
            for name in removed {
                at.remove(name);
            }
            at.insert(AIRLOCK, Item::Table(toml_table(entry)));
            Ok(document.to_string())
        }
    }
}

/// Returns the whole content of a JSON file of a host.
pub(super) fn json_document(text: &str) -> Result<Value, FileError> {
    let root = parse_json(text)?;
    Ok(root.to_serde_value().unwrap_or_default())
}

fn parse_json(text: &str) -> Result<CstRootNode, FileError> {
    let options = ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    };
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    CstRootNode::parse(text, &options).map_err(|error| syntax("JSON", text, error.range().start))
}

fn syntax(format: &'static str, text: &str, at: usize) -> FileError {
    let before = text.as_bytes().iter().take(at);
    let line = 1 + before.filter(|byte| **byte == b'\n').count();
    FileError::Syntax { format, line }
}

fn object_at(root: &CstRootNode, keys: &[String]) -> Result<Option<CstObject>, FileError> {
    let wrong = || FileError::NotATable(keys.join("."));
    let Some(value) = root.value() else {
        return Ok(None);
    };
    let mut at = value.as_object().ok_or_else(wrong)?;
    for key in keys {
        let properties = at.properties().into_iter();
        let mut named = properties.filter(|it| it.decoded_name().as_deref() == Some(key));
        let Some(property) = named.next() else {
            return Ok(None);
        };
        if named.next().is_some() {
            return Err(FileError::Twice(key.clone()));
        }
        at = property.object_value().ok_or_else(wrong)?;
    }
    Ok(Some(at))
}

fn json_input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(json_input).collect()),
        Value::Object(members) => {
            let members = members.iter();
            CstInputValue::Object(members.map(|(k, v)| (k.clone(), json_input(v))).collect())
        }
    }
}

fn toml_table(entry: &Value) -> Table {
    let mut table = Table::new();
    for (name, value) in entry.as_object().into_iter().flatten() {
        table.insert(name, Item::Value(toml_value(value)));
    }
    table
}

fn toml_value(value: &Value) -> toml_edit::Value {
    match value {
        Value::Array(items) => items
            .iter()
            .map(toml_value)
            .collect::<toml_edit::Array>()
            .into(),
        Value::Object(members) => {
            let mut table = toml_edit::InlineTable::new();
            for (name, value) in members {
                table.insert(name, toml_value(value));
            }
            table.into()
        }
        Value::String(text) => text.as_str().into(),
        Value::Bool(value) => (*value).into(),
        other => other.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn keys(text: &str) -> Vec<String> {
        text.split('.').map(str::to_owned).collect()
    }

    /// Edits a file, and checks which servers it has and which texts it still has.
    fn check(format: Format, text: &str, at: &str, names: &[&str], kept: &[&str]) {
        let entry = json!({"command": "airlock", "args": ["serve"]});
        let edited = edit(format, text, &keys(at), &["a".to_owned()], &entry).unwrap();
        let after = servers(format, &edited, &keys(at)).unwrap();
        let mut found: Vec<&str> = after.keys().map(String::as_str).collect();
        found.sort_unstable();
        assert_eq!(found, names, "{edited}");
        assert_eq!(after[AIRLOCK], entry, "{edited}");
        for part in kept {
            assert!(edited.contains(part), "{part:?}\n{edited}");
        }
    }

    #[test]
    fn edit_keeps_comments_and_layout_of_json() {
        check(
            Format::Json,
            "\u{feff}{\n\t// theme\n\t\"theme\":  \"dark\",\n\t\"mcpServers\": {\n\t\t\"a\": {\"command\": \"x\"},\n\t\t\"b\": {\"command\":\"y\"}, // stays\n\t},\n}\n",
            "mcpServers",
            &["airlock", "b"],
            &[
                "\u{feff}{\n\t// theme\n\t\"theme\":  \"dark\",",
                "\"b\": {\"command\":\"y\"}",
                "// stays",
            ],
        );
    }

    #[test]
    fn edit_keeps_comments_and_layout_of_toml() {
        check(
            Format::Toml,
            "model = \"x\"  # the model\n\n[mcp_servers.a]\ncommand = \"x\"\n\n[mcp_servers.a.env]\nA = \"b\"\n\n# tools\n[tools]\nweb  = true\n",
            "mcp_servers",
            &["airlock"],
            &[
                "model = \"x\"  # the model\n",
                "# tools\n[tools]\nweb  = true\n",
            ],
        );
    }

    #[test]
    fn invalid_file_is_refused_without_quoting_it() {
        for (format, text, why) in [
            (
                Format::Json,
                "{\n \"a\": hush }",
                "the file is not valid JSON, line 2",
            ),
            (Format::Json, "{\"m\": 1}", "`m` is not a table of servers"),
            (
                Format::Json,
                "{\"m\": {\"a\": 1, \"a\": 2}}",
                "the server `a` is in the file twice",
            ),
            (
                Format::Toml,
                "a = 1\nm = hush",
                "the file is not valid TOML, line 2",
            ),
            (Format::Toml, "m = 1", "`m` is not a table of servers"),
        ] {
            let error = servers(format, text, &keys("m")).unwrap_err();
            assert_eq!(error.to_string(), why);
        }
        assert!(servers(Format::Json, "", &keys("m")).unwrap().is_empty());
        assert!(
            servers(Format::Toml, "a = 1", &keys("m"))
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn entry_of_airlock_is_recognised() {
        for (entry, expected) in [
            (
                json!({"command": "/opt/airlock", "args": ["serve", "--config", "a"]}),
                true,
            ),
            (
                json!({"command": "npx", "args": ["-y", "airlock-mcp", "serve"]}),
                true,
            ),
            (json!({"command": "airlock", "args": ["run"]}), false),
            (json!({"command": "npx", "args": ["serve"]}), false),
            (json!({"url": "https://airlock.example/serve"}), false),
        ] {
            assert_eq!(is_airlock(&entry), expected, "{entry}");
        }
    }
}
