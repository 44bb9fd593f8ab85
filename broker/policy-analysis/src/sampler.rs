//! Converts a call as rules see it to real calls: arguments that fit the schema, and the facts that
//! follow from them. A property that no real call can have is dropped. The call may then be decided
//! differently than expected.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json, json};

use super::assumptions::{COUNTED_MAX, LabelAssumption, ToolSubject, fixed, spelt};
use super::generator::PartialRequest;
use super::schema_sample;
use airlock_core::call::Args;
use airlock_core::facts::{Counts, Facts, OUTSIDE, Time};
use airlock_core::flow;
use airlock_core::labels::{Field, Label};
use airlock_core::limits::Limits;
use airlock_core::policy::fact::UNMODELLED;
use airlock_core::policy::mentions::{ARGS, Mentions};
use airlock_core::policy::model::{Record, Type};

/// A Monday, in milliseconds since the epoch.
const MONDAY_MS: u64 = 1_795_392_000_000;
/// An integer that a double holds exactly and that does not fit into 64 bits.
const HUGE: f64 = 1e19;
const HOUR_MS: u64 = 3_600_000;

/// A call that fits the input schema of its tool.
#[derive(Debug, Clone)]
pub(super) struct SampledCall {
    pub(super) args: Args,
    pub(super) facts: Facts,
}

/// Returns the calls that a sketch describes. There are several if it describes two different
/// times, or if the schema allows no call exactly as described.
pub(super) fn draw(
    subject: &ToolSubject,
    mentions: &Mentions,
    record: &Record,
    sketch: &PartialRequest,
) -> Vec<SampledCall> {
    let explained = match sketch.get("dest_explained") {
        Some(explained) => explained == &Json::Bool(true),
        None => texts(sketch, "dest_unexplained").is_empty(),
    };
    let roots = wanted_roots(subject, sketch);
    let mut stated_facts = fixed(subject);
    stated(sketch, &mut stated_facts);
    let mut drawn = Vec::new();
    for args in arguments(subject, mentions, record, sketch) {
        // The roots of the paths that the call has. If they are not known, or the labels of the tool
        // are not, the wanted roots: a path can also lead to several roots.
        let is_configured = subject.label_assumption == LabelAssumption::Configured;
        let real = subject.roots_of(args.value());
        let wanted = (real.is_none() || !is_configured).then_some(&roots);
        let real = real.filter(|it| is_configured || *it != roots && !roots.is_empty());
        for roots in real.iter().chain(wanted) {
            let mut facts = stated_facts.clone();
            subject.add_facts(&args, explained, roots.clone(), &mut facts);
            drawn.extend(times(sketch).into_iter().map(|time| SampledCall {
                args: args.clone(),
                facts: Facts {
                    time,
                    ..facts.clone()
                },
            }));
        }
    }
    drawn
}

/// Returns the same call with the facts that it has if the tool is labelled in another way. A root
/// that is not configured there counts as outside.
pub(super) fn relabelled(subject: &ToolSubject, drawn: &SampledCall) -> SampledCall {
    let is_explained = drawn.facts.dest_unexplained.is_empty();
    let roots = drawn.facts.path_roots.iter().flatten();
    let roots = roots.map(|root| match subject.roots().any(|it| it == root) {
        true => root.clone(),
        false => OUTSIDE.to_owned(),
    });
    let roots: BTreeSet<String> = roots.collect();
    let mut facts = Facts {
        writes: subject.labelling.writes,
        path_roots: None,
        dest_hosts: None,
        dest_addresses: None,
        dest_domains: None,
        dest_explained: None,
        dest_unexplained: BTreeSet::new(),
        lookalikes: BTreeSet::new(),
        ..drawn.facts.clone()
    };
    subject.add_facts(&drawn.args, is_explained, roots, &mut facts);
    SampledCall {
        args: drawn.args.clone(),
        facts,
    }
}

/// Returns the wanted roots of the paths. A rule can name a root that is not configured; no path
/// lies under it.
fn wanted_roots(subject: &ToolSubject, sketch: &PartialRequest) -> BTreeSet<String> {
    let is_possible = |root: &String| {
        subject.label_assumption == LabelAssumption::Any || subject.roots().any(|it| it == root)
    };
    let roots = texts(sketch, "path_roots").into_iter();
    roots.filter(is_possible).collect()
}

