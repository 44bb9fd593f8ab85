//! Random pairs of rule sets over labelled tools. Concrete calls, decided by the engine, must not
//! contradict an answer without an example.

use std::collections::BTreeMap;

use airlock_core::call::{Args, Call, CallHistory, Site};
use airlock_core::facts::{Counts, Facts, Time};
use airlock_core::flow::KnownDestinations;
use airlock_core::id::CallId;
use airlock_core::labels::Label;
use airlock_core::limits::Limits;
use airlock_policy_analysis::LabelAssumption;

use super::*;

/// Number of pairs, unless `AIRLOCK_POLICY_PAIRS` names another number.
const PAIRS: usize = 24;
/// Number of concrete calls for each pair.
const CALLS_PER_PAIR: usize = 400;

const DOMAINS: [&str; 3] = ["corp.example", "evil.example", "partner.example"];
const HOSTS: [&str; 3] = ["docs.rs", "evil.example", "api.example:8443"];
const ADDRESSES: [&str; 3] = [
    "boss@corp.example",
    "eve@evil.example",
    "ann@partner.example",
];
const ROOTS: [&str; 3] = ["work", "scratch", "outside"];
const LABELS: [&str; 3] = ["private", "untrusted", "private:mail"];
const NUMBERS: [i64; 8] = [0, 1, 3, 10, 20, 21, 1_000, 20_000];

/// A small deterministic generator of random numbers.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((z ^ (z >> 31)) % limit as u64).unwrap()
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }

    fn number(&mut self) -> i64 {
        NUMBERS[self.below(NUMBERS.len())]
    }
}

/// A kind of tool: its schema, its labels, and conditions on its arguments. In a condition, `N` is
/// a number.
struct ToolKind {
    schema: Value,
    labelling: Labelling,
    conditions: &'static [&'static str],
}

fn labelling(destinations: &[&str], paths: &[&str], writes: [bool; 2]) -> Labelling {
    let fields = |all: &[&str]| all.iter().map(|it| Field::parse(it).unwrap()).collect();
    Labelling {
        writes: Writes {
            external: writes[0],
            state: writes[1],
        },
        destinations: fields(destinations),
        paths: fields(paths),
        ..Labelling::default()
    }
}

fn kinds() -> Vec<ToolKind> {
    let text = json!({"type": "string"});
    let count = json!({"type": "integer", "minimum": 0, "maximum": 50_000});
    let object = |required: &[&str], properties: Value| {
        json!({"type": "object", "required": required, "properties": properties,
            "additionalProperties": false})
    };
    vec![
        // An optional list of destinations.
        ToolKind {
            schema: object(
                &["subject"],
                json!({"to": {"type": "array", "items": text}, "subject": text, "count": count}),
            ),
            labelling: labelling(&["/to"], &[], [true, false]),
            conditions: &[
                "context.args has count && context.args.count > N",
                "context.args.subject == \"weekly\"",
            ],
        },
        // A required list of objects with destinations.
        ToolKind {
            schema: object(
                &["recipients"],
                json!({"recipients": {"type": "array", "minItems": 1, "items": {"type": "object",
                    "required": ["mail"], "properties": {"mail": text, "name": text}}}}),
            ),
            labelling: labelling(&["/recipients/*/mail"], &[], [true, true]),
            conditions: &[],
        },
        // A required destination with a pattern.
        ToolKind {
            schema: object(
                &["project", "count"],
                json!({"project": {"type": "string", "pattern": "^[A-Z]{2,5}$"}, "count": count,
                    "title": {"type": "string", "minLength": 3, "maxLength": 8}}),
            ),
            labelling: labelling(&["/project"], &[], [false, true]),
            conditions: &[
                "context.args.count > N",
                "context.args.count < N",
                "context.args.count == N",
                "context.args has title && context.args.title like \"bug*\"",
            ],
        },
        // A required web address, and an optional mail address.
        ToolKind {
            schema: object(
                &["url"],
                json!({"url": {"type": "string", "format": "uri"}, "cc": text,
                    "retries": {"type": "integer"}}),
            ),
            labelling: labelling(&["/url", "/cc"], &[], [true, false]),
            conditions: &[
                "context.args has retries && context.args.retries > N",
                "!(context.args has retries)",
            ],
        },
        ToolKind {
            schema: object(
                &["path"],
                json!({"path": text, "mode": {"enum": ["append", "replace"]}, "size": count}),
            ),
            labelling: labelling(&[], &["/path"], [false, true]),
            conditions: &[
                "context.args has mode && context.args.mode == \"replace\"",
                "context.args has size && context.args.size * 2 > N",
            ],
        },
        // A destination from a list, and a multiple of a number.
        ToolKind {
            schema: object(
                &["channel"],
                json!({"channel": {"enum": ["#general", "#ops"]}, "batch": {"type": "integer",
                    "minimum": 10, "exclusiveMaximum": 1_001, "multipleOf": 10},
                    "tags": {"type": "array", "minItems": 1, "uniqueItems": true,
                        "items": {"enum": ["red", "green", "blue"]}}}),
            ),
            labelling: labelling(&["/channel"], &[], [true, true]),
            conditions: &[
                "context.args has batch && context.args.batch > N",
                "context.args has tags && context.args.tags.contains(\"red\")",
                "context.args has tags && [\"red\", \"green\"].containsAll(context.args.tags)",
            ],
        },
        ToolKind {
            schema: object(&[], json!({"note": text, "force": {"type": "boolean"}})),
            labelling: Labelling {
                fixed_destination: true,
                ..labelling(&[], &[], [false, true])
            },
            conditions: &["context.args has force && context.args.force"],
        },
    ]
}

