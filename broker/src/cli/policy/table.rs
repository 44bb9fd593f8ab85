//! Reads a case file: the cases, and the tools that the cases need. Facts that a case does not give
//! are computed from the configuration, if there is one, or have their worst value.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use airlock_core::call::Args;
use airlock_core::catalog::Effects;
use airlock_core::facts::{Facts, OUTSIDE};
use airlock_core::flow::large_texts;
use airlock_core::id::ToolId;
use airlock_core::json::{self, Bounds};
use airlock_core::labels::Label;
use airlock_core::level::Level;
use airlock_core::limits::Limits;
use airlock_core::policy::{ConfiguredWords, Place, Vocabulary};
use airlock_core::problem::Problem;
use codegen::closest::{closest, closest_tool};
use codegen::description::Description;
use codegen::validate::Validator;
use serde::{Deserialize, Serialize as _};
use serde_json::{Map, Value};
use toml::Spanned;

use super::facts::CallFacts;

/// Bounds that are larger than any call.
pub(super) const CALL_BOUNDS: Bounds = Bounds {
    bytes_max: 16 * 1024 * 1024,
    depth_max: 128,
    nodes_max: 1_000_000,
};

/// The contents of a file, ready to be decided.
pub(super) struct CaseFile {
    pub(super) vocabulary: Vocabulary,
    pub(super) servers: BTreeSet<String>,
    pub(super) cases: Vec<PolicyCase>,
}

/// The tools that a configuration and a lock file already describe, for all case files.
pub(super) struct KnownTools {
    pub(super) vocabulary: Vocabulary,
    pub(super) servers: BTreeSet<String>,
    /// By the tool's name, such as `server.tool`.
    tools: BTreeMap<String, TableTool>,
    /// Computes facts from the configuration, if there is one.
    facts: Option<CallFacts>,
    /// Whether a case file may describe these tools too. Its own table then counts.
    may_be_described: bool,
}

/// A tool that cases can call.
#[derive(Clone)]
struct TableTool {
    schema: Arc<Value>,
    validator: Arc<Validator>,
}

impl TableTool {
    fn new(schema: &Value) -> Result<Self, String> {
        let validator = Validator::compile(schema).map_err(|bad| bad.to_string())?;
        Ok(Self {
            schema: Arc::new(schema.clone()),
            validator: Arc::new(validator),
        })
    }
}

impl Default for KnownTools {
    /// Returns no tools, and the groups that always exist.
    fn default() -> Self {
        Self::new(Vocabulary::new(), &[])
    }
}

impl KnownTools {
    /// A tool whose input schema is invalid is left out, because no call of it can be made.
    pub(super) fn new(vocabulary: Vocabulary, descriptions: &[Description]) -> Self {
        let tool = |it: &Description| {
            let tool = TableTool::new(&it.input_schema).ok()?;
            Some((format!("{}.{}", it.server, it.name), tool))
        };
        Self {
            vocabulary,
            servers: descriptions.iter().map(|it| it.server.clone()).collect(),
            tools: descriptions.iter().filter_map(tool).collect(),
            facts: None,
            may_be_described: false,
        }
    }

    /// Returns the same tools, with facts that are computed from a configuration.
    pub(super) fn with_facts(self, facts: CallFacts) -> Self {
        Self {
            facts: Some(facts),
            ..self
        }
    }

    /// Returns the same tools, for case files that may describe them too.
    pub(super) fn if_missing(self) -> Self {
        Self {
            may_be_described: true,
            ..self
        }
    }
}

