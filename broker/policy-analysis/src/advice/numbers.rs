//! Advice about comparisons with numbers that a fact never has.

use super::Advice;
use super::ask::{Ask, Form, Value};
use airlock_core::policy::ast::PlacedPart;
use airlock_core::policy::finding::Finding;
use airlock_core::policy::kind::Kind;
use cedar_policy::pst::{BinaryOp, Expr, Literal};

/// Numeric facts with their smallest and largest possible value.
const RANGES: [(&[&str], i64, i64); 7] = [
    (&["time", "hour"], 0, 23),
    (&["time", "weekday"], 1, 7),
    (&["time", "at_ms"], 0, i64::MAX),
    (&["counts", "calls_run"], 0, i64::MAX),
    (&["counts", "calls_session"], 0, i64::MAX),
    (&["counts", "bytes_run"], 0, i64::MAX),
    (&["counts", "bytes_session"], 0, i64::MAX),
];

impl Advice<'_> {
    pub(super) fn numbers(&self, seen: &PlacedPart<'_>, form: &Form) -> Option<Finding> {
        let Form::One(ask, holds) = form else {
            return None;
        };
        let way = ask.way()?;
        let (_, least, most) = RANGES.iter().find(|(name, ..)| way == name)?;
        let name = way.join(".");
        let always = match ask {
            Ask::AtMost(_, number) if number >= most && *most < i64::MAX => *holds,
            Ask::AtMost(_, number) if number < least => !holds,
            Ask::Equal(_, Value::Whole(number)) if number < least || number > most => !holds,
            _ => return None,
        };
        let range = match *most {
            i64::MAX => format!("`{name}` is {least} or more"),
            most => format!("`{name}` is from {least} to {most}"),
        };
        if always {
            let what = "this part of the condition is true for every call";
            return Some(self.idle(seen, what, &range));
        }
        let what = "this comparison is false for every call";
        let instead = self.nearest(seen, *least, *most);
        let mut finding = self.at(seen, Kind::OutOfRange, (what, &range), instead);
        if finding.fix.is_none() {
            finding.next = format!("write a number that `{name}` can have");
        }
        Some(finding)
    }

    /// Rewrites the comparison with the nearest possible number. Sunday is 7 here and 0 in other
    /// systems; midnight is 0 and not 24. For any other number in an equality, the intended number
    /// is unknown.
    fn nearest(&self, seen: &PlacedPart<'_>, least: i64, most: i64) -> Option<String> {
        let Expr::BinaryOp { op, left, right } = seen.expr else {
            return None;
        };
        let number = match (&**left, &**right) {
            (Expr::Literal(Literal::Long(number)), _)
            | (_, Expr::Literal(Literal::Long(number))) => *number,
            _ => return None,
        };
        let is_strict = matches!(op, BinaryOp::Less | BinaryOp::Greater);
        let is_equal = matches!(op, BinaryOp::Eq | BinaryOp::NotEq);
        let wrapped = match (number < least, is_equal) {
            (_, true) if most == i64::MAX => least,
            (true, true) if number == least - 1 && least == 1 => most,
            (false, true) if number == most + 1 && least == 0 => least,
            (_, true) => return None,
            (true, false) => least + i64::from(is_strict),
            (false, false) => most - i64::from(is_strict),
        };
        let text = self.rule.statement.text().get(seen.tree.range.clone())?;
        let at = text.rfind(&number.to_string())?;
        let (before, after) = text.split_at_checked(at)?;
        let after = after.get(number.to_string().len()..)?;
        Some(format!("{before}{wrapped}{after}"))
    }
}
