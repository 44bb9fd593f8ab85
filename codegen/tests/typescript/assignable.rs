//! Tests that a JSON value type-checks against the declaration if and only if the schema accepts
//! it, as far as TypeScript can express the schema; `exceptions` lists the rest.

use std::collections::{BTreeMap, BTreeSet};

use codegen::declare::{Level, declare};
use codegen::description::Description;
use codegen::stub::StubTable;
use codegen::text;
use codegen::validate::Validator;
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::compiler::{self, Compiler};
use crate::exceptions::{self, Exception};
use crate::samples::{Dice, changed, sample};
use crate::schemas;
use crate::tools::all;

const GENERATED: usize = 400;
const VALUES_EACH: usize = 8;

/// A tool without parameters gets an empty object.
const ARGUMENT: &str = "type Argument<F extends (...all: any) => any> = \
    Parameters<F> extends [] ? { [k: string]: never } : NonNullable<Parameters<F>[0]>\n";

/// A value for one tool's arguments.
struct Case<'a> {
    tool: &'a Description,
    is_degraded: bool,
    value: Value,
    is_valid: bool,
}

/// A text with all declarations, followed by one assignment per line.
#[derive(Default)]
struct Page<'a> {
    text: String,
    cases: BTreeMap<usize, Case<'a>>,
}

impl<'a> Page<'a> {
    fn of(tools: &'a [Description], values: &mut dyn FnMut(&Value) -> Vec<Value>) -> Self {
        let table = StubTable::build(tools);
        let declared = declare(&table, tools, Level::Signatures, &|_, _| true);
        let mut page = Self {
            text: format!("{}{ARGUMENT}", declared.text),
            ..Self::default()
        };
        let mut line = page.text.lines().count();
        for server in &table.servers {
            for stub in &server.tools {
                let tool = &tools[stub.description];
                let is_degraded = declared
                    .degraded
                    .iter()
                    .any(|it| it.server == server.server && it.wire_name == stub.wire_name);
                let validator = Validator::compile(&tool.input_schema).unwrap();
                let values = values(&tool.input_schema);
                for value in values.into_iter().filter(Value::is_object) {
                    line += 1;
                    let literal = text::json(&value);
                    let member = format!("typeof {}.{}", server.global, stub.member);
                    page.text
                        .push_str(&format!("const c{line}: Argument<{member}> = {literal}\n"));
                    let is_valid = validator.accepts(&value);
                    let case = Case {
                        tool,
                        is_degraded,
                        value,
                        is_valid,
                    };
                    page.cases.insert(line, case);
                }
            }
        }
        page
    }
}

/// Compiles every case of every page; returns the exceptions that occurred.
fn check(
    compiler: &Compiler,
    batch: &str,
    pages: &BTreeMap<String, Page<'_>>,
) -> BTreeSet<Exception> {
    let texts = pages
        .iter()
        .map(|(name, page)| (name.clone(), page.text.clone()))
        .collect();
    let errors = compiler.errors(batch, &texts);
    let mut met = BTreeSet::new();
    let (mut accepted, mut refused) = (0, 0);
    for (name, page) in pages {
        let failed: BTreeMap<usize, &str> = errors
            .get(name)
            .into_iter()
            .flatten()
            .map(|it| (it.line, it.message.as_str()))
            .collect();
        for (line, case) in &page.cases {
            let error = failed.get(line);
            let (schema, value, is_valid) = (&*case.tool.input_schema, &case.value, case.is_valid);
            *(if is_valid {
                &mut accepted
            } else {
                &mut refused
            }) += 1;
            if is_valid == error.is_none() {
                continue;
            }
            let why = match (is_valid, case.is_degraded) {
                (_, true) => Some(vec![Exception::Degraded]),
                (true, _) => exceptions::of_accepted(schema, value),
                (false, _) => exceptions::of_refused(schema, value),
            };
            let Some(why) = why else {
                let shown = declare_one(case.tool);
                panic!(
                    "{name}: {value} is valid: {is_valid}, TypeScript: {error:?}\n{schema}\n{shown}"
                )
            };
            met.extend(why);
        }
        let stray: Vec<_> = failed
            .iter()
            .filter(|(line, _)| !page.cases.contains_key(*line))
            .collect();
        assert!(stray.is_empty(), "{name}: {stray:?}");
    }
    println!("{accepted} valid and {refused} invalid values; exceptions met: {met:?}");
    assert!(
        accepted > 20 && refused > 20,
        "{accepted} valid, {refused} invalid"
    );
    met
}

fn declare_one(tool: &Description) -> String {
    let tools = [tool.clone()];
    declare(
        &StubTable::build(&tools),
        &tools,
        Level::Signatures,
        &|_, _| true,
    )
    .text
}

#[test]
fn generated_value_type_checks_iff_schema_accepts() {
    let Some(compiler) = compiler::installed() else {
        return;
    };
    let mut runner = TestRunner::deterministic();
    let schema = (schemas::schema(), schemas::schema());
    let tools: Vec<Description> = (0..GENERATED)
        .map(|at| {
            let (inner, def) = schema.new_tree(&mut runner).unwrap().current();
            let input = json!({
                "type": "object", "properties": {"v": inner}, "required": ["v"], "additionalProperties": false,
                "$defs": {"d": {"type": "object", "properties": {"a": def, "b": {"type": "boolean"}}}},
            });
            Description::parse("s", &json!({"name": format!("t{at}"), "inputSchema": input})).unwrap()
        })
        .filter(|it| Validator::compile(&it.input_schema).is_ok())
        .collect();
    let mut dice = Dice::new();
    let any = schemas::value();
    let mut values = |schema: &Value| {
        let mut values = Vec::new();
        for at in 0..VALUES_EACH {
            let fitting = sample(schema, schema, &mut dice, 0);
            values.push(match at % 4 {
                0 | 1 => fitting,
                2 => changed(&fitting, &mut dice),
                _ => json!({"v": any.new_tree(&mut runner).unwrap().current()}),
            });
        }
        values
    };
    let page = Page::of(&tools, &mut values);
    check(
        compiler,
        "generated",
        &BTreeMap::from([("generated".to_owned(), page)]),
    );
}

#[test]
fn sampled_value_type_checks_iff_tool_accepts() {
    let Some(compiler) = compiler::installed() else {
        return;
    };
    let mut sets = all();
    for set in &mut sets {
        set.descriptions
            .retain(|it| Validator::compile(&it.input_schema).is_ok());
    }
    let mut dice = Dice::new();
    let mut values = |schema: &Value| {
        let mut values = Vec::new();
        for _ in 0..VALUES_EACH / 2 {
            let fitting = sample(schema, schema, &mut dice, 0);
            values.push(changed(&fitting, &mut dice));
            values.push(fitting);
        }
        values
    };
    let pages = sets
        .iter()
        .map(|set| (set.name.clone(), Page::of(&set.descriptions, &mut values)))
        .collect();
    check(compiler, "sampled", &pages);
}
