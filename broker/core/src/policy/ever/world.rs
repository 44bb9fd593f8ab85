//! What is known of every call of a tool before one is made, and the same as
//! conditions that a solver takes for granted. Each must hold of every call that
//! gets as far as the rules: one that does not would prove what is not so.

use std::collections::BTreeSet;
use std::sync::Arc;

use codegen::validate::Validator;
use serde_json::{Map, Value as Json, json};

use super::sample;
use super::theory::may_be_lost;
use crate::facts::{Facts, OUTSIDE};
use crate::flow::{Known, Labelling};
use crate::id::ToolId;
use crate::policy::mentions::{ARGS, Mentions};
use crate::policy::model::{Record, Type};

const DEPTH_MAX: usize = 8;
/// Nothing counts further: so many bytes never went anywhere, and so late it never is.
pub(super) const COUNTED_MAX: i64 = 1 << 53;
/// The largest whole number of an argument that 64 bits hold and that its spelling says exactly
/// to every reader: of such a size these are the multiples of both 1000 and 1024. A call with
/// another one is refused before any rule is asked.
const SPELT_MAX: i64 = i64::MAX / SPELT_STEP * SPELT_STEP;
const SPELT_STEP: i64 = 128_000;
const CHOICES_MAX: usize = 200;

/// A tool, as a question about all its calls needs it.
#[derive(Debug, Clone)]
pub struct Subject {
    pub tool: ToolId,
    /// What our configuration says of it.
    pub labelling: Arc<Labelling>,
    /// Destinations that our configuration names.
    pub known: Arc<Known>,
    /// The names of the folders that paths can lie under.
    pub roots: Arc<BTreeSet<String>>,
    pub input_schema: Arc<Json>,
    validator: Arc<Validator>,
    /// Arguments that fit, where some could be made up.
    pub(super) sample: Option<Json>,
}

/// Where calls come from and go to, as far as our configuration says.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    pub known: Arc<Known>,
    pub roots: Arc<BTreeSet<String>>,
}

impl Subject {
    /// None for a schema that no call can be held against.
    #[must_use]
    pub fn new(
        tool: ToolId,
        labelling: Labelling,
        input_schema: &Json,
        around: &Surroundings,
    ) -> Option<Self> {
        let validator = Validator::compile(input_schema).ok()?;
        let sample = sample::arguments(input_schema);
        Some(Self {
            tool,
            labelling: labelling.into(),
            known: Arc::clone(&around.known),
            roots: Arc::clone(&around.roots),
            input_schema: Arc::new(input_schema.clone()),
            sample: Some(sample).filter(|it| validator.accepts(it)),
            validator: validator.into(),
        })
    }

    #[must_use]
    pub fn accepts(&self, args: &Json) -> bool {
        self.validator.accepts(args)
    }

    pub(super) fn names_places(&self) -> bool {
        !self.labelling.destinations.is_empty()
    }

    pub(super) fn names_paths(&self) -> bool {
        !self.labelling.paths.is_empty()
    }

    /// Names under which paths can lie.
    pub(super) fn roots(&self) -> impl Iterator<Item = &str> {
        self.roots.iter().map(String::as_str).chain([OUTSIDE])
    }
}

/// Facts that hold of every call that rules are asked about, whatever its arguments.
pub(super) fn fixed(subject: &Subject) -> Facts {
    Facts {
        writes: subject.labelling.writes,
        disclosed: true,
        ..Facts::default()
    }
}

/// Whether what our configuration says of a tool is taken for granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sayings {
    Configured,
    /// Whatever it could say.
    Any,
}

/// All that is taken for granted of the calls of a tool.
pub(super) struct World<'a> {
    pub(super) subject: &'a Subject,
    pub(super) sayings: Sayings,
}

/// Sets that are there where every destination of a call is of their kind.
const DESTINATIONS: [&str; 3] = ["dest_hosts", "dest_addresses", "dest_domains"];

impl World<'_> {
    /// Parts of conditions that always come out the same, as Cedar writes them in JSON.
    pub(super) fn given(&self) -> Vec<(Json, bool)> {
        let subject = self.subject;
        let context = || json!({"Var": "context"});
        let read = |object: Json, name: &str| json!({".": {"left": object, "attr": name}});
        let mut all = vec![(read(context(), "disclosed"), true)];
        if self.sayings == Sayings::Any {
            return all;
        }
        let writes = subject.labelling.writes;
        for (name, truth) in [("external", writes.external), ("state", writes.state)] {
            all.push((read(read(context(), "writes"), name), truth));
        }
        let mut has = |name: &str, truth: bool| {
            all.push((json!({"has": {"left": context(), "attr": name}}), truth));
        };
        if !subject.names_places() {
            DESTINATIONS.iter().for_each(|name| has(name, false));
            has("dest_explained", subject.labelling.fixed_destination);
        }
        if !subject.names_paths() {
            has("path_roots", false);
        }
        all
    }

    /// Conditions in Cedar, about what the rules mention and no more. `written` are the texts
    /// that they write out.
    pub(super) fn assumptions(
        &self,
        mentions: &Mentions,
        args: &Record,
        written: &BTreeSet<String>,
    ) -> Vec<String> {
        let mut all = Vec::new();
        let mut about = |names: &[&str], text: String| {
            if names.iter().all(|name| mentions.facts.contains(*name)) {
                all.push(text);
            }
        };
        about(&["disclosed"], "context.disclosed".into());
        about(
            &["pinned"],
            "if context has pinned then context.pinned else true".into(),
        );
        counted(&mut about);
        match self.sayings {
            Sayings::Configured => configured(self.subject, &mut about),
            Sayings::Any => {
                anywhere(&mut about);
                let some = "if context has path_roots then !context.path_roots.isEmpty() else true";
                about(&["path_roots"], some.into());
            }
        }
        let choices = Choices {
            mentions,
            written,
            all,
        };
        choices.of(&self.subject.input_schema, args)
    }
}

