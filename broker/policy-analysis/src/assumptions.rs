//! The assumptions about every call of a tool, as facts and as conditions for a solver. Each
//! assumption must hold for every call that reaches the rules; a false one would make proofs wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use codegen::validate::Validator;
use serde_json::{Map, Value as Json, json};

use super::schema_sample;
use airlock_core::call::Args;
use airlock_core::facts::{Facts, OUTSIDE};
use airlock_core::flow::{self, KnownDestinations};
use airlock_core::id::ToolId;
use airlock_core::labels::{Field, Label, Labelling};
use airlock_core::policy::fact::UNMODELLED;
use airlock_core::policy::mentions::{ARGS, Mentions, pointer_step};
use airlock_core::policy::model::{Record, Type};

const DEPTH_MAX: usize = 8;
/// Upper bound of counts, byte totals and times: no run reaches it.
pub(super) const COUNTED_MAX: i64 = 1 << 53;
/// The largest integer argument that fits into 64 bits and that every reader parses exactly. At
/// this size, only multiples of both 1000 and 1024 are parsed exactly. A call with any other
/// integer of this size is refused before a rule is evaluated.
const SPELT_MAX: i64 = i64::MAX / SPELT_STEP * SPELT_STEP;
const SPELT_STEP: i64 = 128_000;
const CHOICES_MAX: usize = 200;

/// A tool, with the data that questions about all its calls need.
#[derive(Debug, Clone)]
pub struct ToolSubject {
    pub tool: ToolId,
    /// The labelling from the configuration.
    pub labelling: Arc<Labelling>,
    /// The destinations that the configuration names.
    pub known: Arc<KnownDestinations>,
    /// Names of the roots that paths can lie under.
    pub roots: Arc<BTreeSet<String>>,
    /// A path under each root, and one outside of all, if the folders are known.
    pub example_paths: Arc<BTreeMap<String, String>>,
    /// Whether this labelling applies, or any possible labelling because no configuration was
    /// named.
    pub label_assumption: LabelAssumption,
    pub input_schema: Arc<Json>,
    validator: Arc<Validator>,
    /// Arguments that fit the schema; `None` if none could be constructed.
    pub(super) sample: Option<Json>,
}

/// The configured destinations and roots.
#[derive(Debug, Clone, Default)]
pub struct FlowSettings {
    pub known: Arc<KnownDestinations>,
    pub roots: Arc<BTreeSet<String>>,
    /// A path under each root, and one outside of all, if the folders are known.
    pub example_paths: Arc<BTreeMap<String, String>>,
    pub label_assumption: LabelAssumption,
}

impl ToolSubject {
    /// Returns `None` if the schema cannot be compiled.
    #[must_use]
    pub fn new(
        tool: ToolId,
        labelling: Labelling,
        input_schema: &Json,
        around: &FlowSettings,
    ) -> Option<Self> {
        let validator = Validator::compile(input_schema).ok()?;
        let sample = schema_sample::arguments(input_schema);
        Some(Self {
            tool,
            labelling: labelling.fitted(input_schema).into(),
            known: Arc::clone(&around.known),
            roots: Arc::clone(&around.roots),
            example_paths: Arc::clone(&around.example_paths),
            label_assumption: around.label_assumption,
            input_schema: Arc::new(input_schema.clone()),
            sample: Some(sample).filter(|it| validator.accepts(it)),
            validator: validator.into(),
        })
    }

    /// Whether a label says which arguments of the tool are paths.
    #[must_use]
    pub fn has_paths(&self) -> bool {
        !self.labelling.paths.is_empty()
    }

    /// Whether the same labels, roots and destinations apply to the tool.
    #[must_use]
    pub fn is_labelled_like(&self, other: &Self) -> bool {
        self.labelling == other.labelling
            && self.known == other.known
            && self.roots == other.roots
            && self.label_assumption == other.label_assumption
    }

    /// Adds the facts that follow from the arguments of a call. With `explained`, a trusted source
    /// names every destination. `roots` are the roots of the paths.
    pub fn add_facts(
        &self,
        args: &Args,
        explained: bool,
        roots: BTreeSet<String>,
        facts: &mut Facts,
    ) {
        let known = (&*self.known, explained);
        flow::facts_without_run(&self.labelling, args, known, Some(roots), facts);
    }

    /// Returns the roots of a call's paths, if all of them are example paths.
    pub(super) fn roots_of(&self, args: &Json) -> Option<BTreeSet<String>> {
        let fields = self.labelling.paths.iter();
        let roots = fields.flat_map(|field| field.leaves(args)).map(|leaf| {
            let mut known = self.example_paths.iter();
            let found = known.find(|(_, path)| **path == leaf.text)?;
            Some(found.0.clone())
        });
        let roots: BTreeSet<String> = roots.collect::<Option<_>>()?;
        Some(roots).filter(|it| !it.is_empty())
    }