/// Conditions on facts. `N` is a number, `D`, `H`, `A`, `R` and `T` are a domain, a host, an
/// address, a root and a label.
const ON_FACTS: [&str; 20] = [
    "context has dest_domains && [D].containsAll(context.dest_domains)",
    "context has dest_domains && context.dest_domains.containsAny([D])",
    "context has dest_domains && [D, D].containsAll(context.dest_domains)",
    "context has dest_hosts && [H].containsAll(context.dest_hosts)",
    "context has dest_hosts && context.dest_hosts.containsAny([H])",
    "context has dest_addresses && [A, A].containsAll(context.dest_addresses)",
    "context has dest_addresses && context.dest_addresses.containsAny([A])",
    "context has dest_explained && context.dest_explained",
    "!(context has dest_explained)",
    "!context.dest_unexplained.isEmpty()",
    "!context.lookalikes.isEmpty()",
    "context has path_roots && [R].containsAll(context.path_roots)",
    "context has path_roots && context.path_roots.containsAny([R])",
    "context.counts.calls_run < N",
    "context.counts.calls_session >= N",
    "context.counts.bytes_session > N",
    "context.time.hour < N",
    "context.time.weekday > N",
    "context.writes.external",
    "context.script_trusted",
];

struct RandomRule {
    forbids: bool,
    condition: String,
    approval: usize,
    scope: usize,
}

/// Replaces the placeholders of a condition.
fn filled(dice: &mut Dice, condition: &str) -> String {
    let mut text = String::new();
    let chars: Vec<char> = condition.chars().collect();
    for (at, c) in chars.iter().enumerate() {
        let is_word = |at: Option<usize>| {
            let c = at.and_then(|at| chars.get(at));
            c.is_some_and(|c| c.is_alphanumeric() || *c == '_')
        };
        if is_word(at.checked_sub(1)) || is_word(Some(at + 1)) {
            text.push(*c);
            continue;
        }
        match c {
            'N' => text.push_str(&dice.number().to_string()),
            'D' => text.push_str(&format!("{:?}", dice.pick(&DOMAINS))),
            'H' => text.push_str(&format!("{:?}", dice.pick(&HOSTS))),
            'A' => text.push_str(&format!("{:?}", dice.pick(&ADDRESSES))),
            'R' => text.push_str(&format!("{:?}", dice.pick(&ROOTS))),
            'T' => text.push_str(&format!("{:?}", dice.pick(&LABELS))),
            _ => text.push(*c),
        }
    }
    text
}

fn rule(dice: &mut Dice, kind: &ToolKind) -> RandomRule {
    let forbids = dice.one_in(3);
    let condition = match dice.below(6) {
        0 => String::new(),
        // A condition on a label may only deny.
        1 if forbids => filled(dice, "context.labels.contains(T)"),
        1 | 2 if !kind.conditions.is_empty() => {
            let condition = dice.pick(kind.conditions);
            filled(dice, condition)
        }
        3 => {
            let [one, other] = [(); 2].map(|()| dice.pick(&ON_FACTS));
            filled(dice, &format!("({one}) && ({other})"))
        }
        _ => {
            let condition = dice.pick(&ON_FACTS);
            filled(dice, condition)
        }
    };
    RandomRule {
        forbids,
        condition,
        approval: [0, 0, 1, 2][dice.below(4)],
        scope: dice.below(3),
    }
}

