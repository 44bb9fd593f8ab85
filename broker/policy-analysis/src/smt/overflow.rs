//! Computes when arithmetic overflows 64 bits, as a condition in Cedar's JSON form that itself
//! never overflows. Products of two values are not covered: their overflow cannot be expressed
//! without division.

use serde_json::{Value as Json, json};

use super::connective::{and, either, not};

/// Whether two values of a call are multiplied, so that [`when`] does not cover every error.
pub(super) fn is_open(expr: &Json) -> bool {
    let own = expr.get("*").is_some_and(|sides| {
        let side = |name: &str| sides.get(name).and_then(constant);
        side("left").is_none() && side("right").is_none()
    });
    own || parts(expr).into_iter().any(is_open)
}

/// Returns the condition under which the arithmetic of an expression fails, or `None` if it never
/// does.
pub(super) fn when(expr: &Json) -> Option<Json> {
    let (word, inner) = expr.as_object()?.iter().next()?;
    let part = |name: &str| inner.get(name);
    let of = |name: &str| part(name).and_then(when);
    match word.as_str() {
        "&&" => either(of("left"), of("right").map(|it| and(&inner["left"], &it))),
        "||" => {
            let otherwise = not(part("left")?);
            either(of("left"), of("right").map(|it| and(&otherwise, &it)))
        }
        "if-then-else" => {
            let (then, other) = (of("then"), of("else"));
            let never = json!({"Value": false});
            let later = (then.is_some() || other.is_some()).then(|| {
                let [then, other] = [then, other].map(|it| it.unwrap_or_else(|| never.clone()));
                choose(part("if")?.clone(), then, other).into()
            });
            either(of("if"), later.flatten())
        }
        _ => {
            let all = parts(expr).into_iter().map(when);
            let within = all.fold(None, either);
            either(within, own(word, inner))
        }
    }
}

