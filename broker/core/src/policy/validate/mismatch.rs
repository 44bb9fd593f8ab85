//! Turns errors of Cedar's strict validation into findings with fixes.

use cedar_policy::ValidationError;
use cedar_policy::pst::{BinaryOp, Expr};
use miette::Diagnostic;

use super::Checker;
use crate::policy::ast::{self, Clause, PlacedPart, Polarity};
use crate::policy::expr::path;
use crate::policy::finding::Finding;
use crate::policy::fix::Fix;
use crate::policy::kind::Kind;
use crate::policy::load::read_with;
use crate::policy::mentions::ARGS;
use crate::policy::rule::Rule;
use crate::policy::spelling::{quoted, spelt};
use crate::policy::vocabulary::Vocabulary;

/// Returns a finding. `clauses` are those of the rule; `trial` checks fixes.
pub(super) fn finding(
    (rule, clauses): (&Rule, &[Clause]),
    error: &ValidationError,
    what: &str,
    trial: &mut FixTrial<'_>,
) -> Finding {
    let all = ast::seen(rule, clauses);
    let label = error.labels().and_then(|mut labels| labels.next());
    let at = label.map_or(0, |label| label.offset());
    let seen = all.iter().find(|seen| seen.tree.range.contains(&at));
    let kind = match error {
        ValidationError::UnsafeOptionalAttributeAccess(_) => Kind::OptionalUnguarded,
        ValidationError::UnsafeAttributeAccess(_) if seen.is_some_and(reads_argument) => {
            Kind::ArgumentUnmodelled
        }
        _ => Kind::TypeMismatch,
    };
    let fix = seen.and_then(|seen| match kind {
        Kind::OptionalUnguarded => guarded(rule, seen, error),
        Kind::ArgumentUnmodelled => unmodelled(rule, seen),
        _ => retyped(rule, seen, trial),
    });
    rule.diagnosed(kind, error, what).fixed(fix)
}

fn reads_argument(seen: &PlacedPart<'_>) -> bool {
    argument(seen.expr).is_some()
}

/// Returns the path to the argument that a part reads.
fn argument(expr: &Expr) -> Option<Vec<&str>> {
    match path(expr) {
        Some(steps) => (steps.first() == Some(&ARGS)).then_some(steps),
        None => crate::policy::expr::inner(expr)?
            .into_iter()
            .find_map(argument),
    }
}

/// Guards an optional member with `has`: if the member is absent, a permit does not match and a
/// forbid does.
fn guarded(rule: &Rule, seen: &PlacedPart<'_>, error: &ValidationError) -> Option<Fix> {
    let help = error.help()?.to_string();
    let guard = help.split_once('`')?.1.split_once(" && ")?.0;
    let text = rule.statement.text().get(seen.tree.range.clone())?;
    let text = match text.starts_with("if") {
        true => format!("({text})"),
        false => text.to_owned(),
    };
    let text = match seen.sign {
        Polarity::Takes => format!("!({guard} && !{})", bracketed(&text)),
        _ => format!("{guard} && {text}"),
    };
    let why = match seen.sign {
        Polarity::Takes => "let the rule apply if the value is absent",
        _ => "require that the value is present",
    };
    let mut fix = Fix::part(&rule.statement, seen, &text, why);
    // The edit adds brackets where the text needs them.
    if let ([edit], Some(old)) = (
        &*fix.edits,
        rule.statement.text().get(seen.tree.range.clone()),
    ) {
        fix.what = format!("{why}: write `{}` instead of `{old}`", edit.text);
    }
    Some(fix)
}

/// Puts the text in brackets if a `!` before it would only apply to its beginning.
fn bracketed(text: &str) -> String {
    let is_one = text
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_'));
    match is_one {
        true => text.to_owned(),
        false => format!("({text})"),
    }
}

/// Rewrites a read of an unmodelled argument as a test whether the call has the argument. The rule
/// then restricts the calls that have it.
fn unmodelled(rule: &Rule, seen: &PlacedPart<'_>) -> Option<Fix> {
    let way = argument(seen.expr)?;
    let pointer: String = way.iter().skip(1).map(|step| format!("/{step}")).collect();
    let is_used = format!("context.unmodelled.contains({})", quoted(&pointer)?);
    let text = match seen.sign {
        Polarity::Takes => is_used,
        _ => format!("!{is_used}"),
    };
    let what = "test whether the call has the argument; rules cannot see its value";
    Some(Fix::part(&rule.statement, seen, &text, what))
}

/// Rewrites one side of a comparison with another type, if the result is valid.
fn retyped(rule: &Rule, seen: &PlacedPart<'_>, trial: &mut FixTrial<'_>) -> Option<Fix> {
    let Expr::BinaryOp { op, left, right } = seen.expr else {
        return None;
    };
    let (read, written) = (spelt(left)?, spelt(right)?);
    let bare = written.trim_matches('"').to_owned();
    let texts = match op {
        BinaryOp::Eq => vec![
            format!("{read} == {bare}"),
            format!("{read} == \"{bare}\""),
            format!("{read} == [{written}]"),
            format!("{written}.contains({read})"),
            format!("{read}.isEmpty()"),
        ],
        BinaryOp::NotEq => vec![
            format!("{read} != {bare}"),
            format!("{read} != \"{bare}\""),
            format!("!{read}.contains({written})"),
            format!("!{read}.isEmpty()"),
        ],
        BinaryOp::Contains => vec![
            format!("{read} == {written}"),
            format!("{read}.contains({bare})"),
            format!("{read}.contains(\"{bare}\")"),
        ],
        BinaryOp::Less | BinaryOp::LessEq | BinaryOp::Greater | BinaryOp::GreaterEq => {
            let text = rule.statement.text().get(seen.tree.range.clone())?;
            vec![text.replace(&written, &bare)]
        }
        _ => return None,
    };
    let fixes = texts.into_iter().map(|text| {
        let what = format!("write {text}");
        Fix::part(&rule.statement, seen, &text, what)
    });
    fixes.into_iter().find(|fix| trial.fits(rule, fix))
}

/// Checks whether fixes help, a limited number of times.
pub(super) struct FixTrial<'a> {
    vocabulary: &'a Vocabulary,
    /// Created for the first fix, and only checks: it proposes no fixes itself.
    checker: Option<Checker<'a>>,
    left: usize,
}

impl<'a> FixTrial<'a> {
    pub(super) fn new(vocabulary: &'a Vocabulary, left: usize) -> Self {
        Self {
            vocabulary,
            checker: None,
            left,
        }
    }

    /// Whether the fixed rule alone passes validation.
    fn fits(&mut self, rule: &Rule, fix: &Fix) -> bool {
        if self.left == 0 {
            return false;
        }
        self.left -= 1;
        let vocabulary = self.vocabulary;
        let checker = self
            .checker
            .get_or_insert_with(|| Checker::without_fixes(vocabulary));
        read_with(rule, fix).is_some_and(|rule| checker.check(&[rule]).is_empty())
    }
}
