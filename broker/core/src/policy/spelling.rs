//! Writes expressions as Cedar text, as far as fixes need it: paths into the context, texts,
//! numbers, booleans, and sets of these.

use cedar_policy::pst::{Expr, Literal, Var};

pub fn spelt(expr: &Expr) -> Option<String> {
    Some(match expr {
        Expr::Var(Var::Context) => "context".to_owned(),
        Expr::GetAttr { expr, attr } => {
            let from = spelt(expr)?;
            match is_name(attr) {
                true => format!("{from}.{attr}"),
                false => format!("{from}[{}]", quoted(attr)?),
            }
        }
        Expr::Literal(Literal::Bool(truth)) => truth.to_string(),
        Expr::Literal(Literal::Long(number)) => number.to_string(),
        Expr::Literal(Literal::String(text)) => quoted(text)?,
        Expr::Set(items) => {
            let items: Option<Vec<_>> = items.iter().map(|item| spelt(item)).collect();
            format!("[{}]", items?.join(", "))
        }
        _ => return None,
    })
}

/// Quotes a text, or returns `None` if it contains a control character.
pub fn quoted(text: &str) -> Option<String> {
    let is_plain = text.chars().all(|c| !c.is_control());
    is_plain.then(|| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")))
}

/// Whether the word can follow a dot as a member name.
fn is_name(word: &str) -> bool {
    const RESERVED: [&str; 9] = [
        "true", "false", "if", "then", "else", "in", "is", "like", "has",
    ];
    !RESERVED.contains(&word)
        && word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
