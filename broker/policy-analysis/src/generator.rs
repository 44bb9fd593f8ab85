//! Changes a call so that a condition becomes true or false. It puts a value from the rule, or a
//! neighbouring value, where the rule reads it. The result is only a guess, which is evaluated
//! afterwards.

use cedar_policy::pst::{BinaryOp, Expr, PatternElem, UnaryOp};
use serde_json::{Map, Value as Json, json};

use super::rng::Rng;
use airlock_core::policy::context_value::ContextValue;
use airlock_core::policy::fact::{FACTS, FactKind, UNMODELLED};
use airlock_core::policy::mentions::{APPROVAL, ARGS};
use airlock_core::policy::model::{Record, Type};
use airlock_core::policy::prefilter::{way, written};

/// A call as rules see it: the members of `context`. A member that is absent here is absent in the
/// call.
pub(super) type PartialRequest = Map<String, Json>;

pub(super) struct Generator<'a> {
    pub(super) sketch: &'a mut PartialRequest,
    pub(super) chance: &'a mut Rng,
    pub(super) args: &'a Record,
    pub(super) schema: &'a Json,
    /// Names that `path_roots` can contain.
    pub(super) roots: &'a [String],
}

/// One side of a comparison.
enum Operand {
    Written(Json),
    At(Vec<String>),
}

impl<'a> Generator<'a> {
    pub(super) fn want(&mut self, expr: &Expr, truth: bool) {
        match expr {
            Expr::UnaryOp { op, expr } => match op {
                UnaryOp::Not => self.want(expr, !truth),
                UnaryOp::IsEmpty => self.empty(expr, truth),
                _ => {}
            },
            Expr::BinaryOp { op, left, right } => match (op, truth) {
                (BinaryOp::And, true) | (BinaryOp::Or, false) => {
                    self.want(left, truth);
                    self.want(right, truth);
                }
                (BinaryOp::And | BinaryOp::Or, _) => {
                    let one = if self.chance.percent(50) { left } else { right };
                    self.want(one, truth);
                }
                _ => self.compare(*op, left, right, truth),
            },
            Expr::IfThenElse {
                cond,
                then_expr,
                else_expr,
            } => {
                let first = self.chance.percent(50);
                self.want(cond, first);
                self.want(if first { then_expr } else { else_expr }, truth);
            }
            Expr::HasAttr { expr, attrs } => {
                let Some(mut way) = way(expr) else { return };
                way.extend(attrs.iter().map(ToString::to_string));
                self.there(&way, truth);
            }
            Expr::Like { expr, pattern } => {
                if let Some(way) = way(expr) {
                    let text = self.matching(pattern, truth);
                    self.place(&way, text.into());
                }
            }
            _ => {
                if let Some(way) = way(expr) {
                    self.place(&way, truth.into());
                }
            }
        }
    }

    fn there(&mut self, way: &[String], truth: bool) {
        if !truth {
            drop_at(self.sketch, way);
        } else if at(self.sketch, way).is_none()
            && let Some(value) = self.ordinary(way)
        {
            self.place(way, value);
        }
    }

    fn empty(&mut self, expr: &Expr, truth: bool) {
        let Some(way) = way(expr) else { return };
        let items = if truth {
            json!([])
        } else {
            json!([self.stranger(&way, None)])
        };
        self.place(&way, items);
    }