pub(super) struct PolicyCase {
    pub(super) name: String,
    pub(super) place: Place,
    pub(super) tool: ToolId,
    pub(super) args: Args,
    pub(super) facts: Facts,
    pub(super) level: Level,
    /// Rules that must be among the deciding ones.
    pub(super) rules: BTreeSet<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    tools: BTreeMap<String, ToolTable>,
    #[serde(default)]
    cases: Vec<CaseTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolTable {
    #[serde(default)]
    read_only: bool,
    #[serde(default)]
    destructive: bool,
    #[serde(default)]
    groups: BTreeSet<String>,
    /// Groups and tags from the tool's file.
    #[serde(default)]
    file_groups: Vec<String>,
    #[serde(default)]
    tags: Vec<String>,
    /// The input schema; if absent, a schema that accepts everything.
    input: Option<toml::Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseTable {
    name: Spanned<String>,
    /// The whole call as JSON, in place of `tool`, `args` and `facts`.
    call: Option<String>,
    tool: Option<String>,
    #[serde(default)]
    args: toml::Table,
    #[serde(default)]
    facts: toml::Table,
    level: Level,
    #[serde(default)]
    rules: BTreeSet<String>,
}

/// A call in JSON, as `airlock policy can` prints it and `airlock policy explain` reads it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JsonCall {
    pub(super) tool: String,
    #[serde(default)]
    pub(super) args: Value,
    #[serde(default)]
    pub(super) facts: Value,
}

impl JsonCall {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let value =
            json::parse_strict(text.as_bytes(), CALL_BOUNDS).map_err(|bad| bad.to_string())?;
        let mut call = Self::deserialize(value).map_err(|error| error.to_string())?;
        if call.args.is_null() {
            call.args = Value::Object(Map::new());
        }
        Ok(call)
    }
}

pub(super) fn parse(file: &str, text: &str, known: &KnownTools) -> Result<CaseFile, Problem> {
    let document: Document = toml::from_str(text).map_err(|error| {
        let before = error
            .span()
            .map_or("", |span| text.get(..span.start).unwrap_or_default());
        let line = before.matches('\n').count() + 1;
        invalid(&format!("{file}:{line}"), error.message())
    })?;
    let mut vocabulary = known.vocabulary.clone();
    let mut tools = known.tools.clone();
    let mut servers = known.servers.clone();
    for (name, tool) in document.tools {
        let at = format!("{file}, the tool `{name}`");
        if known.tools.contains_key(&name) && !known.may_be_described {
            let why = "the configuration and the lock file describe this tool already; remove the \
                       table, or test without --config and --lock";
            return Err(invalid(&at, why));
        }
        let id = ToolId::parse(&name).map_err(|bad| invalid(&at, &bad.to_string()))?;
        let schema = tool
            .input
            .map_or_else(|| serde_json::json!({"type": "object"}), table);
        let listed = serde_json::json!({"name": &*id.tool.0, "inputSchema": schema});
        let description = Description::parse(&id.server.0, &listed)
            .map_err(|bad| invalid(&at, &bad.to_string()))?;
        let checked =
            TableTool::new(&description.input_schema).map_err(|bad| invalid(&at, &bad))?;
        let effects = Effects {
            read_only: tool.read_only.then_some(true),
            destructive: tool.destructive.then_some(true),
            ..Effects::default()
        };
        vocabulary.add(
            &id,
            effects,
            &tool.groups,
            &codegen::shape::tool_shape(&description),
        );
        vocabulary.add_file_words(&id, &tool.file_groups, &tool.tags);
        tools.insert(name, checked);
        servers.insert(id.server.0.to_string());
    }
    let around = CaseSurroundings {
        tools: &tools,
        facts: known.facts.as_ref(),
        words: vocabulary.configured.as_ref(),
    };
    let cases = document.cases.into_iter();
    let cases = cases
        .map(|case| case.read(file, text, &around))
        .collect::<Result<_, _>>()?;
    Ok(CaseFile {
        vocabulary,
        servers,
        cases,
    })
}

/// The tools that the cases of a file can call, and what the configuration says about them.
struct CaseSurroundings<'a> {
    tools: &'a BTreeMap<String, TableTool>,
    facts: Option<&'a CallFacts>,
    words: Option<&'a ConfiguredWords>,
}

/// Returns the facts of a case, or why no call has the given ones. `known` computes facts from the
/// configuration, and `words` are the names in it.
pub(super) fn case_facts(
    (known, words): (Option<&CallFacts>, Option<&ConfiguredWords>),
    (tool, schema): (&ToolId, &Value),
    args: &Args,
    said: Value,
) -> Result<Facts, String> {
    let base = match known {
        Some(known) => known.of(tool, schema, args, is_explained(&said)),
        None => Facts {
            large_texts: large_texts(args),
            ..Facts::default()
        },
    };
    let facts = match said {
        Value::Null => base.clone(),
        said => facts(said, &base, words)?,
    };
    match (&base.path_roots, &facts.path_roots) {
        (Some(real), given) if given.as_ref().is_none_or(|given| given != real) => {
            let names = |roots: &BTreeSet<String>| {
                let names: Vec<&str> = roots.iter().map(String::as_str).collect();
                names.join(", ")
            };
            let given = given.as_ref().map_or_else(|| "no root".into(), names);
            Err(format!(
                "no call has such facts: its paths lead to {}, not to {given}; change the \
                 paths, or remove `path_roots`, which is computed from the configuration",
                names(real)
            ))
        }
        _ => Ok(facts),
    }
}