/// Returns the direct subexpressions.
fn parts(expr: &Json) -> Vec<&Json> {
    let Some((word, inner)) = expr.as_object().and_then(|it| it.iter().next()) else {
        return Vec::new();
    };
    match (word.as_str(), inner) {
        ("Value" | "Var", _) => Vec::new(),
        ("Record", Json::Object(members)) => members.values().collect(),
        (_, Json::Array(items)) => items.iter().collect(),
        (_, Json::Object(sides)) => {
            const SIDES: [&str; 7] = ["left", "right", "arg", "in", "if", "then", "else"];
            SIDES.iter().filter_map(|name| sides.get(*name)).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the condition under which the operation itself overflows, given its operands.
fn own(word: &str, inner: &Json) -> Option<Json> {
    if word == "neg" {
        return equal(inner.get("arg")?, i64::MIN);
    }
    let (left, right) = (inner.get("left")?, inner.get("right")?);
    match (word, constant(left), constant(right)) {
        ("+", _, Some(by)) => added(left, by),
        ("+", Some(by), None) => added(right, by),
        ("+", None, None) => Some(choose(
            above(right, 0),
            compared(">", left, &minus(i64::MAX, right)),
            compared("<", left, &minus(i64::MIN, right)),
        )),
        ("-", _, Some(by)) if by > 0 => Some(below(left, i64::MIN + by)),
        ("-", _, Some(by)) if by < 0 => Some(above(left, i64::MAX + by)),
        ("-", _, Some(_)) => None,
        ("-", _, None) => Some(choose(
            above(right, 0),
            compared("<", left, &plus(i64::MIN, right)),
            compared(">", left, &plus(i64::MAX, right)),
        )),
        ("*", _, Some(by)) => multiplied(left, by),
        ("*", Some(by), None) => multiplied(right, by),
        _ => None,
    }
}

fn added(expr: &Json, by: i64) -> Option<Json> {
    match by {
        1.. => Some(above(expr, i64::MAX - by)),
        0 => None,
        _ => Some(below(expr, i64::MIN - by)),
    }
}

fn multiplied(expr: &Json, by: i64) -> Option<Json> {
    match by {
        0 | 1 => None,
        -1 => equal(expr, i64::MIN),
        // Division rounds towards zero, so the quotients themselves do not overflow.
        2.. => either(
            Some(above(expr, i64::MAX / by)),
            Some(below(expr, i64::MIN / by)),
        ),
        _ => either(
            Some(below(expr, i64::MAX / by)),
            Some(above(expr, i64::MIN / by)),
        ),
    }
}

fn constant(expr: &Json) -> Option<i64> {
    match expr.get("neg") {
        Some(inner) => inner.get("arg")?.get("Value")?.as_i64()?.checked_neg(),
        None => expr.get("Value")?.as_i64(),
    }
}

fn compared(word: &str, left: &Json, right: &Json) -> Json {
    json!({word: {"left": left, "right": right}})
}

fn above(expr: &Json, bound: i64) -> Json {
    compared(">", expr, &json!({ "Value": bound }))
}

fn below(expr: &Json, bound: i64) -> Json {
    compared("<", expr, &json!({ "Value": bound }))
}

fn equal(expr: &Json, number: i64) -> Option<Json> {
    Some(compared("==", expr, &json!({ "Value": number })))
}

fn plus(number: i64, expr: &Json) -> Json {
    compared("+", &json!({ "Value": number }), expr)
}

fn minus(number: i64, expr: &Json) -> Json {
    compared("-", &json!({ "Value": number }), expr)
}

fn choose(condition: Json, then: Json, other: Json) -> Json {
    json!({"if-then-else": {"if": condition, "then": then, "else": other}})
}

#[cfg(test)]
mod tests {
    use super::*;
    use cedar_policy::{Authorizer, Context, Decision, Entities, Policy, PolicySet, Request};

    /// Evaluates a policy with this JSON condition in Cedar. Returns whether the condition holds,
    /// or `None` if it errs.
    fn evaluate(condition: &Json, a: i64, b: i64) -> Option<bool> {
        let body = json!({"effect": "permit", "principal": {"op": "All"},
            "action": {"op": "All"}, "resource": {"op": "All"},
            "conditions": [{"kind": "when", "body": condition}]});
        let set = PolicySet::from_policies([Policy::from_json(None, body).unwrap()]).unwrap();
        let uid = |text: &str| format!("X::\"{text}\"").parse().unwrap();
        let context = Context::from_json_value(json!({"a": a, "b": b}), None).unwrap();
        let request = Request::new(uid("p"), uid("a"), uid("r"), context, None).unwrap();
        let answer = Authorizer::new().is_authorized(&request, &set, &Entities::empty());
        let errs = answer.diagnostics().errors().next().is_some();
        (!errs).then_some(answer.decision() == Decision::Allow)
    }

    fn condition(text: &str) -> Json {
        let text = format!("permit(principal, action, resource) when {{ {text} }};");
        let json = Policy::parse(None, text).unwrap().to_json().unwrap();
        json["conditions"][0]["body"].clone()
    }

    /// Returns boundary numbers and their neighbours.
    fn numbers() -> Vec<i64> {
        let edges = [0, i64::MAX, i64::MIN, i64::MAX / 2, i64::MIN / 3, 7, -12];
        let near = |it: &i64| [-2, -1, 0, 1, 2].map(|by| it.saturating_add(by));
        edges.iter().flat_map(near).collect()
    }

    #[test]
    fn overflow_condition_matches_cedar() {
        for text in [
            "context.a + 1 > 3",
            "context.a + -3 > 3",
            "5 + context.a > 3",
            "context.a + context.b > 3",
            "context.a - 7 > 3",
            "context.a - -7 > 3",
            "context.a - (-9223372036854775808) > 3",
            "7 - context.a > 3",
            "-2 - context.a > 3",
            "context.a - context.b > 3",
            "-context.a > 3",
            "-(-context.a) > 3",
            "context.a * 0 > 3",
            "context.a * 1 > 3",
            "context.a * -1 > 3",
            "context.a * 2 > 3",
            "3 * context.a > 3",
            "context.a * -2 > 3",
            "-7 * context.a > 3",
            "context.a * 9223372036854775807 > 3",
            "context.a * -9223372036854775808 > 3",
            "context.a * 3 + context.b * 2 - 5 > context.a",
            "(context.a - context.b) - (context.b - context.a) == 0",
            "(if context.a > 0 then context.a + 1 else context.b - 1) > 0",
            "(if context.a + 1 > 0 then context.a else context.b) > 0",
            "[context.a + 1, context.b].contains(context.a * 2)",
            "(context.a > 0 && context.a + 1 > 0) == true",
            "(context.a > 0 || context.a - 1 > 0) == true",
            "{x: context.a + 1, y: 2}.x > 3",
            "9223372036854775807 + 1 > context.a",
        ] {
            let expr = condition(text);
            assert!(!is_open(&expr), "{text}");
            let told = when(&expr).unwrap_or_else(|| json!({"Value": false}));
            let (mut errs, mut all) = (0, 0);
            for a in numbers() {
                for b in numbers() {
                    let expected = evaluate(&expr, a, b).is_none();
                    assert_eq!(
                        evaluate(&told, a, b),
                        Some(expected),
                        "{text} {a} {b}: {told}"
                    );
                    errs += u32::from(expected);
                    all += 1;
                }
            }
            let never = text.contains("* 0") || text.contains("* 1 ");
            assert_eq!(errs == 0, never, "{text}: {errs} of {all}");
        }
    }

    #[test]
    fn product_of_two_variables_is_unsupported() {
        assert!(is_open(&condition("context.a * context.b > 3")));
        assert!(is_open(&condition(
            "[(context.a + 1) * context.b].contains(3)"
        )));
        assert!(!is_open(&condition("context.a * 3 > context.b")));
    }
}