    fn compare(&mut self, op: BinaryOp, left: &Expr, right: &Expr, truth: bool) {
        let (Some(one), Some(other)) = (operand(left), operand(right)) else {
            self.numbers(left, right);
            return;
        };
        match op {
            BinaryOp::Eq => self.equal(one, other, truth),
            BinaryOp::NotEq => self.equal(one, other, !truth),
            BinaryOp::Less => self.order(one, other, truth, 1),
            BinaryOp::LessEq => self.order(one, other, truth, 0),
            BinaryOp::Greater => self.order(other, one, truth, 1),
            BinaryOp::GreaterEq => self.order(other, one, truth, 0),
            BinaryOp::Contains => match (one, other) {
                (Operand::At(set), Operand::Written(item)) => {
                    self.members(&set, &[item], truth, true)
                }
                (Operand::Written(Json::Array(items)), Operand::At(item)) => {
                    let value = match truth {
                        true => self.chance.pick(&items).cloned(),
                        false => Some(self.stranger(&item, items.first())),
                    };
                    if let Some(value) = value {
                        self.place(&item, value);
                    }
                }
                _ => {}
            },
            BinaryOp::ContainsAll => match (one, other) {
                (Operand::At(set), Operand::Written(Json::Array(items))) => {
                    self.members(&set, &items, truth, true);
                }
                (Operand::Written(Json::Array(items)), Operand::At(set)) => {
                    self.within(&set, &items, truth);
                }
                _ => {}
            },
            BinaryOp::ContainsAny => match (one, other) {
                (Operand::At(set), Operand::Written(Json::Array(items)))
                | (Operand::Written(Json::Array(items)), Operand::At(set)) => {
                    self.members(&set, &items, truth, false);
                }
                _ => {}
            },
            _ => self.numbers(left, right),
        }
    }

    fn equal(&mut self, one: Operand, other: Operand, truth: bool) {
        let (way, value) = match (one, other) {
            (Operand::At(way), Operand::Written(value))
            | (Operand::Written(value), Operand::At(way)) => (way, Some(value)),
            (Operand::At(way), Operand::At(from)) => (way, at(self.sketch, &from).cloned()),
            _ => return,
        };
        let Some(value) = value else { return };
        let value = if truth {
            value
        } else {
            self.stranger(&way, Some(&value))
        };
        self.place(&way, value);
    }

    /// Makes `one` less than `other` by at least `least`. If `truth` is false, makes this
    /// comparison false.
    fn order(&mut self, one: Operand, other: Operand, truth: bool, least: i64) {
        let far = self.chance.pick(&[0, 0, 0, 1, 1_000]).copied().unwrap_or(0);
        let value = |sketch: &PartialRequest, it: &Operand| match it {
            Operand::Written(value) => value.as_i64(),
            Operand::At(way) => at(sketch, way).and_then(Json::as_i64),
        };
        let by = if truth {
            least.saturating_add(far)
        } else {
            least.saturating_sub(1).saturating_sub(far)
        };
        match (&one, &other) {
            (Operand::At(way), bound) => {
                let bound = value(self.sketch, bound).unwrap_or_default();
                self.place(way, bound.saturating_sub(by).into());
            }
            (bound, Operand::At(way)) => {
                let bound = value(self.sketch, bound).unwrap_or_default();
                self.place(way, bound.saturating_add(by).into());
            }
            _ => {}
        }
    }

    /// Tries numbers for the values in an arithmetic expression.
    fn numbers(&mut self, left: &Expr, right: &Expr) {
        let mut open = vec![left, right];
        let mut written_out = vec![0, 1, -1, 2, i64::MAX, i64::MIN];
        let mut ways = Vec::new();
        while let Some(expr) = open.pop() {
            match (way(expr), written(expr)) {
                (Some(way), _) if way.len() > 1 => ways.push(way),
                (_, Some(ContextValue::Whole(number))) => {
                    let around = [number.saturating_sub(1), number, number.saturating_add(1)];
                    written_out.extend(around);
                }
                _ => open.extend(airlock_core::policy::expr::inner(expr).unwrap_or_default()),
            }
        }
        for way in ways {
            if let Some(number) = self.chance.pick(&written_out).copied() {
                self.place(&way, number.into());
            }
        }
    }

