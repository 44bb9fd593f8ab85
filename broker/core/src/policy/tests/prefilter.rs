//! Compares airlock's evaluation with Cedar as the oracle: on valid and invalid conditions of every
//! kind, and on whole sets of rules over labels, destinations, paths, groups and unmodelled
//! arguments.

use cedar_policy::{Authorizer, Context, Entities, Entity, PolicySet, Request};
use proptest::prelude::*;

use super::super::context_value::{ContextValue, Members};
use super::super::mentions::APPROVAL;
use super::super::prefilter::Test;
use super::super::vocabulary::{action_uid, principal_uid, resource_uid};
use super::*;

/// Returns the context of the conditions; some of the names in the conditions are missing from it.
fn context() -> Value {
    json!({
        "args": {
            "s": "a", "t": "b\"\\é", "n": 1, "m": 9_007_199_254_740_992_i64, "b": true,
            "l": ["a", "b"], "e": [], "i": [1, 2], "o": {"s": "a", "p": {"n": 0}},
        },
        "n": 0,
        "b": false,
    })
}

fn known(value: &Value) -> ContextValue<'_> {
    match value {
        Value::Bool(truth) => ContextValue::Truth(*truth),
        Value::Number(number) => ContextValue::Whole(number.as_i64().unwrap()),
        Value::String(text) => ContextValue::text(text),
        Value::Array(items) => ContextValue::Set(items.iter().map(known).collect()),
        Value::Object(members) => ContextValue::Record(record(members)),
        Value::Null => panic!("Cedar has no null"),
    }
}

fn record(members: &serde_json::Map<String, Value>) -> Members<'_> {
    let member =
        |(name, value)| -> (&str, ContextValue<'_>) { (String::as_str(name), known(value)) };
    members.iter().map(member).collect()
}

/// Returns whether Cedar matches one policy, or `None` for an error.
fn cedar(
    policy: &cedar_policy::Policy,
    (tool, entities): (&str, &Entities),
    context: Value,
) -> Option<bool> {
    let request = Request::new(
        principal_uid().unwrap(),
        action_uid(tool).unwrap(),
        resource_uid().unwrap(),
        Context::from_json_value(context, None).unwrap(),
        None,
    );
    let set = PolicySet::from_policies([policy.clone()]).unwrap();
    let response = Authorizer::new().is_authorized(&request.unwrap(), &set, entities);
    let erred = response.diagnostics().errors().next().is_some();
    (!erred).then(|| response.diagnostics().reason().next().is_some())
}

/// Returns the prefilter's result and Cedar's result.
fn both(conditions: &str) -> (Option<bool>, Option<bool>) {
    let text = format!("permit(principal, action, resource) {conditions};");
    let policy = cedar_policy::Policy::parse(None, &text).expect(&text);
    let syntax = policy.to_pst().unwrap();
    let test = Test::from_clauses(syntax.body().clauses());
    let context = context();
    let said = test.outcome(&record(context.as_object().unwrap()));
    (said, cedar(&policy, ("s.t", &Entities::empty()), context))
}

fn way() -> impl Strategy<Value = String> {
    let ways = vec![
        "args.s",
        "args.t",
        "args.n",
        "args.m",
        "args.b",
        "args.l",
        "args.e",
        "args.i",
        "args.o",
        "args.o.s",
        "args.o.p.n",
        "args.none",
        "args.none.s",
        "args.s.s",
        "n",
        "b",
        "none",
    ];
    prop::sample::select(ways).prop_map(|way| format!("context.{way}"))
}

fn written() -> impl Strategy<Value = String> {
    let words = vec![
        "\"a\"",
        "\"b\"",
        "\"\"",
        "\"b\\\"\\\\é\"",
        "0",
        "1",
        "-1",
        "9007199254740992",
        "true",
        "false",
        "[]",
        "[\"a\"]",
        "[\"b\", \"a\"]",
        "[1]",
        "[1, \"a\"]",
        "[[1]]",
        "{a: 1}",
        "principal",
        "action",
        "Action::\"s.t\"",
    ];
    prop::sample::select(words).prop_map(str::to_owned)
}

