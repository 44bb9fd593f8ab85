//! Compares the argument of a call with the shape that its tool accepts. Only values that are
//! written in the script are checked. A name counts as its value if it was declared with a literal
//! and never changes.

mod in_order;

use std::collections::HashSet;
use std::rc::Rc;

use oxc_ast::ast::{Expression, ObjectExpression};
use oxc_semantic::NodeId;
use oxc_span::GetSpan;
use serde_json::Value;

use super::context::CheckContext;
use super::expect;
use super::static_value::{Key, LiteralKeys, StaticValue, elements};
use super::surface::Tool;
use crate::shape::{ExtraKeys, Kind, Object, Property, Shape, ToolShape};
use crate::text;
use codegen_shared::finding::{FINDINGS_MAX, FindingCode, Severity};

/// Maximum depth of nested shapes that are followed for one argument.
const DEPTH_MAX: usize = 32;
/// Maximum number of errors collected for one value; the check of the value stops there.
const MISFITS_MAX: usize = FINDINGS_MAX * 4;

/// An error in a value.
#[derive(Clone)]
struct Misfit {
    severity: Severity,
    code: FindingCode,
    at: u32,
    message: String,
    suggestion: Option<String>,
}

/// The arguments of one call.
pub(super) struct Arguments<'r, 'a, 's, 'f> {
    reading: &'r mut CheckContext<'a, 's, 'f>,
    node: NodeId,
    tool: Tool<'s>,
    shape: Rc<ToolShape>,
}

impl<'r, 'a, 's, 'f> Arguments<'r, 'a, 's, 'f> {
    pub(super) fn new(
        reading: &'r mut CheckContext<'a, 's, 'f>,
        node: NodeId,
        tool: Tool<'s>,
    ) -> Self {
        let shape = reading.shape(tool);
        Self {
            reading,
            node,
            tool,
            shape,
        }
    }

    /// Checks a call without arguments, which passes an empty object.
    pub(super) fn none(mut self, at: u32) {
        let shape = Rc::clone(&self.shape);
        let missing = match &shape.input.kind {
            Kind::Object(object) => self.missing(object, &HashSet::new(), at),
            _ => Vec::new(),
        };
        self.say(missing);
    }

    pub(super) fn one(mut self, argument: &'a Expression<'a>) {
        let shape = Rc::clone(&self.shape);
        let at = argument.span().start;
        let known = self.reading.known(argument);
        let is_object = matches!(
            known,
            StaticValue::Nothing | StaticValue::Object(_) | StaticValue::Array(_)
        );
        if !is_object
            && !self.tool.names.order.is_empty()
            && !matches!(known, StaticValue::Undefined)
        {
            return self.in_order(&[argument]);
        }
        let unsuitable = match known {
            StaticValue::Undefined => return self.none(at),
            StaticValue::Nothing | StaticValue::Object(_) => None,
            StaticValue::Text(_) => Some("a string"),
            StaticValue::Number(_) => Some("a number"),
            StaticValue::Boolean(_) => Some("a boolean"),
            StaticValue::Null => Some("null"),
            StaticValue::Array(_) => Some("an array"),
        };
        if let Some(got) = unsuitable {
            let names = expect::names_of(&shape, &shape.input);
            let misfit = Misfit {
                severity: Severity::Error,
                code: FindingCode::NotOneObject,
                at,
                message: format!(
                    "`{}` takes one object of named arguments, not {got}",
                    self.tool.name()
                ),
                suggestion: Some(format!("Write `{}`.", self.tool.call_with(&names))),
            };
            return self.say(vec![misfit]);
        }
        let misfits = self.fit(argument, &shape.input, "", 0);
        self.say(misfits);
    }

    fn say(&mut self, misfits: Vec<Misfit>) {
        for it in misfits {
            match it.severity {
                Severity::Error => {
                    self.reading
                        .error(self.node, it.code, it.at, it.message, it.suggestion);
                }
                Severity::Warning => {
                    self.reading
                        .warning(it.code, it.at, it.message, it.suggestion);
                }
            }
        }
    }