/// Number of choices that are tried where the schema does not allow the wanted arguments.
const TURNS: usize = 3;

fn arguments(
    subject: &ToolSubject,
    mentions: &Mentions,
    record: &Record,
    sketch: &PartialRequest,
) -> Vec<Args> {
    let Some(mut args) = subject.sample.clone() else {
        return Vec::new();
    };
    if let Json::Object(members) = &mut args {
        let wanted = sketch.get(ARGS).and_then(Json::as_object);
        let is_mentioned = |name: &str| mentions.args.contains(name);
        lay(
            members,
            wanted.unwrap_or(&Map::new()),
            record,
            &is_mentioned,
        );
        for pointer in texts(sketch, UNMODELLED) {
            if !hide(members, record, &pointer) {
                members.insert("x".into(), Json::Null);
            }
        }
    }
    paths(subject, sketch, &mut args);
    let mut found: Vec<Json> = Vec::new();
    for choice in destinations(subject, sketch, &args) {
        if subject.accepts(&choice) {
            found.push(choice);
            continue;
        }
        let near = |turn| schema_sample::nearest(&subject.input_schema, &choice, turn);
        found.extend((0..TURNS).filter_map(near).filter(|it| subject.accepts(it)));
    }
    let mut unique: Vec<Args> = Vec::new();
    for value in found {
        let args = Args::parse(value.to_string().as_bytes(), &Limits::default());
        unique.extend(args.ok().filter(|it| !unique.contains(it)));
    }
    unique
}

/// Puts a value that rules do not see at a JSON pointer. Returns false if the text is no pointer to
/// a place in the arguments.
fn hide(members: &mut Map<String, Json>, record: &Record, pointer: &str) -> bool {
    let Some((before, last)) = pointer.rsplit_once('/') else {
        return false;
    };
    let name = |step: &str| step.replace("~1", "/").replace("~0", "~");
    let (mut members, mut record) = (members, Some(record));
    for step in before.split('/').skip(1) {
        let step = name(step);
        let member = record.and_then(|it| it.0.get(&step));
        record = match member.and_then(|it| it.kind.as_ref()) {
            Some(Type::Record(inner)) => Some(inner),
            _ => None,
        };
        match members.get_mut(&step) {
            Some(Json::Object(inner)) => members = inner,
            _ => return false,
        }
    }
    let last = name(last);
    let kind = record.and_then(|it| it.0.get(&last)?.kind.as_ref());
    members.insert(last, unseen(kind));
    true
}

/// Returns a value that fits a schema of this type, or that a nullable schema accepts, and that
/// rules do not see.
fn unseen(kind: Option<&Type>) -> Json {
    match kind {
        Some(Type::Long) => json!(HUGE),
        Some(Type::Set(item)) => json!([unseen(Some(item))]),
        _ => Json::Null,
    }
}

/// Replaces the members of an object that rules see by the sketch's values, and keeps the others.
fn lay(
    members: &mut Map<String, Json>,
    wanted: &Map<String, Json>,
    record: &Record,
    is_seen: &dyn Fn(&str) -> bool,
) {
    for (name, member) in &record.0 {
        let Some(kind) = member.kind.as_ref().filter(|_| is_seen(name)) else {
            continue;
        };
        match (wanted.get(name), kind) {
            (Some(Json::Object(inner)), Type::Record(record)) => {
                let slot = members.entry(name.clone()).or_insert_with(|| json!({}));
                if let Json::Object(slot) = slot {
                    lay(slot, inner, record, &|_| true);
                }
            }
            (Some(value), _) => {
                members.insert(name.clone(), to_plain_json(value));
            }
            // The member is required, and rules must not see its value.
            (None, kind) if member.always && member.may_be_lost => {
                members.insert(name.clone(), unseen(Some(kind)));
            }
            (None, _) => {
                members.shift_remove(name);
            }
        }
    }
}

/// Returns a value that a call can contain: not every 64-bit integer can be written exactly.
fn to_plain_json(value: &Json) -> Json {
    match value {
        Json::Array(items) => items.iter().map(to_plain_json).collect(),
        value => value
            .as_i64()
            .map_or_else(|| value.clone(), |it| spelt(it).into()),
    }
}