/// Whether the given facts say that trusted sources name every destination.
pub(super) fn is_explained(said: &Value) -> bool {
    said.get("dest_explained") == Some(&Value::Bool(true))
}

impl CaseTable {
    fn read(
        self,
        file: &str,
        text: &str,
        around: &CaseSurroundings<'_>,
    ) -> Result<PolicyCase, Problem> {
        let place = place(file, text, self.name.span().start);
        let name = format!("{file}, the case `{}`", self.name.get_ref());
        let call = match (self.call, self.tool) {
            (None, Some(tool)) => JsonCall {
                tool,
                args: table(self.args),
                facts: table(self.facts),
            },
            (Some(text), None) if self.args.is_empty() && self.facts.is_empty() => {
                let invalid_call = |why: String| invalid(&name, &format!("`call`: {why}"));
                JsonCall::parse(&text).map_err(invalid_call)?
            }
            _ => {
                let why = "expected either `tool`, `args` and `facts`, or `call` alone";
                return Err(invalid(&name, why));
            }
        };
        let JsonCall {
            tool: of,
            args,
            facts,
        } = call;
        let tool = around.tools.get(&of).ok_or_else(|| {
            let known = closest_tool(&of, around.tools.keys().map(String::as_str));
            let meant = known.map_or_else(
                || {
                    let table = format!("write a table [tools.\"{of}\"]");
                    table + ", or add --config FILE and --lock FILE, which describe tools"
                },
                |it| format!("did you mean `{it}`?"),
            );
            invalid(&name, &format!("the file has no tool `{of}`; {meant}"))
        })?;
        if let Some(error) = tool.validator.errors("args", &args).first() {
            return Err(invalid(
                &name,
                &format!("the arguments do not fit the input schema: {error}"),
            ));
        }
        let args = Args::parse(args.to_string().as_bytes(), &Limits::default());
        let args = args.map_err(|bad| invalid(&name, &bad.to_string()))?;
        let id = ToolId::parse(&of).map_err(|bad| invalid(&name, &bad.to_string()))?;
        let around = (around.facts, around.words);
        let facts = case_facts(around, (&id, &tool.schema), &args, facts);
        Ok(PolicyCase {
            facts: facts.map_err(|why| invalid(&name, &why))?,
            tool: id,
            args,
            level: self.level,
            rules: self.rules,
            name: self.name.into_inner(),
            place,
        })
    }
}

fn place(file: &str, text: &str, at: usize) -> Place {
    let before = text.get(..at).unwrap_or_default();
    let column = before
        .rsplit('\n')
        .next()
        .unwrap_or_default()
        .chars()
        .count();
    let number = |count: usize| u32::try_from(count + 1).unwrap_or(u32::MAX);
    Place {
        file: file.into(),
        line: number(before.matches('\n').count()),
        column: number(column),
    }
}

/// Returns these facts, overridden by those that a case gives. `words` are the names in the
/// configuration.
pub(super) fn facts(
    said: Value,
    base: &Facts,
    words: Option<&ConfiguredWords>,
) -> Result<Facts, String> {
    let whole = serialized(&every_fact())?;
    let mut facts = serialized(base)?;
    lay_over(&mut facts, said, &whole, "facts")?;
    let facts = Facts::deserialize(facts);
    let facts = facts.map_err(|error| format!("invalid facts: {error}"))?;
    if let Some(why) = unconfigured(&facts, words) {
        return Err(why);
    }
    match impossible(&facts) {
        Some(why) => Err(format!("no call has such facts: {why}")),
        None => Ok(facts),
    }
}

