//! Tests whole descriptions: the fixtures, and those of real servers if `AIRLOCK_CORPUS` names
//! their folder. Every description can be rendered, always to the same bytes. No text is lost, and
//! the order of the list has no effect.
#![expect(clippy::disallowed_methods, reason = "the corpus is a folder of files")]
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot read its input has failed"
)]

#[path = "shared/tools.rs"]
mod tools;

use codegen::declare::{Level, declare};
use codegen::stub::StubTable;
use codegen::text::{in_comment, neutralise, sentences};
use codegen::validate::{BadSchema, Validator};
use serde_json::Value;
use tools::{all, corpus};

const LEVELS: [Level; 4] = [Level::Names, Level::Lines, Level::Signatures, Level::Full];

#[test]
fn corpus_tools_render_deterministically_at_every_level() {
    for set in all() {
        let tools = set.descriptions;
        let table = StubTable::build(&tools);
        for level in LEVELS {
            let text = declare(&table, &tools, level, &|_, _| true).text;
            assert!(!text.is_empty());
            assert_eq!(text, declare(&table, &tools, level, &|_, _| true).text);
        }
    }
}

#[test]
fn corpus_names_and_text_do_not_depend_on_order() {
    for set in all() {
        let tools = set.descriptions;
        let mut shuffled = tools.clone();
        shuffled.reverse();
        let middle = shuffled.len() / 3;
        shuffled.rotate_left(middle);
        let (table, other) = (StubTable::build(&tools), StubTable::build(&shuffled));
        for level in LEVELS {
            let text = declare(&table, &tools, level, &|_, _| true).text;
            assert_eq!(text, declare(&other, &shuffled, level, &|_, _| true).text);
        }
    }
}

#[test]
fn corpus_full_text_contains_every_description_sentence() {
    for set in all() {
        let tools = set.descriptions;
        let table = StubTable::build(&tools);
        let text = declare(&table, &tools, Level::Full, &|_, _| true).text;
        let listed = table.servers.iter().flat_map(|it| &it.tools);
        for tool in listed.map(|it| &tools[it.description]) {
            let mut said = vec![("", tool.text.as_deref().unwrap_or_default())];
            said.extend(Prose::of(&tool.input_schema));
            said.extend(
                tool.output_schema
                    .as_deref()
                    .into_iter()
                    .flat_map(Prose::of),
            );
            for (name, prose) in said {
                let folded = in_comment(&neutralise(prose));
                let repeats_the_name = letters(&folded) == letters(name);
                let stands =
                    text.contains(&folded) || sentences(&folded).all(|it| text.contains(it));
                assert!(
                    stands || repeats_the_name,
                    "{}.{} {name}: {folded}",
                    set.name,
                    tool.name
                );
            }
        }
    }
}

/// Collects every `description` of a schema, of inner schemas and of referenced schemas, each with
/// the name of the described property.
struct Prose<'a> {
    root: &'a Value,
    found: Vec<(&'a str, &'a str)>,
    followed: Vec<&'a str>,
}

impl<'a> Prose<'a> {
    fn of(root: &'a Value) -> Vec<(&'a str, &'a str)> {
        let mut prose = Self {
            root,
            found: Vec::new(),
            followed: Vec::new(),
        };
        prose.look(root, "");
        prose.found
    }

    fn look(&mut self, schema: &'a Value, name: &'a str) {
        let Some(fields) = schema.as_object() else {
            return;
        };
        for (keyword, value) in fields {
            match (keyword.as_str(), value) {
                ("description", Value::String(text)) => self.found.push((name, text)),
                ("$ref", Value::String(target)) => self.follow(target, name),
                ("properties" | "patternProperties", Value::Object(inner)) => {
                    inner
                        .iter()
                        .for_each(|(name, inner)| self.look(inner, name));
                }
                ("anyOf" | "oneOf" | "allOf" | "prefixItems" | "items", Value::Array(inner)) => {
                    inner.iter().for_each(|inner| self.look(inner, name));
                }
                ("items" | "additionalProperties" | "additionalItems", inner) => {
                    self.look(inner, name)
                }
                _ => {}
            }
        }
    }

    fn follow(&mut self, target: &'a str, name: &'a str) {
        let found = target
            .strip_prefix('#')
            .and_then(|it| self.root.pointer(it));
        if let Some(found) = found.filter(|_| !self.followed.contains(&target)) {
            self.followed.push(target);
            self.look(found, name);
        }
    }
}

fn letters(text: &str) -> String {
    text.chars()
        .filter(|it| it.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

#[test]
fn corpus_schemas_compile_unless_external() {
    for tool in corpus()
        .into_iter()
        .flatten()
        .flat_map(|it| it.descriptions)
    {
        for schema in [Some(&*tool.input_schema), tool.output_schema.as_deref()]
            .into_iter()
            .flatten()
        {
            match Validator::compile(schema) {
                Ok(_) | Err(BadSchema::ExternalReference { .. }) => {}
                Err(bad) => panic!("{}.{}: {bad}", tool.server, tool.name),
            }
        }
    }
}