/// What is counted and measured.
fn counted(about: &mut impl FnMut(&[&str], String)) {
    for (name, least, most) in [
        ("hour", 0, 23),
        ("weekday", 1, 7),
        ("at_ms", 0, COUNTED_MAX),
    ] {
        about(&["time"], format!("context.time.{name} >= {least}"));
        about(&["time"], format!("context.time.{name} <= {most}"));
    }
    for kind in ["calls", "bytes"] {
        about(&["counts"], format!("context.counts.{kind}_run >= 0"));
        let both = format!("context.counts.{kind}_session >= context.counts.{kind}_run");
        about(&["counts"], both);
        let most = format!("context.counts.{kind}_session <= {COUNTED_MAX}");
        about(&["counts"], most);
    }
}

/// What our configuration says of the tool.
fn configured(subject: &Subject, about: &mut impl FnMut(&[&str], String)) {
    let writes = subject.labelling.writes;
    let is = |truth: bool, name: &str| format!("{}{name}", if truth { "" } else { "!" });
    about(&["writes"], is(writes.external, "context.writes.external"));
    about(&["writes"], is(writes.state, "context.writes.state"));
    places(subject, about);
    if subject.names_paths() {
        let roots: Vec<String> = subject.roots().map(quoted).collect();
        let roots = roots.join(", ");
        about(
            &["path_roots"],
            format!(
                "if context has path_roots then !context.path_roots.isEmpty() && \
                 [{roots}].containsAll(context.path_roots) else true"
            ),
        );
    } else {
        about(&["path_roots"], "!(context has path_roots)".into());
        if !subject.names_places() {
            about(&["lookalikes"], "context.lookalikes.isEmpty()".into());
        }
    }
}

/// What follows from which arguments say where a call goes.
fn places(subject: &Subject, about: &mut impl FnMut(&[&str], String)) {
    if !subject.names_places() {
        for name in DESTINATIONS {
            about(&[name], format!("!(context has {name})"));
        }
        about(
            &["dest_unexplained"],
            "context.dest_unexplained.isEmpty()".into(),
        );
        let explained = match subject.labelling.fixed_destination {
            true => "context has dest_explained && context.dest_explained",
            false => "!(context has dest_explained)",
        };
        about(&["dest_explained"], explained.into());
        return;
    }
    anywhere(about);
}

/// Whatever arguments say where a call goes.
fn anywhere(about: &mut impl FnMut(&[&str], String)) {
    for name in DESTINATIONS {
        about(
            &[name],
            format!("if context has {name} then !context.{name}.isEmpty() else true"),
        );
        let named = format!("!(context has {name}) || context has dest_explained");
        about(&[name, "dest_explained"], named);
    }
    for other in ["dest_addresses", "dest_domains"] {
        let apart = format!("!(context has dest_hosts && context has {other})");
        about(&["dest_hosts", other], apart);
    }
    about(
        &["dest_addresses", "dest_domains"],
        "(context has dest_addresses) == (context has dest_domains)".into(),
    );
    about(
        &["dest_explained", "dest_unexplained"],
        "if context has dest_explained then context.dest_explained == \
         context.dest_unexplained.isEmpty() else context.dest_unexplained.isEmpty()"
            .into(),
    );
}

/// Values that the input schema itself bounds, where it does so plainly.
struct Choices<'a> {
    mentions: &'a Mentions,
    written: &'a BTreeSet<String>,
    all: Vec<String>,
}

