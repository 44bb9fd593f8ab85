//! The grammar of made-up scripts, read from its file.

use std::collections::HashMap;
use std::sync::LazyLock;

const TEXT: &str = include_str!("../../../engines/grammar.txt");

/// One way to write something.
#[derive(Debug)]
pub(super) struct Way {
    pub(super) text: &'static str,
    /// Whether it ends what grows too deep.
    pub(super) is_short: bool,
    pub(super) only: Only,
}

/// Where a way may stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Only {
    Anywhere,
    Async,
    Generator,
    Loop,
}

const CONDITIONS: [(&str, Only); 3] = [
    ("async: ", Only::Async),
    ("gen: ", Only::Generator),
    ("loop: ", Only::Loop),
];

pub(super) static GRAMMAR: LazyLock<HashMap<&'static str, Vec<Way>>> = LazyLock::new(read);

fn read() -> HashMap<&'static str, Vec<Way>> {
    let mut grammar: HashMap<_, Vec<Way>> = HashMap::new();
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

fn way(line: &'static str) -> Way {
    let (is_short, text) = match line.strip_prefix("| ") {
        Some(text) => (true, text),
        None => (false, line),
    };
    let conditioned = CONDITIONS
        .into_iter()
        .find_map(|(word, only)| Some((text.strip_prefix(word)?, only)));
    let (text, only) = conditioned.unwrap_or((text, Only::Anywhere));
    Way {
        text,
        is_short,
        only,
    }
}