    /// Returns the errors of a value. Returns none if the value fits or is not known.
    fn fit(
        &mut self,
        expression: &'a Expression<'a>,
        shape: &Shape,
        path: &str,
        depth: usize,
    ) -> Vec<Misfit> {
        if depth > DEPTH_MAX {
            return Vec::new();
        }
        match expression.get_inner_expression() {
            Expression::ConditionalExpression(it) => {
                let mut both = self.fit(&it.consequent, shape, path, depth + 1);
                both.extend(self.fit(&it.alternate, shape, path, depth + 1));
                return both;
            }
            Expression::LogicalExpression(it) => {
                return self.fit(&it.right, shape, path, depth + 1);
            }
            _ => {}
        }
        let known = self.reading.known(expression);
        let at = expression.span().start;
        self.fit_known(known, at, shape, path, depth)
    }

    fn fit_known(
        &mut self,
        known: StaticValue<'a>,
        at: u32,
        shape: &Shape,
        path: &str,
        depth: usize,
    ) -> Vec<Misfit> {
        let is_unknown = matches!(known, StaticValue::Nothing | StaticValue::Undefined);
        if depth > DEPTH_MAX || is_unknown || !self.reading.findings.patience.judges() {
            return Vec::new();
        }
        let tool_shape = Rc::clone(&self.shape);
        match (&shape.kind, known) {
            (Kind::Any, _) => Vec::new(),
            (Kind::Named(index), _) => match tool_shape.named.get(*index) {
                Some(named) => self.fit_known(known, at, &named.shape, path, depth + 1),
                None => Vec::new(),
            },
            (Kind::Union(members), _) => self.fit_union(known, at, (shape, members), path, depth),
            (Kind::Intersection(members), _) => {
                let all = members.iter();
                all.flat_map(|member| self.fit_known(known, at, member, path, depth + 1))
                    .filter(|misfit| misfit.severity == Severity::Error)
                    .collect()
            }
            (Kind::Object(object), StaticValue::Object(literal)) => {
                self.fit_object(literal, object, path, depth)
            }
            (Kind::Array(items), StaticValue::Array(literal)) => {
                let mut misfits = Vec::new();
                for (place, item) in elements(literal) {
                    if misfits.len() > MISFITS_MAX {
                        break;
                    }
                    misfits.extend(self.fit(item, items, &format!("{path}[{place}]"), depth + 1));
                }
                misfits
            }
            (Kind::Tuple(tuple), StaticValue::Array(literal)) => {
                let has_spread = literal.elements.iter().any(|it| it.is_spread());
                let mut misfits = Vec::new();
                for ((place, item), shape) in elements(literal).zip(&tuple.items) {
                    if !has_spread {
                        let path = format!("{path}[{place}]");
                        misfits.extend(self.fit(item, shape, &path, depth + 1));
                    }
                }
                misfits
            }
            _ => self.fit_plain(known, at, shape, path).into_iter().collect(),
        }
    }

    /// Compares a value with a literal, a plain type or a numeric range.
    fn fit_plain(
        &self,
        known: StaticValue<'a>,
        at: u32,
        shape: &Shape,
        path: &str,
    ) -> Option<Misfit> {
        let wrong = |code, suggestion| {
            Some(Misfit {
                severity: Severity::Error,
                code,
                at,
                message: format!(
                    "{} takes {}, not {}",
                    self.place(path),
                    expect::words(&self.shape, shape),
                    display_value(known)
                ),
                suggestion,
            })
        };
        match expect::judge(known, shape) {
            expect::Fit::Fits => None,
            expect::Fit::OtherType => {
                wrong(FindingCode::WrongType, expect::other_type(known, shape))
            }
            expect::Fit::OtherValue => {
                let allowed = expect::literals(&self.shape, shape);
                let suggestion = self.did_you_mean(known, &allowed);
                wrong(FindingCode::WrongLiteral, suggestion)
            }
        }
    }