/// Returns arguments with destinations that have the wanted facts, in several forms, because the
/// schema may not allow all of the forms.
fn destinations(subject: &ToolSubject, sketch: &PartialRequest, args: &Json) -> Vec<Json> {
    let fields = &subject.labelling.destinations;
    let wanted = wanted_destinations(sketch);
    let odd = !texts(sketch, "lookalikes").is_empty();
    let mut all = Vec::new();
    let mut add = |change: &dyn Fn(&mut Json)| {
        let mut args = args.clone();
        change(&mut args);
        if !all.contains(&args) {
            all.push(args);
        }
    };
    if odd {
        add(&|args| put(subject, fields, args, &[LOOKALIKE.to_owned()]));
    }
    if !wanted.is_empty() {
        add(&|args| put(subject, fields, args, &wanted));
        // A single text can hold several addresses.
        add(&|args| put(subject, fields, args, &[wanted.join(", ")]));
    } else if sketch.get("dest_explained").is_none() {
        // In a call without visible destinations, the arguments are absent, or they contain a
        // destination that rules cannot see.
        add(&|args| fields.iter().for_each(|field| field.clear(args)));
    }
    add(&|args| put(subject, fields, args, &["somewhere".to_owned()]));
    add(&|_| {});
    all
}

/// A path that looks like another one: some file systems drop the dot at the end.
const LOOKALIKE: &str = "https://docs.example/a.";

/// Returns texts of destinations that have the wanted facts. A solver invents texts that no
/// destination has. Another text has the same effect, because rules do not contain the invented
/// text.
fn wanted_destinations(sketch: &PartialRequest) -> Vec<String> {
    let hosts = texts(sketch, "dest_hosts").into_iter().enumerate();
    let address = |(at, host): (usize, String)| {
        flow::web_address_of(&host).unwrap_or_else(|| format!("https://host{at}.example/"))
    };
    let mut wanted: Vec<String> = hosts.map(address).collect();
    let domains = texts(sketch, "dest_domains").into_iter().enumerate();
    let possible = |(at, domain): (usize, String)| match flow::can_be_domain(&domain) {
        true => domain,
        false => format!("domain{at}.example"),
    };
    let domains: Vec<String> = domains.map(possible).collect();
    let addresses = texts(sketch, "dest_addresses").into_iter();
    let addresses = addresses.filter(|it| flow::can_be_address(it));
    let is_within = |it: &String| {
        let domain = flow::domain_of(it);
        domains.is_empty() || domains.iter().any(|one| Some(one.as_str()) == domain)
    };
    let addresses: Vec<String> = addresses.filter(is_within).collect();
    let is_covered = |domain: &&String| {
        !addresses
            .iter()
            .any(|it| flow::domain_of(it) == Some(domain))
    };
    let others = domains.iter().filter(is_covered);
    let others: Vec<String> = others.map(|domain| format!("someone@{domain}")).collect();
    wanted.extend(addresses.into_iter().chain(others));
    if wanted.is_empty() && !texts(sketch, "dest_addresses").is_empty() {
        wanted.push("someone@domain.example".to_owned());
    }
    wanted
}

/// Writes destinations to the fields. If there are several fields, each gets one destination and
/// the last gets the rest.
fn put(subject: &ToolSubject, fields: &[Field], args: &mut Json, wanted: &[String]) {
    let spread = fields.len().min(wanted.len()).max(1);
    for (at, field) in fields.iter().take(spread).enumerate() {
        let rest = if at + 1 == spread {
            wanted.len()
        } else {
            at + 1
        };
        if let Some(part) = wanted.get(at..rest) {
            prepare(subject, field, args);
            field.put(args, part);
        }
    }
    for field in fields.iter().skip(spread) {
        field.clear(args);
    }
}

/// Adds the argument of a field in the form that the schema describes.
fn prepare(subject: &ToolSubject, field: &Field, args: &mut Json) {
    let Some(name) = field.member() else { return };
    let is_there = args.get(name).is_some_and(|it| it != &json!([]));
    if !is_there
        && let Json::Object(members) = args
        && let Some(value) = schema_sample::member(&subject.input_schema, name)
    {
        members.insert(name.to_owned(), value);
    }
}

