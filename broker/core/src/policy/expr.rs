//! Properties of a Cedar expression that follow from its syntax alone.

use cedar_policy::pst::{BinaryOp, Expr, Literal, PatternElem, UnaryOp, Var};

/// Returns the path from `context` to the value that an expression reads, or tests with `has`.
pub fn path(expr: &Expr) -> Option<Vec<&str>> {
    match expr {
        Expr::Var(Var::Context) => Some(Vec::new()),
        Expr::GetAttr { expr, attr } => {
            let mut steps = path(expr)?;
            steps.push(attr.as_str());
            Some(steps)
        }
        Expr::HasAttr { expr, attrs } => {
            let mut steps = path(expr)?;
            steps.extend(attrs.iter().map(|attr| attr.as_str()));
            Some(steps)
        }
        _ => None,
    }
}

/// Returns the direct subexpressions, or `None` for an unknown kind of expression.
pub fn inner(expr: &Expr) -> Option<Vec<&Expr>> {
    Some(match expr {
        Expr::Literal(_) | Expr::Var(_) | Expr::Slot(_) => Vec::new(),
        Expr::UnaryOp { expr, .. }
        | Expr::GetAttr { expr, .. }
        | Expr::HasAttr { expr, .. }
        | Expr::Like { expr, .. } => vec![expr],
        Expr::BinaryOp { left, right, .. } => vec![left, right],
        Expr::Is { expr, in_expr, .. } => {
            let within = in_expr.iter().map(|it| &**it);
            std::iter::once(&**expr).chain(within).collect()
        }
        Expr::IfThenElse {
            cond,
            then_expr,
            else_expr,
        } => vec![cond, then_expr, else_expr],
        Expr::Set(members) => members.iter().map(|it| &**it).collect(),
        Expr::Record(members) => members.values().map(|it| &**it).collect(),
        _ => return None,
    })
}

/// Whether a valid expression can fail at run time, for example because a sum overflows.
pub fn may_err(expr: &Expr) -> bool {
    let here = match expr {
        Expr::UnaryOp { op, expr } => match op {
            UnaryOp::Neg => !matches!(&**expr, Expr::Literal(_)),
            UnaryOp::ToDate | UnaryOp::ToTime => true,
            _ => false,
        },
        Expr::BinaryOp { op, .. } => matches!(
            op,
            BinaryOp::Add
                | BinaryOp::Sub
                | BinaryOp::Mul
                | BinaryOp::GetTag
                | BinaryOp::Offset
                | BinaryOp::DurationSince
        ),
        _ => false,
    };
    here || inner(expr).is_none_or(|parts| parts.into_iter().any(may_err))
}

pub fn text(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Literal(Literal::String(text)) => Some(text.to_string()),
        _ => None,
    }
}

pub fn literal_part(pattern: &[PatternElem]) -> String {
    pattern
        .iter()
        .map(|it| match it {
            PatternElem::Char(c) => *c,
            PatternElem::Wildcard => '*',
        })
        .collect()
}

/// Whether a text looks like a file path or a URL. A text such as `acme/site` counts as a name
/// instead.
pub(crate) fn looks_raw(text: &str) -> bool {
    let starts = ["/", "./", "../", "~", "\\", "*/", "file:", "www."];
    starts.iter().any(|start| text.starts_with(start))
        || text.contains("://")
        || text.contains("/../")
        || text.contains(":\\")
        || text.ends_with("/*")
}