/// Generates conditions with matching types; some values may be missing.
fn fitting() -> impl Strategy<Value = String> {
    let one_of = |words: &[&'static str]| prop::sample::select(words.to_vec());
    let numbers = [
        "context.args.n",
        "context.n",
        "context.args.o.p.n",
        "0",
        "1",
        "2",
        "-1",
    ];
    let texts = [
        "context.args.s",
        "context.args.t",
        "context.args.none",
        "\"a\"",
        "\"b\"",
        "\"\"",
    ];
    let sets = [
        "context.args.l",
        "context.args.e",
        "[\"a\"]",
        "[\"b\", \"c\"]",
        "[\"a\", \"b\"]",
    ];
    let spelt = |(left, op, right): (&str, &str, &str)| format!("{left} {op} {right}");
    let asked = |(left, op, right): (&str, &str, &str)| format!("{left}.{op}({right})");
    prop_oneof![
        (
            one_of(&numbers),
            one_of(&["==", "!=", "<", "<=", ">", ">="]),
            one_of(&numbers)
        )
            .prop_map(spelt),
        (one_of(&texts), one_of(&["==", "!="]), one_of(&texts)).prop_map(spelt),
        (
            one_of(&sets),
            one_of(&["containsAll", "containsAny"]),
            one_of(&sets)
        )
            .prop_map(asked),
        (one_of(&sets), Just("contains"), one_of(&texts)).prop_map(asked),
        one_of(&sets).prop_map(|set| format!("{set}.isEmpty()")),
        one_of(&["context.b", "context.args.b", "true", "false"]).prop_map(str::to_owned),
    ]
}

/// Generates conditions in which many types do not match.
fn condition() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        6 => fitting(),
        3 => way(),
        2 => written(),
        1 => prop::sample::select(vec![
            "context has n", "context has none", "context.args has o.s", "context has args.o.p.n",
            "context has args.none.s", "context has args.s.s", "context.args has \"l\"",
            "context.none has s", "context.args.s like \"a*\"", "context.args.n + 1",
            "principal has x",
        ]).prop_map(str::to_owned),
    ];
    let compared = ["==", "!=", "<", "<=", ">", ">="];
    leaf.prop_recursive(4, 24, 3, move |inner| {
        let asked = prop::sample::select(vec!["contains", "containsAll", "containsAny"]);
        let compared = prop::sample::select(compared.to_vec());
        let joined = prop::sample::select(vec!["&&", "||"]);
        let two = || (inner.clone(), inner.clone());
        prop_oneof![
            4 => (two(), compared).prop_map(|((a, b), op)| format!("({a}) {op} ({b})")),
            3 => (two(), joined).prop_map(|((a, b), op)| format!("({a}) {op} ({b})")),
            2 => (two(), asked).prop_map(|((a, b), ask)| format!("({a}).{ask}({b})")),
            1 => inner.clone().prop_map(|a| format!("!({a})")),
            1 => inner.clone().prop_map(|a| format!("({a}).isEmpty()")),
            1 => (two(), inner.clone())
                .prop_map(|((a, b), c)| format!("if ({a}) then ({b}) else ({c})")),
        ]
    })
}

#[test]
fn prefilter_decides_understood_conditions() {
    for (conditions, expected) in [
        ("", true),
        ("when { context.args.s == \"a\" }", true),
        (
            "when { context.args.t == \"b\\\"\\\\é\" } unless { context.b }",
            true,
        ),
        (
            "when { context.args.n < 1 || context.args.o.p.n >= 1 }",
            false,
        ),
        (
            "when { context.args.l.containsAll([\"a\"]) && !context.args.e.isEmpty() }",
            false,
        ),
        ("when { [\"x\", \"b\"].containsAny(context.args.l) }", true),
        (
            "unless { context has args.o.s && context.args.o.s != \"b\" }",
            false,
        ),
        ("when { context has none && context.none == 1 }", false),
        (
            "when { if context.b then context.none else context.args.b }",
            true,
        ),
    ] {
        assert_eq!(
            both(conditions),
            (Some(expected), Some(expected)),
            "{conditions}"
        );
    }
}

