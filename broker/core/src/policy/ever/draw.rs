//! From a call as rules see it to one that could be made: arguments that fit the
//! schema, and the facts that follow from them. What a sketch wants and no call
//! has is lost here, and is found out when the call is judged.

use std::collections::BTreeSet;

use serde_json::{Map, Value as Json, json};

use super::goal::Sketch;
use super::theory::may_be_lost;
use super::world::{COUNTED_MAX, Subject, fixed, spelt};
use crate::call::Args;
use crate::facts::{Counts, Facts, Time};
use crate::flow::{self, Label};
use crate::limits::Limits;
use crate::policy::fact::UNMODELLED;
use crate::policy::mentions::{ARGS, Mentions};
use crate::policy::model::{Record, Type};

/// A Monday long after any rule was written.
const MONDAY_MS: u64 = 1_795_392_000_000;
/// Whole, exact, and more than 64 bits hold.
const HUGE: f64 = 1e19;
const HOUR_MS: u64 = 3_600_000;

/// A call that fits the input schema of its tool.
#[derive(Debug, Clone)]
pub(super) struct Drawn {
    pub(super) args: Args,
    pub(super) facts: Facts,
}

/// The calls that a sketch can stand for: it may say two things of the time.
pub(super) fn draw(
    subject: &Subject,
    mentions: &Mentions,
    record: &Record,
    sketch: &Sketch,
) -> Vec<Drawn> {
    let Some(args) = arguments(subject, mentions, record, sketch) else {
        return Vec::new();
    };
    let mut facts = fixed(subject);
    stated(sketch, &mut facts);
    let explained = match sketch.get("dest_explained") {
        Some(explained) => explained == &Json::Bool(true),
        None => texts(sketch, "dest_unexplained").is_empty(),
    };
    let roots: BTreeSet<String> = texts(sketch, "path_roots").into_iter().collect();
    let known = (&*subject.known, explained);
    flow::imagined(&subject.labelling, &args, known, Some(roots), &mut facts);
    times(sketch)
        .into_iter()
        .map(|time| Drawn {
            args: args.clone(),
            facts: Facts {
                time,
                ..facts.clone()
            },
        })
        .collect()
}

fn arguments(
    subject: &Subject,
    mentions: &Mentions,
    record: &Record,
    sketch: &Sketch,
) -> Option<Args> {
    let mut args = subject.sample.clone()?;
    if let Json::Object(members) = &mut args {
        let wanted = sketch.get(ARGS).and_then(Json::as_object);
        let is_mentioned = |name: &str| mentions.args.contains(name);
        lay(
            members,
            wanted.unwrap_or(&Map::new()),
            record,
            &is_mentioned,
        );
        let is_lost = |it: &Json| it.as_array().is_some_and(|items| !items.is_empty());
        if sketch.get(UNMODELLED).is_some_and(is_lost) {
            members.insert("x".into(), Json::Null);
        }
    }
    destinations(subject, sketch, &mut args);
    if !subject.accepts(&args) {
        return None;
    }
    Args::parse(args.to_string().as_bytes(), &Limits::default()).ok()
}

/// What rules see of an object becomes what the sketch has; the rest stays.
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
                members.insert(name.clone(), said(value));
            }
            // It has to be there, and rules see nothing of it.
            (None, kind) if member.always && may_be_lost(kind) => {
                members.insert(name.clone(), json!(HUGE));
            }
            (None, _) => {
                members.shift_remove(name);
            }
        }
    }
}

/// A value as a call can have it: not every number of 64 bits can be spelt.
fn said(value: &Json) -> Json {
    match value {
        Json::Array(items) => items.iter().map(said).collect(),
        value => value
            .as_i64()
            .map_or_else(|| value.clone(), |it| spelt(it).into()),
    }
}

/// Arguments that name the destinations which the facts are to have.
fn destinations(subject: &Subject, sketch: &Sketch, args: &mut Json) {
    let hosts = texts(sketch, "dest_hosts").into_iter();
    let mut wanted: Vec<String> = hosts.map(|host| format!("https://{host}/")).collect();
    wanted.extend(texts(sketch, "dest_addresses"));
    if wanted.is_empty() {
        let domains = texts(sketch, "dest_domains").into_iter();
        wanted.extend(domains.map(|domain| format!("someone@{domain}")));
    }
    let odd = !texts(sketch, "lookalikes").is_empty();
    if odd {
        // The second letter is a Cyrillic one.
        wanted = vec!["d\u{43e}cs.example".to_owned()];
    }
    let fields = &subject.labelling.destinations;
    if !wanted.is_empty() {
        // Several places take one each, and the last of them the rest.
        let spread = fields.len().min(wanted.len()).max(1);
        for (at, field) in fields.iter().take(spread).enumerate() {
            let rest = if at + 1 == spread {
                wanted.len()
            } else {
                at + 1
            };
            if let Some(part) = wanted.get(at..rest) {
                field.put(args, part);
            }
        }
        for field in fields.iter().skip(spread) {
            field.clear(args);
        }
    } else if !sketch.contains_key("dest_explained") && !subject.labelling.fixed_destination {
        fields.iter().for_each(|field| field.clear(args));
    } else if fields.iter().all(|field| field.leaves(args).is_empty())
        && let Some(first) = fields.first()
    {
        first.put(args, &["somewhere".to_owned()]);
    }
    let paths = &subject.labelling.paths;
    if paths.iter().all(|field| field.leaves(args).is_empty())
        && sketch.contains_key("path_roots")
        && let Some(first) = paths.first()
    {
        first.put(args, &["x".to_owned()]);
    }
    if odd
        && fields.is_empty()
        && let Some(first) = paths.first()
    {
        first.put(args, &wanted);
    }
}

/// The facts that follow from nothing in the call.
fn stated(sketch: &Sketch, facts: &mut Facts) {
    if let Some(labels) = sketch.get("labels").and_then(Json::as_array) {
        // A word that is no label stands for none that a run could carry.
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

/// A moment has its hour and its weekday: first the moment that is meant, then one that has
/// the hour and the weekday that are meant.
fn times(sketch: &Sketch) -> Vec<Time> {
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

fn texts(sketch: &Sketch, name: &str) -> Vec<String> {
    let items = sketch.get(name).and_then(Json::as_array);
    let texts = items.into_iter().flatten().filter_map(Json::as_str);
    texts.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_made_that_has_the_hour_and_the_weekday() {
        let sketch = json!({"time": {"at_ms": 5, "hour": 3, "weekday": 7}});
        let all = times(sketch.as_object().unwrap());
        assert_eq!(all[0], Time::at(5));
        assert_eq!((all[1].hour, all[1].weekday), (3, 7));
    }
}