    fn fit_union(
        &mut self,
        known: StaticValue<'a>,
        at: u32,
        (shape, members): (&Shape, &[Shape]),
        path: &str,
        depth: usize,
    ) -> Vec<Misfit> {
        if let Some(misfit) = self.fit_discriminated(known, members, path) {
            return vec![misfit];
        }
        let mut closest: Option<Vec<Misfit>> = None;
        for member in members {
            let misfits = self.fit_known(known, at, member, path, depth + 1);
            if !misfits.iter().any(|it| it.severity == Severity::Error) {
                return misfits;
            }
            let is_inside = misfits.iter().all(|it| it.at != at || !path.is_empty());
            let fewer = closest.as_ref().is_none_or(|it| misfits.len() < it.len());
            if is_inside && fewer && self.may_be(known, member) {
                closest = Some(misfits);
            }
        }
        // For an object or array, the errors for the closest member are more useful than a list of
        // all members.
        if let (Some(misfits), StaticValue::Object(_) | StaticValue::Array(_)) = (closest, known) {
            return misfits;
        }
        let allowed = expect::literals(&self.shape, shape);
        let same_type = allowed.iter().any(|it| expect::same_type(known, it));
        let misfit = Misfit {
            severity: Severity::Error,
            code: if same_type {
                FindingCode::WrongLiteral
            } else {
                FindingCode::WrongType
            },
            at,
            message: format!(
                "{} takes {}, not {}",
                self.place(path),
                expect::words(&self.shape, shape),
                display_value(known)
            ),
            suggestion: self
                .did_you_mean(known, &allowed)
                .or_else(|| expect::other_type(known, shape)),
        };
        vec![misfit]
    }

    /// Checks a value against a union whose members differ in the value of one property.
    fn fit_discriminated(
        &self,
        known: StaticValue<'a>,
        members: &[Shape],
        path: &str,
    ) -> Option<Misfit> {
        let StaticValue::Object(literal) = known else {
            return None;
        };
        for key in LiteralKeys::from_literal(literal, self.reading).keys {
            let Some(value) = key.value else { continue };
            let found = self.reading.known(value);
            let of = |member| expect::literal_at(&self.shape, member, &key.name);
            let allowed: Option<Vec<Value>> = members.iter().map(of).collect();
            let Some(allowed) = allowed.filter(|_| matches!(found, StaticValue::Text(Some(_))))
            else {
                continue;
            };
            let is_there = allowed.iter().any(|it| expect::is_literal(found, it));
            let names: Vec<String> = allowed.iter().map(text::json).collect();
            return (!is_there).then(|| Misfit {
                severity: Severity::Error,
                code: FindingCode::WrongLiteral,
                at: value.span().start,
                message: format!(
                    "{} takes one of {}, not {}",
                    self.place(&joined(path, &key.name)),
                    expect::listed(&names),
                    display_value(found)
                ),
                suggestion: self.did_you_mean(found, &allowed),
            });
        }
        None
    }

    fn may_be(&self, known: StaticValue<'a>, member: &Shape) -> bool {
        let kind = match &member.kind {
            Kind::Named(index) => self.shape.named.get(*index).map(|it| &it.shape.kind),
            kind => Some(kind),
        };
        matches!(
            (kind, known),
            (
                Some(Kind::Object(_) | Kind::Intersection(_)),
                StaticValue::Object(_)
            ) | (Some(Kind::Array(_) | Kind::Tuple(_)), StaticValue::Array(_))
        )
    }

    fn fit_object(
        &mut self,
        literal: &'a ObjectExpression<'a>,
        object: &Object,
        path: &str,
        depth: usize,
    ) -> Vec<Misfit> {
        let LiteralKeys {
            keys,
            is_open,
            overwritten_to,
        } = LiteralKeys::from_literal(literal, self.reading);
        let mut there: HashSet<&str> = keys.iter().map(|key| key.name.as_str()).collect();
        let properties = object.properties.iter();
        let free: Vec<_> = properties
            .filter(|it| !there.contains(it.name.as_str()))
            .collect();
        let mut misfits = Vec::new();
        let mut meant: Vec<String> = Vec::new();
        for key in &keys {
            if misfits.len() > MISFITS_MAX {
                break;
            }
            let path = joined(path, &key.name);
            match object.properties.iter().find(|it| it.name == key.name) {
                Some(property) => {
                    let Some(value) = key.value else { continue };
                    let found = self.fit(value, &property.shape, &path, depth + 1);
                    misfits.extend(found.into_iter().map(|mut it| {
                        // A spread that follows may overwrite this key.
                        if key.at < overwritten_to {
                            it.severity = Severity::Warning;
                        }
                        it
                    }));
                }
                None => misfits.extend(self.unknown_key(key, object, &free, is_open, &mut meant)),
            }
        }
        if !is_open {
            there.extend(meant.iter().map(String::as_str));
            misfits.extend(self.missing_at(object, &there, literal.span.start, path));
        }
        misfits
    }