/// Changes a set of rules a little, so that some pairs are equal.
fn changed(dice: &mut Dice, kind: &ToolKind, old: &[RandomRule]) -> Vec<RandomRule> {
    let same = |it: &RandomRule| RandomRule {
        condition: it.condition.clone(),
        ..*it
    };
    let mut new: Vec<RandomRule> = old.iter().map(same).collect();
    let at = dice.below(new.len());
    match dice.below(8) {
        0 => new.push(rule(dice, kind)),
        1 if new.len() > 1 => {
            new.remove(at);
        }
        2 => new[at].approval = dice.below(3),
        3 => new[at].scope = dice.below(3),
        4 if !new[at].condition.is_empty() => {
            // The same meaning in other words.
            new[at].condition = format!("!(!({}))", new[at].condition);
        }
        5 if new[at].condition.contains(" > ") => {
            new[at].condition = new[at].condition.replace(" > ", " >= ");
        }
        6 => {
            let one = rule(dice, kind).condition;
            if !one.is_empty() && !one.contains("labels") {
                let before = &new[at].condition;
                new[at].condition = match before.is_empty() {
                    true => one,
                    false => format!("({before}) && ({one})"),
                };
            }
        }
        _ => new[at] = rule(dice, kind),
    }
    new
}

fn text(rules: &[RandomRule]) -> String {
    let one = |rule: &RandomRule| {
        let action = [
            "action",
            "action == Action::\"box.put\"",
            "action in Action::\"own\"",
        ][rule.scope];
        let (effect, approval) = (rule.forbids, rule.approval);
        let asks = format!("context.approval >= {approval}");
        let when = match (rule.condition.is_empty(), approval, effect) {
            (true, 0, _) | (true, _, true) => String::new(),
            (true, _, false) => format!("when {{ {asks} }}"),
            (false, 0, _) | (false, _, true) => format!("when {{ {} }}", rule.condition),
            (false, _, false) => format!("when {{ ({}) && {asks} }}", rule.condition),
        };
        let unless = match (effect, approval) {
            (true, 1..) => format!("unless {{ {asks} }}"),
            _ => String::new(),
        };
        let effect = if effect { "forbid" } else { "permit" };
        format!("{effect}(principal, {action}, resource) {when} {unless}")
    };
    rules.iter().map(one).collect::<Vec<_>>().join(" --- ")
}

/// Loads the rules; `None` if airlock refuses them.
fn load(kind: &ToolKind, rules: &[RandomRule], around: &FlowSettings) -> Option<Set> {
    try_set(&text(rules), kind.labelling.clone(), &kind.schema, around)
}

/// Returns a random destination: a normal one, several in one text, or an unusual one.
fn destination(dice: &mut Dice) -> String {
    match dice.below(9) {
        0 => format!("https://{}/x", dice.pick(&HOSTS)),
        1 => format!("http://{}/", dice.pick(&HOSTS)),
        2 => format!("{}, {}", dice.pick(&ADDRESSES), dice.pick(&ADDRESSES)),
        3 => "someone@elsewhere.example".to_owned(),
        4 => "https://user@docs.rs/".to_owned(),
        5 => "d\u{43e}cs.rs".to_owned(),
        6 => dice
            .pick(&["somewhere", "", "DOCS.RS", "docs.rs.", "Boss@Corp.Example"])
            .to_owned(),
        _ => dice.pick(&ADDRESSES).to_owned(),
    }
}

/// Returns a random value for a schema, which often does not match the schema.
fn value(dice: &mut Dice, name: &str, schema: &Value) -> Value {
    if let Some(listed) = schema["enum"].as_array() {
        return listed[dice.below(listed.len())].clone();
    }
    match schema["type"].as_str().unwrap() {
        "integer" => {
            let number = dice.number() + [-1, 0, 1][dice.below(3)];
            let step = schema["multipleOf"].as_i64().unwrap_or(1);
            match dice.below(12) {
                0 if schema.get("maximum").is_none() => json!(1e19),
                _ => json!(number / step * step),
            }
        }
        "boolean" => json!(dice.one_in(2)),
        "array" => (0..dice.below(4))
            .map(|_| value(dice, name, &schema["items"]))
            .collect(),
        "object" => object(dice, schema),
        _ => match name {
            "project" => json!(dice.pick(&["OPS", "HR", "ABCDE", "ops"])),
            "title" => json!(dice.pick(&["bug", "bugfix", "other", "xy"])),
            "subject" => json!(dice.pick(&["weekly", "other", ""])),
            "path" => json!(dice.pick(&["notes/a.txt", "/etc/passwd", "a.", "n\u{43e}tes"])),
            _ => json!(destination(dice)),
        },
    }
}