    /// Whether no arguments that fit the schema could be constructed.
    #[must_use]
    pub fn lacks_sample(&self) -> bool {
        self.sample.is_none()
    }

    #[must_use]
    pub fn accepts(&self, args: &Json) -> bool {
        self.validator.accepts(args)
    }

    pub(super) fn names_places(&self) -> bool {
        // Unfit fields count too: if a value does not have the form that such a field expects, it
        // is an unexplained destination.
        !self.labelling.destinations.is_empty() || !self.labelling.unfit.is_empty()
    }

    pub(super) fn names_paths(&self) -> bool {
        !self.labelling.paths.is_empty()
    }

    /// Returns the names that `path_roots` can contain.
    pub(super) fn roots(&self) -> impl Iterator<Item = &str> {
        self.roots.iter().map(String::as_str).chain([OUTSIDE])
    }
}

/// Returns the facts that every call that reaches the rules has, whatever its arguments are.
pub(super) fn fixed(subject: &ToolSubject) -> Facts {
    Facts {
        writes: subject.labelling.writes,
        disclosed: true,
        ..Facts::default()
    }
}

/// Whether the tool's labelling is taken from the configuration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LabelAssumption {
    #[default]
    Configured,
    /// Any possible labelling.
    Any,
}

/// Everything that is assumed about the calls of a tool.
pub(super) struct Assumptions<'a> {
    pub(super) subject: &'a ToolSubject,
    pub(super) label_assumption: LabelAssumption,
}

/// Facts that are present if every destination of a call is of their kind.
const DESTINATIONS: [&str; 3] = ["dest_hosts", "dest_addresses", "dest_domains"];

