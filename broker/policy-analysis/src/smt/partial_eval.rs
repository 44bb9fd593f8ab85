//! Substitutes one approval into rules and removes the parts that are then known. A solver only has
//! to decide the rest.

use serde_json::{Value as Json, json};

use super::{APPROVAL, conditions};

/// The values that are known for every call of the question.
#[derive(Clone, Copy)]
pub(super) struct KnownFacts<'a> {
    pub(super) given: &'a [(Json, bool)],
    pub(super) approval: u8,
}

impl KnownFacts<'_> {
    /// Returns the remaining rule, or `None` if no call meets it.
    pub(super) fn rule(self, body: &Json) -> Option<Json> {
        let mut left = Vec::new();
        for (holds, condition) in conditions(body) {
            let condition = self.condition(condition);
            match truth(&condition) {
                Some(truth) if truth == holds => {}
                Some(_) => return None,
                None => {
                    let kind = if holds { "when" } else { "unless" };
                    left.push(json!({"kind": kind, "body": condition}));
                }
            }
        }
        let mut body = body.clone();
        let members = body.as_object_mut()?;
        members.insert("conditions".into(), left.into());
        Some(body)
    }

    /// Returns the remaining part of a condition that does not err.
    pub(super) fn condition(self, json: &Json) -> Json {
        if is_approval(json) {
            return json!({ "Value": self.approval });
        }
        if let Some(truth) = self.known(json) {
            return constant(truth);
        }
        let Some((word, inner)) = json.as_object().and_then(|it| it.iter().next()) else {
            return json.clone();
        };
        let side = |name: &str| inner.get(name).map(|it| self.condition(it));
        let whole = || json.clone();
        match word.as_str() {
            "!" => side("arg").map_or_else(whole, not),
            "&&" => both(side("left"), side("right"), false).unwrap_or_else(whole),
            "||" => both(side("left"), side("right"), true).unwrap_or_else(whole),
            "if-then-else" => self.chosen(inner).unwrap_or_else(whole),
            ">=" | "<" => compared(word, side("left"), side("right")).unwrap_or_else(whole),
            _ => whole(),
        }
    }

    /// Looks up a known value. A true `has` is kept, because Cedar requires the test before the
    /// read.
    fn known(self, json: &Json) -> Option<bool> {
        let (_, truth) = self.given.iter().find(|(it, _)| it == json)?;
        let is_kept = *truth && json.get("has").is_some();
        (!is_kept).then_some(*truth)
    }

    fn chosen(self, inner: &Json) -> Option<Json> {
        let [choice, then, other] = ["if", "then", "else"].map(|name| inner.get(name));
        let choice = self.condition(choice?);
        let (then, other) = (self.condition(then?), self.condition(other?));
        Some(match truth(&choice) {
            Some(true) => then,
            Some(false) => other,
            None => json!({"if-then-else": {"if": choice, "then": then, "else": other}}),
        })
    }
}

fn not(arg: Json) -> Json {
    match truth(&arg) {
        Some(truth) => constant(!truth),
        None => json!({"!": {"arg": arg}}),
    }
}

/// Combines two sides; a side with the value `decisive` decides.
fn both(left: Option<Json>, right: Option<Json>, decisive: bool) -> Option<Json> {
    let (left, right) = (left?, right?);
    let word = if decisive { "||" } else { "&&" };
    Some(match (truth(&left), truth(&right)) {
        (Some(one), _) if one == decisive => left,
        (_, Some(other)) if other == decisive => right,
        (Some(_), _) => right,
        (_, Some(_)) => left,
        (None, None) => json!({word: {"left": left, "right": right}}),
    })
}

fn compared(word: &str, left: Option<Json>, right: Option<Json>) -> Option<Json> {
    let (left, right) = (left?, right?);
    let number = |side: &Json| side.get("Value").and_then(Json::as_i64);
    Some(match (number(&left), number(&right)) {
        (Some(one), Some(other)) if word == "<" => constant(one < other),
        (Some(one), Some(other)) => constant(one >= other),
        _ => json!({word: {"left": left, "right": right}}),
    })
}

pub(super) fn is_approval(json: &Json) -> bool {
    *json == json!({".": {"left": {"Var": "context"}, "attr": APPROVAL}})
}

fn constant(truth: bool) -> Json {
    json!({ "Value": truth })
}

fn truth(json: &Json) -> Option<bool> {
    json.get("Value")?.as_bool()
}