    /// Makes a set contain all of these items, or any one of them, depending on `all`. If `truth`
    /// is false, makes this condition false.
    fn members(&mut self, way: &[String], items: &[Json], truth: bool, all: bool) {
        let found = at(self.sketch, way).and_then(Json::as_array);
        let mut found = found.cloned().unwrap_or_default();
        if truth && self.chance.percent(50) {
            // A field for a single text holds only one destination, so other members could displace
            // the wanted one.
            found.clear();
        }
        let one = self.chance.pick(items).cloned();
        match (truth, all) {
            (true, true) => found.extend(items.iter().cloned()),
            (true, false) => found.extend(one),
            (false, true) => found.retain(|it| Some(it) != one.as_ref()),
            (false, false) => found.retain(|it| !items.contains(it)),
        }
        let mut unique: Vec<Json> = Vec::new();
        for item in found {
            if !unique.contains(&item) {
                unique.push(item);
            }
        }
        self.place(way, Json::Array(unique));
    }

    fn within(&mut self, way: &[String], items: &[Json], truth: bool) {
        let mut chosen: Vec<Json> = self.chance.pick(items).cloned().into_iter().collect();
        if truth && self.chance.percent(30) {
            chosen = items.to_vec();
        } else if truth && self.chance.percent(20) {
            chosen.clear();
        }
        if !truth {
            chosen.push(self.stranger(way, items.first()));
        }
        self.place(way, Json::Array(chosen));
    }

    /// Returns a different value of the same type.
    fn stranger(&mut self, way: &[String], beside: Option<&Json>) -> Json {
        match beside {
            Some(Json::Bool(truth)) => return (!truth).into(),
            Some(Json::Number(number)) => {
                let by = if self.chance.percent(50) { 1 } else { -1 };
                return number
                    .as_i64()
                    .unwrap_or_default()
                    .saturating_add(by)
                    .into();
            }
            Some(Json::Array(_)) => return json!([]),
            _ => {}
        }
        let listed: Vec<Json> = self
            .listed(way)
            .filter(|it| Some(*it) != beside)
            .cloned()
            .collect();
        if let Some(other) = self.chance.pick(&listed) {
            return other.clone();
        }
        let name = way.first().map_or("", String::as_str);
        let text = match name {
            "dest_hosts" | "dest_domains" => "elsewhere.example",
            "dest_addresses" => "someone@elsewhere.example",
            "labels" => "private",
            "path_roots" => {
                let root = self.chance.pick(self.roots);
                return root.cloned().unwrap_or_default().into();
            }
            _ => match (self.item(way).cloned(), beside) {
                (Some(Type::Long), _) => return 1.into(),
                (Some(Type::Bool), _) => return true.into(),
                // Half of the time, uses a longer form of the rule's text, and otherwise an
                // unrelated text.
                (_, Some(Json::String(text))) if self.chance.percent(50) => {
                    return format!("{text}x").into();
                }
                _ => "other",
            },
        };
        text.into()
    }

    /// Returns the texts that the schema lists for an argument or for its items.
    fn listed(&self, way: &[String]) -> impl Iterator<Item = &Json> {
        let args = way.first().filter(|it| *it == ARGS);
        let mut schema = args.map(|_| self.schema);
        for step in way.iter().skip(1) {
            schema = schema.and_then(|it| it.get("properties")?.get(step));
        }
        let of = |schema: Option<&'a Json>| schema?.get("enum")?.as_array();
        let listed = of(schema).or_else(|| of(schema?.get("items")));
        listed.into_iter().flatten().filter(|it| it.is_string())
    }

    fn matching(&mut self, pattern: &[PatternElem], truth: bool) -> String {
        let fill = if self.chance.percent(50) { "" } else { "x" };
        let text: String = pattern
            .iter()
            .map(|part| match part {
                PatternElem::Char(c) => c.to_string(),
                PatternElem::Wildcard => fill.to_owned(),
            })
            .collect();
        match (truth, self.chance.percent(50)) {
            (true, _) => text,
            (false, true) => format!("x{text}"),
            (false, false) => format!("{text}-"),
        }
    }