impl Choices<'_> {
    fn of(mut self, schema: &Json, args: &Record) -> Vec<String> {
        let way = vec![ARGS.to_owned()];
        self.object(schema, args, &way, &[]);
        self.all
    }

    /// `guards`: what has to be there for this object to be.
    fn object(&mut self, schema: &Json, record: &Record, way: &[String], guards: &[String]) {
        // Beside a reference, older drafts read nothing.
        if way.len() > DEPTH_MAX || schema.get("$ref").is_some() {
            return;
        }
        let properties = schema.get("properties").and_then(Json::as_object);
        for (name, schema) in properties.into_iter().flatten() {
            let Some(member) = record.0.get(name) else {
                continue;
            };
            let is_mentioned = way.len() > 1 || self.mentions.args.contains(name);
            let Some(kind) = member.kind.as_ref().filter(|_| is_mentioned) else {
                continue;
            };
            let here = [way, std::slice::from_ref(name)].concat();
            let mut guards = guards.to_vec();
            if !member.always || may_be_lost(kind) {
                guards.push(format!("{} has {}", read(way), quoted(name)));
            }
            match (kind, schema) {
                (Type::Record(inner), _) => self.object(schema, inner, &here, &guards),
                (Type::Text, Json::Object(words)) => {
                    self.bound(&here, &guards, texts(words));
                    self.bound(&here, &guards, unfit(words, self.written));
                }
                (Type::Whole, Json::Object(words)) => {
                    let bounds = numbers(words);
                    if member.always && bounds.len() == 2 {
                        let there = guards.pop();
                        self.bound(&here, &guards, there);
                        let guard = format!("{} has {}", read(way), quoted(name));
                        guards.push(guard);
                    }
                    let spelt = [
                        format!("{PLACE} >= -{SPELT_MAX}"),
                        format!("{PLACE} <= {SPELT_MAX}"),
                    ];
                    let all = if bounds.len() == 2 {
                        bounds
                    } else {
                        [&bounds[..], &spelt].concat()
                    };
                    self.bound(&here, &guards, Some(all.join(" && ")));
                }
                _ => {}
            }
        }
    }

    fn bound(&mut self, way: &[String], guards: &[String], condition: Option<String>) {
        let Some(condition) = condition else { return };
        let condition = condition.replace(PLACE, &read(way));
        let guarded = guards.iter().rev().fold(condition, |rest, guard| {
            format!("if {guard} then {rest} else true")
        });
        self.all.push(guarded);
    }
}

/// Stands for the way to a value, and in no Cedar text.
const PLACE: &str = "\u{0}";

/// One of the texts that are listed.
fn texts(words: &Map<String, Json>) -> Option<String> {
    if words.contains_key("$ref") {
        return None;
    }
    let one = words.get("const").map(std::slice::from_ref);
    let listed = one.or_else(|| {
        words
            .get("enum")
            .and_then(Json::as_array)
            .map(Vec::as_slice)
    })?;
    let texts: Vec<String> = listed.iter().filter_map(Json::as_str).map(quoted).collect();
    let is_short = !texts.is_empty() && texts.len() <= CHOICES_MAX;
    is_short.then(|| format!("[{}].contains({PLACE})", texts.join(", ")))
}

/// None of the texts that rules write out and the schema refuses by their form.
fn unfit(words: &Map<String, Json>, written: &BTreeSet<String>) -> Option<String> {
    const FORM: [&str; 3] = ["pattern", "minLength", "maxLength"];
    if words.contains_key("$ref") {
        return None;
    }
    let form = words
        .iter()
        .filter(|(word, _)| FORM.contains(&word.as_str()));
    let form: Map<String, Json> = form.map(|(word, it)| (word.clone(), it.clone())).collect();
    if form.is_empty() {
        return None;
    }
    let validator = Validator::compile(&Json::Object(form)).ok()?;
    let unfit = written.iter().filter(|it| !validator.accepts(&json!(it)));
    let unfit: Vec<String> = unfit.take(CHOICES_MAX).map(quoted).collect();
    (!unfit.is_empty()).then(|| format!("![{}].contains({PLACE})", unfit.join(", ")))
}

/// A whole number as near to this one as a call can have it.
pub(super) fn spelt(number: i64) -> i64 {
    if number.unsigned_abs() <= COUNTED_MAX.unsigned_abs() {
        return number;
    }
    let number = number.clamp(-SPELT_MAX, SPELT_MAX);
    let down = number / SPELT_STEP * SPELT_STEP;
    match (number - down).abs() > SPELT_STEP / 2 {
        true => down + SPELT_STEP * number.signum(),
        false => down,
    }
}

/// The bounds that 64 bits hold exactly. A number between two of them is always seen by rules;
/// another one may be too large for that.
fn numbers(words: &Map<String, Json>) -> Vec<String> {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    if words.contains_key("$ref") {
        return Vec::new();
    }
    let bound = |word: &str| words.get(word).and_then(Json::as_f64);
    let exact = |bound: f64| bound.abs() < EXACT_MAX;
    let least = bound("minimum").map(f64::ceil).filter(|it| exact(*it));
    let most = bound("maximum").map(f64::floor).filter(|it| exact(*it));
    let least = least.map(|it| format!("{PLACE} >= {it:.0}"));
    let most = most.map(|it| format!("{PLACE} <= {it:.0}"));
    least.into_iter().chain(most).collect()
}

/// `context["args"]["a"]`
fn read(way: &[String]) -> String {
    let steps = way.iter().map(|step| format!("[{}]", quoted(step)));
    format!("context{}", steps.collect::<String>())
}

/// A text as Cedar writes it.
fn quoted(text: impl AsRef<str>) -> String {
    let escaped = text.as_ref().chars().flat_map(char::escape_default);
    format!("\"{}\"", escaped.collect::<String>())
}