#[test]
fn prefilter_leaves_missing_or_mistyped_values_to_cedar() {
    for conditions in [
        "when { context.none }",
        "when { context.args.s }",
        "when { context.args.s < 1 }",
        "when { context.args.s == 1 }",
        "when { context.args.s.contains(\"a\") }",
        "when { context.args.b && context.args.n }",
        "when { context has args.s.x }",
        "when { context.args.n + 1 == 2 }",
        "when { context.args.s like \"a*\" }",
        "when { context.args.l == [\"a\", \"b\"] }",
        "when { context.args.l.containsAll(context.args.l) }",
        "when { action == Action::\"s.t\" }",
    ] {
        assert_eq!(both(conditions).0, None, "{conditions}");
    }
}

/// A caller can make one of the sets as long as the limits of a call allow.
#[test]
fn prefilter_leaves_long_sets_to_cedar() {
    let hosts =
        |count: usize| -> Vec<String> { (0..count).map(|it| format!("\"h{it}\"")).collect() };
    let told: Vec<String> = (0..10_000).map(|it| format!("t{it}")).collect();
    let listed = ContextValue::texts(told.iter().map(String::as_str));
    let context = Members::from([(
        "args",
        ContextValue::Record(Members::from([("to", listed)])),
    )]);
    for (count, said) in [(1, Some(false)), (2, None), (2_000, None)] {
        let hosts = hosts(count).join(", ");
        for condition in [
            format!("[{hosts}].containsAny(context.args.to)"),
            format!("context.args.to.containsAny([{hosts}])"),
            format!("context.args.to.containsAll([{hosts}])"),
            format!("[{hosts}].containsAll(context.args.to)"),
        ] {
            let text = format!("permit(principal, action, resource) when {{ {condition} }};");
            let policy = cedar_policy::Policy::parse(None, text).unwrap();
            let test = Test::from_clauses(policy.to_pst().unwrap().body().clauses());
            assert_eq!(test.outcome(&context), said, "{count}");
        }
    }
}