    fn unknown_key(
        &self,
        key: &Key<'a>,
        object: &Object,
        free: &[&Property],
        is_open: bool,
        meant: &mut Vec<String>,
    ) -> Option<Misfit> {
        if matches!(object.rest, ExtraKeys::Allowed(_)) {
            return None;
        }
        let patience = &self.reading.findings.patience;
        let close = patience.closest(&key.name, free.iter().map(|it| it.name.as_str()));
        // If exactly one required property is missing, the unknown key is probably a misspelling of
        // it.
        let mut needed = free.iter().filter(|it| it.required);
        let alone = match (needed.next(), needed.next()) {
            (Some(only), None) if close.is_none() => Some(only.name.as_str()),
            _ => None,
        };
        let close = close.or(alone);
        let is_needed = close.is_some_and(|name| {
            let mut properties = object.properties.iter();
            properties.any(|it| it.required && it.name == name)
        });
        if object.properties.is_empty() && object.rest == ExtraKeys::Unsaid {
            return None;
        }
        meant.extend(close.map(str::to_owned));
        let certain = object.rest == ExtraKeys::Forbidden || (is_needed && !is_open);
        let shown = text::clip(&text::neutralise(&key.name), 80);
        let names: Vec<String> = object
            .properties
            .iter()
            .map(|it| format!("`{}`", it.name))
            .collect();
        let suggestion = match close {
            Some(name) => Some(format!("Did you mean `{name}`?")),
            None if names.is_empty() => Some("Properties: none.".to_owned()),
            None => Some(format!("Properties: {}.", expect::listed(&names))),
        };
        Some(Misfit {
            severity: if certain {
                Severity::Error
            } else {
                Severity::Warning
            },
            code: FindingCode::UnknownProperty,
            at: key.at,
            message: format!("`{}` takes no `{shown}`", self.tool.name()),
            suggestion,
        })
    }

    fn missing(&self, object: &Object, present: &HashSet<&str>, at: u32) -> Vec<Misfit> {
        self.missing_at(object, present, at, "")
    }

    fn missing_at(
        &self,
        object: &Object,
        present: &HashSet<&str>,
        at: u32,
        path: &str,
    ) -> Vec<Misfit> {
        let needed = object.properties.iter().filter(|it| it.required);
        let missing = needed.filter(|it| !present.contains(it.name.as_str()));
        let what = |name: &str, shape: &Shape| {
            format!(
                "{} needs `{name}`, {}",
                if path.is_empty() {
                    format!("`{}`", self.tool.name())
                } else {
                    self.place(path)
                },
                expect::words(&self.shape, shape)
            )
        };
        missing
            .map(|it| Misfit {
                severity: Severity::Error,
                code: FindingCode::MissingArgument,
                at,
                message: what(&it.name, &it.shape),
                suggestion: Some(format!("Add `{}: …`.", expect::key(&it.name))),
            })
            .collect()
    }

    fn did_you_mean(&self, known: StaticValue<'_>, allowed: &[Value]) -> Option<String> {
        let StaticValue::Text(Some(got)) = known else {
            return None;
        };
        let texts = allowed.iter().filter_map(Value::as_str);
        let close = self.reading.findings.patience.closest(got, texts)?;
        Some(format!("Did you mean {}?", text::literal(close)))
    }

    fn place(&self, path: &str) -> String {
        format!("`{}` of `{}`", path, self.tool.name())
    }
}

fn joined(path: &str, name: &str) -> String {
    let shown = text::clip(&text::neutralise(name), 80);
    if path.is_empty() {
        shown
    } else if crate::names::is_identifier(name) {
        format!("{path}.{shown}")
    } else {
        format!("{path}[{}]", text::literal(&shown))
    }
}

fn display_value(known: StaticValue<'_>) -> String {
    match known {
        StaticValue::Text(Some(it)) => text::literal(&text::clip(it, 60)),
        StaticValue::Text(None) => "a string".to_owned(),
        StaticValue::Number(Some(it)) => it.to_string(),
        StaticValue::Number(None) => "a number".to_owned(),
        StaticValue::Boolean(Some(it)) => it.to_string(),
        StaticValue::Boolean(None) => "a boolean".to_owned(),
        StaticValue::Null => "null".to_owned(),
        StaticValue::Object(_) => "an object".to_owned(),
        StaticValue::Array(_) => "an array".to_owned(),
        StaticValue::Undefined | StaticValue::Nothing => "nothing".to_owned(),
    }
}