/// Sets an argument that names a path, if the sketch has a root or a lookalike.
fn paths(subject: &ToolSubject, sketch: &PartialRequest, args: &mut Json) {
    let paths = &subject.labelling.paths;
    let Some(first) = paths.first() else { return };
    let odd = !texts(sketch, "lookalikes").is_empty();
    let are_absent = paths.iter().all(|field| field.leaves(args).is_empty());
    let mut examples: Vec<String> = wanted_roots(subject, sketch)
        .iter()
        .filter_map(|root| subject.example_paths.get(root).cloned())
        .collect();
    // Where the path of the sample leads is not known. With configured labels, a call has that fact.
    let leaves = |args: &Json| -> Vec<_> { paths.iter().flat_map(|it| it.leaves(args)).collect() };
    let is_unchanged = subject.sample.as_ref().map(leaves) == Some(leaves(args));
    if examples.is_empty()
        && is_unchanged
        && !are_absent
        && subject.label_assumption == LabelAssumption::Configured
    {
        examples.extend(subject.example_paths.get(OUTSIDE).cloned());
    }
    if odd && subject.labelling.destinations.is_empty() {
        prepare(subject, first, args);
        first.put(args, &[LOOKALIKE.to_owned()]);
    } else if !examples.is_empty() {
        if are_absent {
            prepare(subject, first, args);
            first.put(args, &["x".to_owned()]);
        }
        put_paths(paths, args, &examples);
    } else if are_absent && sketch.contains_key("path_roots") {
        prepare(subject, first, args);
        first.put(args, &["x".to_owned()]);
    }
}

/// Writes paths to the fields that the call has, in turn. The last field gets all that are left.
fn put_paths(fields: &[Field], args: &mut Json, examples: &[String]) {
    let present: Vec<&Field> = fields
        .iter()
        .filter(|field| !field.leaves(args).is_empty())
        .collect();
    for (at, field) in present.iter().enumerate() {
        let first = at % examples.len();
        let end = match at + 1 == present.len() {
            true => examples.len(),
            false => first + 1,
        };
        field.put(args, examples.get(first..end).unwrap_or_default());
    }
}

/// Sets the facts that do not follow from the call itself.
fn stated(sketch: &PartialRequest, facts: &mut Facts) {
    if let Some(labels) = sketch.get("labels").and_then(Json::as_array) {
        // A text that is not a label is dropped, since no run can have it.
        let labels = labels.iter().filter_map(Json::as_str);
        facts.labels = labels.filter_map(|it| Label::parse(it).ok()).collect();
    }
    let truth = |name: &str| sketch.get(name).and_then(Json::as_bool);
    facts.script_trusted = truth("script_trusted").unwrap_or(facts.script_trusted);
    facts.pinned = truth("pinned");
    if let Some(counts) = sketch.get("counts") {
        let count = |name: &str| counted(counts.get(name));
        facts.counts = Counts {
            calls_run: count("calls_run"),
            calls_session: count("calls_session").max(count("calls_run")),
            bytes_run: count("bytes_run"),
            bytes_session: count("bytes_session").max(count("bytes_run")),
        };
    }
}

/// Returns the times of a sketch. The hour and the weekday of a sketch may contradict its
/// timestamp. So the first time has the wanted timestamp, and the second has the wanted hour and
/// weekday.
fn times(sketch: &PartialRequest) -> Vec<Time> {
    let Some(time) = sketch.get("time") else {
        return vec![Time::default()];
    };
    let number = |name: &str| time.get(name).and_then(Json::as_u64).unwrap_or_default();
    let days = number("weekday").saturating_sub(1).min(6);
    let hours = days * 24 + number("hour").min(23);
    let mut all = vec![Time::at(counted(time.get("at_ms")))];
    let other = Time::at(MONDAY_MS + hours * HOUR_MS);
    if !all.contains(&other) {
        all.push(other);
    }
    all
}

fn counted(value: Option<&Json>) -> u64 {
    let number = value.and_then(Json::as_u64).unwrap_or_default();
    number.min(COUNTED_MAX.unsigned_abs())
}

fn texts(sketch: &PartialRequest, name: &str) -> Vec<String> {
    let items = sketch.get(name).and_then(Json::as_array);
    let texts = items.into_iter().flatten().filter_map(Json::as_str);
    texts.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_generated_for_hour_and_weekday() {
        let sketch = json!({"time": {"at_ms": 5, "hour": 3, "weekday": 7}});
        let all = times(sketch.as_object().unwrap());
        assert_eq!(all[0], Time::at(5));
        assert_eq!((all[1].hour, all[1].weekday), (3, 7));
    }
}