fn object(dice: &mut Dice, schema: &Value) -> Value {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let properties = schema["properties"].as_object().unwrap().iter();
    let mut members = Map::new();
    for (name, schema) in properties {
        if required.contains(&json!(name)) || dice.one_in(2) {
            members.insert(name.clone(), value(dice, name, schema));
        }
    }
    Value::Object(members)
}

/// Returns the facts that do not follow from the arguments.
fn facts(dice: &mut Dice, writes: Writes) -> Facts {
    let count = |dice: &mut Dice| u64::try_from(dice.number()).unwrap();
    let some = |dice: &mut Dice| [0, 0, 1][dice.below(3)] * count(dice);
    let (calls_run, bytes_run) = (count(dice), count(dice));
    Facts {
        labels: LABELS
            .iter()
            .filter(|_| dice.one_in(2))
            .map(|it| Label::parse(it).unwrap())
            .collect(),
        script_trusted: dice.one_in(2),
        writes,
        counts: Counts {
            calls_run,
            calls_session: calls_run + some(dice),
            bytes_run,
            bytes_session: bytes_run + some(dice),
        },
        time: Time::at(1_795_392_000_000 + 3_600_000 * dice.below(200) as u64),
        disclosed: true,
        pinned: dice.one_in(3).then_some(true),
        ..Facts::default()
    }
}

/// Returns a random call of the tool that fits its schema, with consistent facts.
fn random_call(dice: &mut Dice, subject: &ToolSubject) -> Option<Call> {
    let args = object(dice, &subject.input_schema);
    let args = Some(args).filter(|args| subject.accepts(args))?;
    let args = Args::parse(args.to_string().as_bytes(), &Limits::default()).ok()?;
    let mut facts = facts(dice, subject.labelling.writes);
    let roots = ROOTS.iter().filter(|_| dice.one_in(2));
    let roots = roots.map(|it| (*it).to_owned()).collect();
    subject.add_facts(&args, dice.one_in(2), roots, &mut facts);
    Some(Call {
        id: CallId(1),
        tool: subject.tool.clone(),
        args,
        site: Site::default(),
        facts: Some(facts.into()),
        history: CallHistory::default(),
    })
}

/// The numbers of answers, and of examples that random calls find too.
#[derive(Default)]
struct Tally {
    pairs: usize,
    questions: usize,
    examples: usize,
    never: usize,
    open: usize,
    found_again: usize,
    /// The open answers, by reason.
    reasons: BTreeMap<String, usize>,
    contradicted: Vec<String>,
}

impl Tally {
    /// Notes an answer. `met` is a random call with the result in question.
    fn note(&mut self, what: &str, kind: Noted, met: Option<&Call>, rules: &[String]) {
        self.questions += 1;
        match (kind, met) {
            (Noted::Open(why), _) => {
                self.open += 1;
                *self.reasons.entry(why).or_default() += 1;
            }
            (Noted::Example, met) => {
                self.examples += 1;
                self.found_again += usize::from(met.is_some());
            }
            (Noted::Never, None) => self.never += 1,
            (Noted::Never, Some(call)) => {
                let (args, facts) = (call.args.text(), &call.facts);
                let rules = rules.join("\n=> ");
                let text = format!("{what}: {args} {facts:?}\n   {rules}");
                self.contradicted.push(text);
            }
        }
    }
}

enum Noted {
    Example,
    Never,
    Open(String),
}