/// Describes a root or a class of private data that the configuration does not have.
fn unconfigured(facts: &Facts, words: Option<&ConfiguredWords>) -> Option<String> {
    let meant = |meant: Option<&str>| {
        let meant = meant.map(|it| format!("; did you mean `{it}`?"));
        meant.unwrap_or_default()
    };
    for root in facts
        .path_roots
        .iter()
        .flatten()
        .filter(|it| *it != OUTSIDE)
    {
        let close = match words {
            Some(words) if words.roots.contains(root) => continue,
            Some(words) => {
                let all = words.roots.iter().map(String::as_str);
                closest(root, all.chain([OUTSIDE]))
            }
            // Without a configuration, the names of the roots are not known.
            None => match closest(root, [OUTSIDE]) {
                Some(close) => Some(close),
                None => continue,
            },
        };
        return Some(format!("there is no root `{root}`{}", meant(close)));
    }
    let labels = &words?.labels;
    let mut classes = facts.labels.iter().map(Label::as_str);
    let is_unknown = |it: &&str| it.starts_with("private:") && !labels.contains(*it);
    let class = classes.find(is_unknown)?;
    let close = closest(class, labels.iter().map(String::as_str));
    Some(format!("no configured label is `{class}`{}", meant(close)))
}

/// Describes facts that no call can have; a case with them would test nothing.
fn impossible(facts: &Facts) -> Option<String> {
    let sets = [
        ("path_roots", &facts.path_roots),
        ("dest_hosts", &facts.dest_hosts),
        ("dest_addresses", &facts.dest_addresses),
        ("dest_domains", &facts.dest_domains),
    ];
    let is_empty = |set: &Option<BTreeSet<String>>| set.as_ref().is_some_and(BTreeSet::is_empty);
    if let Some((name, _)) = sets.into_iter().find(|(_, set)| is_empty(set)) {
        return Some(format!(
            "`{name}` is never empty; omit the fact if its value is unknown"
        ));
    }
    let (hour, weekday) = (facts.time.hour, facts.time.weekday);
    if hour > 23 {
        return Some(format!("`time.hour` is from 0 to 23, not {hour}"));
    }
    let is_day = (1..=7).contains(&weekday);
    (!is_day).then(|| format!("`time.weekday` is from 1 to 7, not {weekday}"))
}

fn serialized(facts: &Facts) -> Result<Value, String> {
    facts
        .serialize(serde_json::value::Serializer)
        .map_err(|error| error.to_string())
}

/// Returns facts with every member present, from which valid names are derived.
fn every_fact() -> Facts {
    let some = || Some(BTreeSet::from([String::new()]));
    Facts {
        path_roots: some(),
        dest_hosts: some(),
        dest_addresses: some(),
        dest_domains: some(),
        dest_explained: Some(true),
        dest_unexplained: some().unwrap_or_default(),
        lookalikes: some().unwrap_or_default(),
        pinned: Some(true),
        ..Facts::default()
    }
}

fn lay_over(facts: &mut Value, said: Value, whole: &Value, path: &str) -> Result<(), String> {
    let (Value::Object(facts), Value::Object(said), Value::Object(whole)) =
        (&mut *facts, &said, whole)
    else {
        *facts = said;
        return Ok(());
    };
    for (name, value) in said {
        let Some(known) = whole.get(name) else {
            let meant = closest(name, whole.keys().map(String::as_str));
            let meant = meant
                .map(|it| format!("; did you mean `{it}`?"))
                .unwrap_or_default();
            return Err(format!("there is no fact `{path}.{name}`{meant}"));
        };
        let slot = facts.entry(name.clone()).or_insert(Value::Null);
        lay_over(slot, value.clone(), known, &format!("{path}.{name}"))?;
    }
    Ok(())
}

fn table(table: toml::Table) -> Value {
    let members = table
        .into_iter()
        .map(|(name, value)| (name, json_of(value)));
    Value::Object(members.collect::<Map<_, _>>())
}

fn json_of(value: toml::Value) -> Value {
    match value {
        toml::Value::String(text) => text.into(),
        toml::Value::Integer(number) => number.into(),
        toml::Value::Float(number) => number.into(),
        toml::Value::Boolean(truth) => truth.into(),
        toml::Value::Datetime(time) => time.to_string().into(),
        toml::Value::Array(items) => items.into_iter().map(json_of).collect(),
        toml::Value::Table(members) => table(members),
    }
}

fn invalid(at: &str, why: &str) -> Problem {
    let format = "correct the case; docs/policies.md describes the format";
    let (why, meant) = why.split_once("; did you mean ").unwrap_or((why, ""));
    let next = match meant {
        "" => format.to_owned(),
        meant => format!("did you mean {meant}"),
    };
    Problem::new("policy-invalid", format!("{at} is invalid"), why, next)
}