impl Assumptions<'_> {
    /// Returns parts of conditions with the value that they have for every call, in Cedar's JSON
    /// form.
    pub(super) fn given(&self) -> Vec<(Json, bool)> {
        let subject = self.subject;
        let context = || json!({"Var": "context"});
        let read = |object: Json, name: &str| json!({".": {"left": object, "attr": name}});
        let mut all = vec![(read(context(), "disclosed"), true)];
        if self.label_assumption == LabelAssumption::Any {
            return all;
        }
        let writes = subject.labelling.writes;
        for (name, truth) in [("external", writes.external), ("state", writes.state)] {
            all.push((read(read(context(), "writes"), name), truth));
        }
        let mut has = |name: &str, truth: bool| {
            all.push((json!({"has": {"left": context(), "attr": name}}), truth));
        };
        if subject.labelling.destinations.is_empty() {
            DESTINATIONS.iter().for_each(|name| has(name, false));
        }
        if !subject.names_places() {
            has("dest_explained", subject.labelling.fixed_destination);
        }
        if !subject.names_paths() {
            has("path_roots", false);
        }
        all
    }

    /// Returns assumptions as Cedar conditions, limited to what the rules mention. `written` are
    /// the texts that the rules contain.
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
        impossible_texts(written, &mut about);
        match self.label_assumption {
            LabelAssumption::Configured => configured(self.subject, &mut about),
            LabelAssumption::Any => {
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

/// Adds the bounds of counts and times.
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

/// For each text in the rules that cannot be a destination or a label, adds the assumption that no
/// call has it. Also adds that a call with an address has the domain of the address.
fn impossible_texts(written: &BTreeSet<String>, about: &mut impl FnMut(&[&str], String)) {
    type IsPossible = fn(&str) -> bool;
    let possible: [(&str, IsPossible); 3] = [
        ("dest_hosts", |it| flow::web_address_of(it).is_some()),
        ("dest_addresses", flow::can_be_address),
        ("dest_domains", flow::can_be_domain),
    ];
    for (name, is_possible) in possible {
        let never = written
            .iter()
            .filter(|it| !is_possible(it))
            .take(CHOICES_MAX);
        let never: Vec<String> = never.map(quoted).collect();
        if !never.is_empty() {
            let never = never.join(", ");
            let text = format!(
                "if context has {name} then !context.{name}.containsAny([{never}]) else true"
            );
            about(&[name], text);
        }
    }
    let is_label = |it: &&String| Label::parse(it).is_ok();
    let never = written.iter().filter(|it| !is_label(it)).take(CHOICES_MAX);
    let never: Vec<String> = never.map(quoted).collect();
    if !never.is_empty() {
        let text = format!("!context.labels.containsAny([{}])", never.join(", "));
        about(&["labels"], text);
    }
    for class in written.iter().filter(|it| it.starts_with("private:")) {
        let text = format!(
            "!context.labels.contains({}) || context.labels.contains(\"private\")",
            quoted(class)
        );
        about(&["labels"], text);
    }
    for address in written.iter().take(CHOICES_MAX) {
        if let Some(domain) = flow::domain_of(address) {
            let (address, domain) = (quoted(address), quoted(domain));
            let text = format!(
                "if context has dest_addresses && context has dest_domains then \
                 !context.dest_addresses.contains({address}) || \
                 context.dest_domains.contains({domain}) else true"
            );
            about(&["dest_addresses", "dest_domains"], text);
        }
    }
}

/// Adds what the configured labelling implies.
fn configured(subject: &ToolSubject, about: &mut impl FnMut(&[&str], String)) {
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

/// Adds what follows from the arguments that name destinations.
fn places(subject: &ToolSubject, about: &mut impl FnMut(&[&str], String)) {
    if subject.labelling.destinations.is_empty() {
        for name in DESTINATIONS {
            about(&[name], format!("!(context has {name})"));
        }
        if subject.names_places() {
            // Without destination arguments, a call can only have a destination that airlock cannot
            // read.
            let explained = match subject.labelling.fixed_destination {
                true => "context has dest_explained",
                false => "if context has dest_explained then !context.dest_explained else true",
            };
            about(&["dest_explained"], explained.into());
            return;
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
    let is_always_there = |field: &Field| field.is_always_there(&subject.input_schema);
    if subject.labelling.destinations.iter().any(is_always_there) {
        about(&["dest_explained"], "context has dest_explained".into());
    }
    anywhere(about);
}

/// Adds what holds for any arguments that name destinations.
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

/// Bounds on values that follow directly from the input schema.
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

    /// Adds the bounds on the members of an object. `guards` are the tests under which the object
    /// is present.
    fn object(&mut self, schema: &Json, record: &Record, way: &[String], guards: &[String]) {
        // Older drafts ignore all other keywords of a schema with `$ref`.
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
            if member.may_be_lost && self.mentions.facts.contains(UNMODELLED) {
                self.lost(way, name, member.always, &guards);
            }
            if !member.always || member.may_be_lost {
                guards.push(format!("{} has {}", read(way), quoted(name)));
            }
            match (kind, schema) {
                (Type::Record(inner), _) => self.object(schema, inner, &here, &guards),
                (Type::String, Json::Object(words)) => {
                    let one = listed(words).map(|all| format!("[{all}].contains({PLACE})"));
                    self.bound(&here, &guards, one);
                    let none = unfit(words, self.written);
                    let none = none.map(|none| format!("![{none}].contains({PLACE})"));
                    self.bound(&here, &guards, none);
                }
                (Type::Long, Json::Object(words)) => {
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
                (Type::Set(item), Json::Object(words)) if **item == Type::String => {
                    self.items(&here, &guards, words);
                }
                _ => {}
            }
        }
    }

    /// Adds that a member is either visible or unmodelled. A required member is one of the two in
    /// every call.
    fn lost(&mut self, way: &[String], name: &str, always: bool, guards: &[String]) {
        let within = way.iter().skip(1).map(String::as_str).chain([name]);
        let pointer: String = within.map(pointer_step).collect();
        let seen = format!("({} has {})", read(way), quoted(name));
        let lost = format!("context.{UNMODELLED}.contains({})", quoted(&pointer));
        let condition = match always {
            true => format!("{seen} != {lost}"),
            false => format!("!({seen} && {lost})"),
        };
        self.bound(way, guards, Some(condition));
    }

    /// Adds the bounds on a list of texts.
    fn items(&mut self, way: &[String], guards: &[String], words: &Map<String, Json>) {
        if words.contains_key("$ref") {
            return;
        }
        if words.get("minItems").and_then(Json::as_u64) >= Some(1) {
            self.bound(way, guards, Some(format!("!{PLACE}.isEmpty()")));
        }
        let only_items = !words.contains_key("prefixItems");
        let items = words.get("items").and_then(Json::as_object);
        if let Some(items) = items.filter(|_| only_items) {
            let all = listed(items).map(|all| format!("[{all}].containsAll({PLACE})"));
            self.bound(way, guards, all);
            let none = unfit(items, self.written);
            let none = none.map(|none| format!("!{PLACE}.containsAny([{none}])"));
            self.bound(way, guards, none);
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

/// Placeholder for the path to a value; it occurs in no Cedar text.
const PLACE: &str = "\u{0}";

/// Returns the texts that the schema lists, as members of a Cedar set.
fn listed(words: &Map<String, Json>) -> Option<String> {
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
    is_short.then(|| texts.join(", "))
}

/// Returns the texts in the rules that the schema's pattern or length refuses, as members of a
/// Cedar set.
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
    (!unfit.is_empty()).then(|| unfit.join(", "))
}

/// Returns the integer nearest to this one that a call can contain.
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

/// Returns the schema's bounds that a double holds exactly. A number with both bounds is always
/// visible to rules. Other numbers may not fit into 64 bits.
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

/// Writes the path to a value, such as `context["args"]["a"]`.
fn read(way: &[String]) -> String {
    let steps = way.iter().map(|step| format!("[{}]", quoted(step)));
    format!("context{}", steps.collect::<String>())
}

/// Quotes a text for Cedar.
fn quoted(text: impl AsRef<str>) -> String {
    let escaped = text.as_ref().chars().flat_map(char::escape_default);
    format!("\"{}\"", escaped.collect::<String>())
}