    fn place(&mut self, way: &[String], value: Json) {
        if way.first().is_none_or(|first| first == APPROVAL) {
            return;
        }
        for end in 1..way.len() {
            let Some(part) = way.get(..end) else { return };
            if at(self.sketch, part).is_none() {
                let made = self.ordinary(part).unwrap_or_else(|| json!({}));
                set(self.sketch, part, made);
            }
        }
        set(self.sketch, way, value);
    }

    /// Returns a default value for a place.
    fn ordinary(&self, way: &[String]) -> Option<Json> {
        let (first, rest) = way.split_first()?;
        if first == ARGS {
            return Some(self.kind(rest).map_or_else(|| json!({}), ordinary));
        }
        if first == UNMODELLED {
            return Some(json!([]));
        }
        let fact = FACTS.iter().find(|fact| fact.name == first)?;
        Some(match (&fact.kind, rest) {
            (FactKind::Truth, _) => true.into(),
            (FactKind::Texts, _) => match first.as_str() {
                "dest_hosts" | "dest_domains" => json!(["elsewhere.example"]),
                "dest_addresses" => json!(["someone@elsewhere.example"]),
                "path_roots" => json!([self.roots.first()?]),
                _ => json!([]),
            },
            (FactKind::Record(_), [_, ..]) => 0.into(),
            (FactKind::Record(members), []) => {
                let member = |(name, kind): &(&str, &str)| {
                    let value = if *kind == "Long" {
                        json!(0)
                    } else {
                        json!(false)
                    };
                    ((*name).to_owned(), value)
                };
                Json::Object(members.iter().map(member).collect())
            }
        })
    }

    fn kind(&self, way: &[String]) -> Option<&Type> {
        let (first, rest) = way.split_first()?;
        let mut kind = self.args.0.get(first)?.kind.as_ref()?;
        for step in rest {
            let Type::Record(record) = kind else {
                return None;
            };
            kind = record.0.get(step)?.kind.as_ref()?;
        }
        Some(kind)
    }

    /// Returns the type of an argument, or of its items.
    fn item(&self, way: &[String]) -> Option<&Type> {
        let (ARGS, rest) = (way.first()?.as_str(), way.get(1..)?) else {
            return None;
        };
        match self.kind(rest)? {
            Type::Set(item) => Some(item),
            kind => Some(kind),
        }
    }
}

fn operand(expr: &Expr) -> Option<Operand> {
    let value = written(expr).map(|value| Operand::Written(value.json()));
    value.or_else(|| way(expr).map(Operand::At))
}

fn ordinary(kind: &Type) -> Json {
    match kind {
        Type::Bool => false.into(),
        Type::Long => 1.into(),
        Type::String => "x".into(),
        Type::Set(_) => json!([]),
        Type::Record(Record(members)) => {
            let always = members.iter().filter(|(_, member)| member.always);
            let value = |(name, member): (&String, &airlock_core::policy::model::Member)| {
                Some((name.clone(), ordinary(member.kind.as_ref()?)))
            };
            Json::Object(always.filter_map(value).collect())
        }
    }
}

pub(super) fn at<'a>(sketch: &'a PartialRequest, way: &[String]) -> Option<&'a Json> {
    let (first, rest) = way.split_first()?;
    let first = sketch.get(first);
    rest.iter().fold(first, |value, step| value?.get(step))
}

fn set(sketch: &mut PartialRequest, way: &[String], value: Json) {
    match way.split_first() {
        Some((first, [])) => {
            sketch.insert(first.clone(), value);
        }
        Some((first, rest)) => {
            let inner = sketch.entry(first.clone()).or_insert_with(|| json!({}));
            if !inner.is_object() {
                *inner = json!({});
            }
            if let Json::Object(inner) = inner {
                set(inner, rest, value);
            }
        }
        None => {}
    }
}

fn drop_at(sketch: &mut PartialRequest, way: &[String]) {
    match way.split_first() {
        Some((first, [])) => {
            sketch.shift_remove(first);
        }
        Some((first, rest)) => {
            if let Some(Json::Object(inner)) = sketch.get_mut(first) {
                drop_at(inner, rest);
            }
        }
        None => {}
    }
}
