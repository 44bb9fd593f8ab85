//! Reads the grammar of generated scripts from its file.

use std::collections::HashMap;
use std::sync::LazyLock;

const TEXT: &str = include_str!("../../../engines/grammar.txt");

/// One production of a rule.
#[derive(Debug)]
pub(super) struct Production {
    pub(super) text: &'static str,
    /// Whether the production is used where the text is already nested too deeply.
    pub(super) is_short: bool,
    pub(super) only: Context,
}

/// The code in which a production may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Context {
    Anywhere,
    Async,
    Generator,
    Loop,
}

const CONDITIONS: [(&str, Context); 3] = [
    ("async: ", Context::Async),
    ("gen: ", Context::Generator),
    ("loop: ", Context::Loop),
];

pub(super) static GRAMMAR: LazyLock<HashMap<&'static str, Vec<Production>>> = LazyLock::new(read);

fn read() -> HashMap<&'static str, Vec<Production>> {
    let mut grammar: HashMap<_, Vec<Production>> = HashMap::new();
    let mut name = "";
    let lines = TEXT.lines();
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with("# ")) {
        match line.strip_prefix("== ") {
            Some(begun) => name = begun,
            None => grammar.entry(name).or_default().push(way(line)),
        }
    }
    grammar
}

fn way(line: &'static str) -> Production {
    let (is_short, text) = match line.strip_prefix("| ") {
        Some(text) => (true, text),
        None => (false, line),
    };
    let conditioned = CONDITIONS
        .into_iter()
        .find_map(|(word, only)| Some((text.strip_prefix(word)?, only)));
    let (text, only) = conditioned.unwrap_or((text, Context::Anywhere));
    Production {
        text,
        is_short,
        only,
    }
}
