//! Applies the shipped rules to tools with many schemas: tools of real servers, if there is a
//! corpus, and selected tools.

use super::*;

/// Number of tools of real servers that are tested.
const REAL_TOOLS: usize = 8;

/// Returns the shipped rules for one tool with this labelling.
fn shipped(tool: &Value, server: &str, labelling: Labelling) -> Option<Set> {
    const SHIPPED: [&str; 2] = [
        include_str!("../../../../policies/baseline.cedar"),
        include_str!("../../../../policies/flow.cedar"),
    ];
    let description = Description::parse(server, tool).ok()?;
    let id = ToolId::parse(&format!("{server}.{}", description.name)).ok()?;
    let notes = "@owner(\"o\") @reason(\"r\")";
    let only = format!("(principal, action == Action::\"{id}\", resource)");
    let own = |condition: &str| {
        format!(
            "@id(\"own\") {notes} permit{only} when {{ {condition} }};\n\
             @id(\"not\") {notes} forbid{only} when {{ context.counts.calls_run > 3 && {condition} }};\n\
             @id(\"never\") {notes} permit{only} when {{ context.time.hour > 23 }};\n"
        )
    };
    let load = |condition: &str| {
        let mut vocabulary = Vocabulary::new();
        let none = std::collections::BTreeSet::new();
        vocabulary.add(
            &id,
            Effects::default(),
            &none,
            &codegen::shape::tool_shape(&description),
        );
        let text = SHIPPED.concat() + &own(condition);
        let name = "a.cedar".to_owned();
        let tightens = false;
        Policies::load(
            &[PolicyFile {
                name,
                text,
                tightens,
            }],
            vocabulary,
            true,
        )
        .ok()
    };
    let policies = conditions(&description.input_schema)
        .iter()
        .find_map(|condition| load(condition))?;
    let around = FlowSettings::default();
    let subject = ToolSubject::new(id.clone(), labelling, &description.input_schema, &around)?;
    Some(Set {
        rules: Rules::new(Vec::new(), false).with_policies(policies.into()),
        subject,
    })
}

/// Returns conditions on the arguments that rules can refer to, and finally one that concerns no
/// argument.
fn conditions(schema: &Value) -> Vec<String> {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let about = |(name, schema): (&String, &Value)| {
        let read = format!("context.args[{name:?}]");
        let said = match (schema["type"].as_str(), &schema["enum"][0]) {
            (_, Value::String(first)) => format!("{read} == {first:?}"),
            (Some("integer"), _) => format!("{read} * 2 < 20 && {read} > 2"),
            (Some("boolean"), _) => read.clone(),
            (Some("array"), _) => format!("!{read}.isEmpty()"),
            _ => format!("{read} == \"v\""),
        };
        [
            format!("context.args has {name:?} && {said}"),
            format!("({said})"),
        ]
    };
    let mut all: Vec<String> = properties.flat_map(about).collect();
    all.push("context.time.hour < 6".into());
    all
}

/// Returns tools of real servers, spread over their lists; empty without a corpus.
fn corpus(count: usize) -> Vec<Set> {
    let Some(corpus) = std::env::var_os("AIRLOCK_CORPUS") else {
        eprintln!(
            "SKIP: AIRLOCK_CORPUS names no folder; only the tools of this repository are tested"
        );
        return Vec::new();
    };
    let folder = PathBuf::from(corpus).join("tools");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .map(|it| it.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    paths.sort();
    let mut all = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let list: Value = serde_json::from_str(&text).unwrap_or_default();
        let tools = list.get("result").unwrap_or(&list)["tools"]
            .as_array()
            .cloned();
        all.extend(tools.into_iter().flatten());
    }
    let step = (all.len() / (2 * count)).max(1);
    let labellings = [Labelling::default(), mailing()];
    let apart = all.iter().step_by(step).enumerate();
    apart
        .filter_map(|(at, tool)| shipped(tool, "real", labellings[at % 2].clone()))
        // Tools for which no arguments can be generated are skipped here.
        .filter(|set| {
            !airlock_policy_analysis::schema_sample(&set.rules, &set.subject, 0, 1).is_empty()
        })
        .take(count)
        .collect()
}

#[test]
fn impossible_levels_are_not_reached_by_10000_calls_of_real_tool() {
    let sets = corpus(REAL_TOOLS);
    if sets.is_empty() || prover().is_none() {
        return;
    }
    assert_eq!(sets.len(), REAL_TOOLS);
    let proved = hold(&sets);
    println!("{REAL_TOOLS} real tools: {proved} proofs, none met by {CALLS} calls of each");
}

#[test]
fn impossible_levels_are_not_reached_by_10000_calls_of_any_schema() {
    let schemas = [
        json!({"type": "object"}),
        json!({"type": "object", "required": ["n"],
            "properties": {"n": {"type": "integer"}}}),
        json!({"type": "object", "required": ["mode"],
            "properties": {"mode": {"enum": ["a", "b"]}, "deep": {"type": "object",
                "required": ["n"], "properties": {"n": {"type": "integer", "maximum": 9}}}}}),
        json!({"type": "object", "properties": {"on": {"type": "boolean"},
            "all": {"type": "array", "items": {"type": "integer"}}}}),
        json!({"type": "object", "required": ["code"], "properties": {"code":
            {"type": "string", "pattern": "^[a-z]{3}$"}, "size": {"type": "number"}}}),
        json!({"type": "object", "properties": {"either": {"anyOf": [{"type": "string"},
            {"type": "integer"}]}, "none": {"type": ["string", "null"]}}}),
    ];
    let labellings = [Labelling::default(), mailing()];
    let sets: Option<Vec<Set>> = schemas
        .iter()
        .enumerate()
        .map(|(at, schema)| {
            let tool = json!({"name": format!("t{at}"), "inputSchema": schema});
            shipped(&tool, "own", labellings[at % 2].clone())
        })
        .collect();
    hold(&sets.unwrap());
}

/// Every question of the shipped rules about a destination names a destination of the call.
#[test]
fn shipped_prompts_agree_with_facts() {
    let schema = json!({"type": "object", "required": ["to"], "properties": {
        "to": {"type": "string"}, "path": {"type": "string"}}});
    let reading = Labelling {
        writes: Writes {
            external: false,
            state: false,
        },
        ..mailing()
    };
    let mut asked = 0;
    for labelling in [mailing(), reading, Labelling::default()] {
        let set = shipped(
            &json!({"name": "send", "inputSchema": schema}),
            "mail",
            labelling,
        );
        let set = set.unwrap();
        for call in airlock_policy_analysis::schema_sample(&set.rules, &set.subject, 3, 2_000) {
            let is_about = |it: &&String| it.contains("No trusted source names this destination");
            if call.prompts.iter().any(|it| is_about(&it)) {
                assert_ne!(call.facts.dest_explained, Some(true), "{}", call.call());
                assert!(call.facts.writes.external || call.facts.writes.state);
                asked += 1;
            }
        }
    }
    assert!(asked > 100, "{asked}");
}