/// Asks `diff` and `can` about one random pair, and compares the answers with random calls.
fn compare(dice: &mut Dice, prover: &mut Prover, tally: &mut Tally) -> Option<()> {
    let kinds = kinds();
    let kind = &kinds[dice.below(kinds.len())];
    let is_labelled = !dice.one_in(5);
    let known = KnownDestinations::configured(["@corp.example", "docs.rs", "#ops", "OPS"]);
    let around = FlowSettings {
        known: known.unwrap().into(),
        roots: std::sync::Arc::new(ROOTS[..2].iter().map(|it| (*it).to_owned()).collect()),
        label_assumption: match is_labelled {
            true => LabelAssumption::Configured,
            false => LabelAssumption::Any,
        },
        ..FlowSettings::default()
    };
    let mut rules: Vec<RandomRule> = (0..2 + dice.below(4)).map(|_| rule(dice, kind)).collect();
    // Without a rule like this, most calls would be denied by most rules.
    if dice.one_in(2) {
        rules.push(RandomRule {
            forbids: false,
            condition: String::new(),
            approval: dice.below(2),
            scope: 0,
        });
    }
    let changed = changed(dice, kind, &rules);
    let [old, new] = [&rules, &changed].map(|it| load(kind, it, &around));
    let (old, new) = (old?, new?);
    // Without a configuration, examples are calls of an unlabelled tool.
    let subject = match is_labelled {
        true => new.subject.clone(),
        false => {
            let tool = new.subject.tool.clone();
            ToolSubject::new(tool, Labelling::default(), &kind.schema, &around)?
        }
    };
    let calls: Vec<Call> = (0..CALLS_PER_PAIR)
        .filter_map(|_| {
            let subject = if dice.one_in(2) {
                &new.subject
            } else {
                &subject
            };
            random_call(dice, subject)
        })
        .collect();
    let level = |set: &Set, call: &Call| set.rules.consult(call).level;
    let levels: Vec<(Level, Level, &Call)> = calls
        .iter()
        .map(|call| (level(&old, call), level(&new, call), call))
        .collect();
    let texts = [text(&rules), text(&changed)];
    let pair = RulePair {
        old: &old.rules,
        new: &new.rules,
    };
    tally.pairs += 1;
    let change = run(prover.diff(pair, &subject, &[]));
    for (what, outcome, is_wider) in [
        ("widened", &change.widened, true),
        ("narrowed", &change.narrowed, false),
    ] {
        let is_met = |it: &&(Level, Level, &Call)| match is_wider {
            true => it.1 < it.0,
            false => it.1 > it.0,
        };
        let met = levels.iter().find(is_met).map(|it| it.2);
        let kind = match outcome {
            DiffOutcome::Example(apart) => {
                assert_eq!(is_wider, apart.1.level < apart.0.level, "{texts:?}");
                Noted::Example
            }
            DiffOutcome::Never(_) => Noted::Never,
            DiffOutcome::Open { why } => Noted::Open(why.clone()),
        };
        tally.note(what, kind, met, &texts);
    }
    let case = ReachabilityCase {
        rules: &new.rules,
        subject: &subject,
        seeds: &[],
    };
    for answer in run(prover.can(case, &WANTED)) {
        let met = levels.iter().find(|it| it.1 == answer.level).map(|it| it.2);
        let kind = match answer.found {
            Reachability::Example(example) => {
                assert_eq!(example.level, answer.level);
                Noted::Example
            }
            Reachability::Never(_) => Noted::Never,
            Reachability::Open { why } => Noted::Open(why),
        };
        tally.note(answer.level.as_str(), kind, met, &texts[1..]);
    }
    Some(())
}

/// `cargo xtask bench proofs` runs this test with more pairs and shows the table.
#[test]
fn no_call_contradicts_diff_or_can_on_random_pairs() {
    let Some(mut prover) = prover() else { return };
    let named = std::env::var("AIRLOCK_POLICY_PAIRS");
    let pairs = named.map_or(PAIRS, |it| it.parse().unwrap());
    let seed = std::env::var("AIRLOCK_POLICY_SEED").map_or(18, |it| it.parse().unwrap());
    let mut dice = Dice(seed);
    let mut tally = Tally::default();
    // airlock refuses some of the rules, such as two equal names of a destination.
    for _ in 0..20 * pairs {
        if tally.pairs == pairs {
            break;
        }
        compare(&mut dice, &mut prover, &mut tally);
    }
    println!("| pairs | questions | examples | never | open | contradicted |");
    println!("| ---: | ---: | ---: | ---: | ---: | ---: |");
    println!(
        "| {} | {} | {} | {} | {} | {} |",
        tally.pairs,
        tally.questions,
        tally.examples,
        tally.never,
        tally.open,
        tally.contradicted.len()
    );
    for (why, count) in &tally.reasons {
        println!("open, {count} times: {why}");
    }
    assert_eq!(tally.contradicted, Vec::<String>::new());
    assert_eq!((tally.pairs, prover.trouble()), (pairs, None));
    // The random calls are able to detect wrong answers, because they also find most of the
    // examples. The solver and the generator answer most questions.
    assert!(
        tally.found_again * 2 > tally.examples,
        "{} {}",
        tally.found_again,
        tally.examples
    );
    assert!(
        tally.never > pairs / 2 && tally.open * 20 < tally.questions,
        "{} {}",
        tally.never,
        tally.open
    );
}