#[test]
fn prefilter_short_circuits_comparisons() {
    for (conditions, expected) in [
        ("when { [1, \"a\"].contains(1) }", true),
        ("when { [\"z\", \"a\"].containsAll(context.args.l) }", false),
        ("when { [\"z\", \"a\"].containsAny(context.args.l) }", true),
        ("when { context.args.l.containsAll([\"z\", 1]) }", false),
    ] {
        assert_eq!(
            both(conditions),
            (Some(expected), Some(expected)),
            "{conditions}"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn prefilter_agrees_with_cedar_on_conditions(first in condition(), second in condition()) {
        for conditions in [
            format!("when {{ {first} }}"),
            format!("unless {{ {first} }} when {{ {second} }}"),
        ] {
            let (said, cedar) = both(&conditions);
            prop_assert!(said.is_none() || said == cedar, "{conditions}: {said:?}, {cedar:?}");
        }
    }
}

/// Splits arguments into what Cedar can hold exactly and JSON pointers to the rest. This follows the
/// schema of the test tools, independently of the model.
fn split(args: &Value) -> (Value, Vec<String>) {
    let fits = |name: &str, value: &Value| match name {
        "project" => value.is_string(),
        "count" => value.is_i64(),
        "to" => value
            .as_array()
            .is_some_and(|it| it.iter().all(Value::is_string)),
        _ => false,
    };
    let (mut seen, mut lost) = (serde_json::Map::new(), Vec::new());
    for (name, value) in args.as_object().unwrap() {
        match fits(name, value) {
            true => drop(seen.insert(name.clone(), value.clone())),
            false => lost.push(format!("/{name}")),
        }
    }
    (seen.into(), lost)
}

/// Whether the text of a rule names one of these arguments.
fn names_any(rule: &Rule, lost: &[String]) -> bool {
    let text = rule.statement.text();
    lost.iter().any(|pointer| {
        let name = pointer.trim_start_matches('/');
        text.contains(&format!("args.{name}")) || text.contains(&format!("args has {name}"))
    })
}

/// Returns the level and the rules of a call, with each rule evaluated by Cedar alone at each
/// level.
fn plain(policies: &Policies, tool: &str, text: &str, facts: &Facts) -> (Level, Vec<String>) {
    let words = &policies.vocabulary.tools[tool];
    let covers = |rule: &&Rule| rule.scope.covers(tool, &words.groups);
    let rules: Vec<&Rule> = policies.rules.iter().filter(covers).collect();
    let groups = words.groups.iter().map(|group| action_uid(group).unwrap());
    let action = Entity::new_no_attrs(action_uid(tool).unwrap(), groups.clone().collect());
    let entities = groups.map(Entity::with_uid).chain([action]);
    let entities = Entities::from_entities(entities, None).unwrap();
    let mut context = serde_json::to_value(facts).unwrap();
    let members = context.as_object_mut().unwrap();
    members.retain(|name, _| !matches!(name.as_str(), "shares" | "large_texts" | "unmodelled"));
    for absent in ["dest_unexplained", "lookalikes"] {
        members.entry(absent).or_insert(json!([]));
    }
    members.insert("large_texts".into(), json!([]));
    let (seen, lost) = split(args(text).value());
    members.insert("unmodelled".into(), json!(lost));
    members.insert("args".into(), seen);
    let unseen = rules.iter().filter(|rule| names_any(rule, &lost));
    let unseen: Vec<String> = unseen.map(|rule| rule.id.to_string()).collect();
    if !unseen.is_empty() {
        return (Level::Deny, unseen);
    }
    let mut lifted = Vec::new();
    for (approval, level) in [Level::Allow, Level::AskRun, Level::AskCall]
        .into_iter()
        .enumerate()
    {
        context[APPROVAL] = approval.into();
        let said: Vec<_> = rules
            .iter()
            .map(|rule| {
                (
                    *rule,
                    cedar(&rule.policy, (tool, &entities), context.clone()),
                )
            })
            .collect();
        let ids = |wanted: Option<bool>, forbids: Option<bool>| -> Vec<String> {
            let fits = |(rule, found): &&(&Rule, Option<bool>)| {
                *found == wanted && forbids.is_none_or(|it| it == rule.forbids)
            };
            said.iter()
                .filter(fits)
                .map(|(rule, _)| rule.id.to_string())
                .collect()
        };
        let erred = ids(None, None);
        if !erred.is_empty() {
            return (Level::Deny, erred);
        }
        let (permits, forbids) = (ids(Some(true), Some(false)), ids(Some(true), Some(true)));
        if forbids.is_empty() && !permits.is_empty() {
            // If a rule permits the call without any approval, no other permit matters.
            let is_free = |(rule, found): &&(&Rule, Option<bool>)| {
                !rule.forbids && !rule.asks && *found == Some(true)
            };
            let free: Vec<String> = said
                .iter()
                .filter(is_free)
                .map(|(rule, _)| rule.id.to_string())
                .collect();
            let permits = match level > Level::Allow && !free.is_empty() {
                true => free,
                false => permits,
            };
            return (level, [lifted, permits].concat());
        }
        let is_final = |(rule, found): &(&Rule, Option<bool>)| {
            rule.forbids && !rule.asks && *found == Some(true)
        };
        if said.iter().any(is_final) {
            return (Level::Deny, forbids);
        }
        lifted = forbids;
    }
    (Level::Deny, lifted)
}

/// Generates rules. Some of them cause errors, and some can only be evaluated by Cedar.
pub(super) fn rule(forbids: impl Strategy<Value = bool>) -> impl Strategy<Value = String> {
    let scope = prop::sample::select(vec![
        "action",
        "action in Action::\"server:ops\"",
        "action == Action::\"ops.write-all\"",
        "action in [Action::\"read-only\", Action::\"group:outside\"]",
        "action in Action::\"group:paging\"",
    ]);
    let condition = prop::sample::select(vec![
        "context.args.project == \"OPS\"",
        "context.args has count && context.args.count < 3",
        "context.args has count && context.args.count * 4611686018427387904 > 1",
        "context.args.project like \"O*\"",
        "[\"DEV\", \"OPS\"].contains(context.args.project)",
        "context.writes.external",
        "context has dest_explained && context.dest_explained",
        "context has path_roots && context.path_roots == [\"work\"]",
        "context has path_roots && [\"work\", \"home\"].containsAll(context.path_roots)",
        "context has dest_domains && [\"corp.example\"].containsAll(context.dest_domains)",
        "context has dest_hosts && context.dest_hosts.containsAny([\"docs.rs\", \"[::1]\"])",
        "context has dest_addresses && context.dest_addresses.contains(\"a@corp.example\")",
        "!(context has dest_explained) || context.lookalikes.isEmpty()",
        "context.dest_unexplained.contains(\"/to/0\")",
        "context.args has to && context.args.to.contains(\"a@corp.example\")",
        "!(context.args has count)",
        "context.unmodelled.contains(\"/count\")",
        "context.counts.calls_run < 5 || context.args.project == \"OPS\"",
        "context.unmodelled.isEmpty()",
        "true",
    ]);
    let labels = prop::sample::select(vec!["", "untrusted", "private"]);
    let approval = prop::sample::select(vec![0, 0, 1, 2]);
    (forbids, scope, condition, labels, approval).prop_map(
        |(forbids, scope, condition, label, approval)| {
            let (effect, not) = if forbids {
                ("forbid", "")
            } else {
                ("permit", "!")
            };
            let mut whens = format!("when {{ {condition} }}");
            // A rule with both labels and arithmetic is refused with a finding, so no such rule is
            // generated.
            if !label.is_empty() && !condition.contains(" * ") {
                whens.push_str(&format!(
                    " when {{ {not}context.labels.contains(\"{label}\") }}"
                ));
            }
            if approval > 0 {
                let gives = if forbids { "unless" } else { "when" };
                whens.push_str(&format!(" {gives} {{ context.approval >= {approval} }}"));
            }
            format!("{effect}(principal, {scope}, resource) {whens};")
        },
    )
}

/// Generates facts about destinations and paths.
fn places() -> impl Strategy<Value = Facts> {
    let some = |words: &[&'static str]| {
        let word = prop::sample::select(words.to_vec()).prop_map(str::to_owned);
        prop::collection::btree_set(word, 0..3)
    };
    let known = |words: &[&'static str]| {
        let set = some(words);
        prop::option::of(set.prop_filter("a known set is not empty", |set| !set.is_empty()))
    };
    let roots = known(&["work", "home", "outside"]);
    let hosts = known(&["docs.rs", "[::1]", "evil.example"]);
    let addresses = known(&["a@corp.example", "b@evil.example"]);
    let domains = known(&["corp.example", "evil.example"]);
    let fields = || some(&["/to/0", "/to/1"]);
    (roots, hosts, addresses, domains, fields(), fields()).prop_map(
        |(path_roots, dest_hosts, dest_addresses, dest_domains, dest_unexplained, lookalikes)| {
            Facts {
                path_roots,
                dest_hosts,
                dest_addresses,
                dest_domains,
                dest_unexplained,
                lookalikes,
                ..Facts::default()
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn engine_agrees_with_cedar_on_calls(
        bodies in prop::collection::vec(rule(any::<bool>()), 0..14),
        tool in prop::sample::select(vec!["ops.read", "ops.write-all", "mail.send"]),
        text in prop::sample::select(vec![
            r#"{"project":"OPS"}"#, r#"{"project":"DEV","count":3}"#, r#"{"project":"DEV","count":1}"#,
            r#"{"project":"DEV","count":1e19}"#, r#"{"project":"OPS","count":-1e300}"#,
            r#"{"project":"OPS","count":null,"share":0.5}"#, r#"{"project":7}"#,
            r#"{"project":"OPS","other":{"count":1}}"#, r#"{"project":"OPS","to":["a@corp.example"]}"#,
            r#"{"project":"OPS","to":["a@corp.example",7]}"#,
        ]),
        places in places(),
        labels in super::property::labels(),
        explained in prop::sample::select(vec![None, Some(false), Some(true)]),
        external in any::<bool>(),
        calls_run in 0..8_u64,
    ) {
        let rules: Vec<String> = bodies.iter().enumerate().map(|(at, it)| format!("r{at}: {it}")).collect();
        let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
        let mut facts = Facts { labels, dest_explained: explained, ..places };
        facts.writes.external = external;
        facts.counts.calls_run = calls_run;
        let policies = load(&rules);
        let judged = policies.judge(&ToolId::parse(tool).unwrap(), &args(text), &facts);
        let (level, mut ids) = plain(&policies, tool, text, &facts);
        ids.sort();
        ids.dedup();
        let found: Vec<String> = judged.rules.iter().map(ToString::to_string).collect();
        prop_assert_eq!((judged.level, found), (level, ids), "{:?}", judged.reasons);
    }
}
