//! Writes a script by the grammar. Tracks the declared names of each block, and the productions
//! that each place allows.

use super::super::rng::Rng;
use super::grammar::{Context, GRAMMAR, Production};

/// Names that every script declares, and that its blocks may declare again.
const NAMES: [&str; 10] = ["a", "b", "c", "d", "n", "s", "l", "o", "m", "f"];

/// Maximum nesting depths, one of which is chosen.
const DEPTHS: [usize; 5] = [3, 4, 5, 6, 7];
const STATEMENTS: (usize, usize) = (2, 7);
/// Length of one statement in characters after which only short productions are used.
const STATEMENT_MAX: usize = 900;

/// The initial values of the names.
const DECLARED: &str = "let a = 1, b = 'b', c, d = null, n = 2, s = 'abc', l = [1, 2, 3], \
    o = { x: 1, y: { z: 2 } }, m = new Map([['a', 1]]), f = x => x, i = 1; const fs = [];";

/// Rules whose text belongs to the surrounding function, so it may contain `await` and `yield`.
const IN_PLACE: [&str; 19] = [
    "stmt",
    "loopblock",
    "loopstmts",
    "loopstmt",
    "block",
    "body",
    "abody",
    "gbody",
    "agbody",
    "astmt",
    "ew",
    "e",
    "pattern",
    "apattern",
    "args",
    "later",
    "callstmt",
    "cornercall",
    "idiomcall",
];

/// Rules that are not expressions, and get no parentheses.
const BARE: [&str; 47] = [
    "stmt",
    "stmtplain",
    "stmtplain2",
    "sstmt",
    "loopblock",
    "loopstmts",
    "loopstmt",
    "block",
    "body",
    "abody",
    "gbody",
    "agbody",
    "astmt",
    "ctorbody",
    "classbody",
    "subclassbody",
    "pattern",
    "apattern",
    "args",
    "params",
    "par",
    "catchparam",
    "finally",
    "finallyin",
    "afin",
    "gfin",
    "drive",
    "datearg",
    "dateparts",
    "setparts",
    "later",
    "callstmt",
    "consoleuse",
    "corner",
    "cornercall",
    "closes",
    "jumping",
    "member",
    "driven",
    "taken",
    "listed",
    "matched",
    "written",
    "timed",
    "mixed",
    "idiom",
    "idiomcall",
];
const WORDS: [&str; 23] = [
    "target",
    "key",
    "assign",
    "binary",
    "compare",
    "bigop",
    "lvalue",
    "gend",
    "iterstep",
    "typedmethod",
    "typedname",
    "viewset",
    "viewget",
    "urlpart",
    "math",
    "math1",
    "math2",
    "dateset",
    "dateget",
    "level",
    "fnname",
    "arraymethod",
    "joining",
];

#[derive(Debug)]
pub(super) struct Writer {
    chance: Rng,
    fresh: usize,
    /// Names declared in each block that is being written.
    blocks: Vec<Vec<&'static str>>,
    /// Names of the parameters of the next body.
    params: Vec<&'static str>,
    /// Names that the current statement declares. The statement does not use them itself.
    hidden: Vec<&'static str>,
    place: SyntaxContext,
    written: usize,
}

#[derive(Debug, Clone, Copy, Default)]
struct SyntaxContext {
    is_async: bool,
    is_generator: bool,
    is_loop: bool,
}

impl Writer {
    pub(super) fn new(chance: Rng) -> Self {
        Self {
            chance,
            fresh: 0,
            blocks: Vec::new(),
            params: Vec::new(),
            hidden: Vec::new(),
            place: SyntaxContext::default(),
            written: 0,
        }
    }

    /// Writes the statements of one script, each of which is complete.
    pub(super) fn statements(&mut self, family: &str) -> Vec<String> {
        let mut statements = vec![DECLARED.to_owned()];
        let (least, most) = STATEMENTS;
        for _ in 0..least + self.chance.below(most - least + 1) {
            self.written = 0;
            self.place = SyntaxContext {
                is_async: true,
                ..SyntaxContext::default()
            };
            let depth = DEPTHS[self.chance.below(DEPTHS.len())];
            // One statement in eight has the general subject `language`.
            let about = match self.chance.below(8) {
                0 if family != "types" => "language",
                _ => family,
            };
            self.blocks.push(Vec::new());
            let statement = self.write(about, depth);
            self.blocks.pop();
            statements.push(format!("try {{ {statement} }} catch (e) {{ log(e) }}"));
        }
        statements.push("log([a, b, c, d, n, s, l, o, m, typeof f]);".to_owned());
        if self.chance.below(4) == 0 {
            statements.push("return { a, s, l };".to_owned());
        }
        statements
    }

    fn write(&mut self, name: &str, depth: usize) -> String {
        let outside = self.place;
        let hidden = self.hidden.clone();
        match name {
            "abody" | "agbody" | "gbody" | "body" => {
                self.place = SyntaxContext {
                    is_async: name.starts_with('a'),
                    is_generator: name.ends_with("gbody"),
                    is_loop: false,
                };
            }
            "ew" | "astmt" => {
                self.place = SyntaxContext {
                    is_async: true,
                    ..SyntaxContext::default()
                }
            }
            "loopblock" => self.place.is_loop = true,
            _ if IN_PLACE.contains(&name) => {}
            _ if is_about(name) => {}
            _ => self.place = SyntaxContext::default(),
        }
        let is_block = is_block(name);
        if is_block {
            let mut declared = Vec::new();
            if name != "block" && name != "loopblock" {
                declared.append(&mut self.params);
            }
            self.blocks.push(declared);
        }
        let name_of_ways = if name == "sstmt" { "stmt" } else { name };
        let text = self.way(name_of_ways, depth);
        if is_block {
            self.blocks.pop();
        }
        self.place = outside;
        if is_block || name_of_ways == "stmt" || name == "params" {
            self.hidden = hidden;
        }
        let is_bare = is_about(name) || BARE.contains(&name) || WORDS.contains(&name);
        match is_bare || is_one_word(&text) {
            true => text,
            false => format!("({text})"),
        }
    }

    fn way(&mut self, name: &str, depth: usize) -> String {
        let place = self.place;
        let may_stand = |way: &&Production| match way.only {
            Context::Anywhere => true,
            Context::Async => place.is_async,
            Context::Generator => place.is_generator,
            Context::Loop => place.is_loop,
        };
        let ways = GRAMMAR.get(name).map_or(&[][..], Vec::as_slice);
        let mut ways: Vec<&Production> = ways.iter().filter(may_stand).collect();
        assert!(!ways.is_empty(), "the grammar has no `{name}`");
        if depth == 0 || self.written > STATEMENT_MAX {
            let short: Vec<&Production> = ways.iter().copied().filter(|way| way.is_short).collect();
            if !short.is_empty() {
                ways = short;
            }
        }
        let way = ways[self.chance.below(ways.len())];
        self.fill(way.text, depth.saturating_sub(1))
    }

    /// Expands a production and everything in it.
    fn fill(&mut self, way: &str, depth: usize) -> String {
        let mut text = String::new();
        let mut rest = way;
        let mut fresh = String::new();
        let outside = self.hidden.len();
        while let Some((before, after)) = rest.split_once('‹') {
            text.push_str(before);
            let (name, after) = after.split_once('›').unwrap_or((after, ""));
            rest = after;
            match name {
                "nothing" => {}
                "var" => text.push_str(self.any_name()),
                "new" => text.push_str(&self.new_name(way.starts_with("for "))),
                "par" => text.push_str(&self.parameter()),
                "fresh" => {
                    self.fresh += 1;
                    fresh = format!("v{}", self.fresh);
                    text.push_str(&fresh);
                }
                "same" => text.push_str(&fresh),
                "id" => {
                    self.fresh += 1;
                    text.push_str(&self.fresh.to_string());
                }
                name => {
                    // The names of this production are declared at the beginning of a block. The
                    // names of the productions around it are not: a function in the head of a loop
                    // runs before the loop's names are declared.
                    let heads = self.hidden.clone();
                    if is_block(name) {
                        self.hidden.truncate(outside);
                    }
                    let written = self.write(name, depth);
                    if is_block(name) {
                        self.hidden = heads;
                    }
                    text.push_str(&written);
                }
            }
        }
        text.push_str(rest);
        self.written += way.len();
        text
    }

    fn any_name(&mut self) -> &'static str {
        let first = self.chance.below(NAMES.len());
        let mut names = NAMES.iter().cycle().skip(first).take(NAMES.len());
        let shown = names.find(|name| !self.hidden.contains(name));
        shown.copied().unwrap_or("i")
    }

    /// Returns a name that the current block has not declared. Only the head of a loop gets a name
    /// that is used elsewhere, because these scripts do not test use before declaration.
    fn new_name(&mut self, is_of_loop: bool) -> String {
        let name = self.any_name();
        match self.blocks.last_mut() {
            Some(declared) if is_of_loop && !declared.contains(&name) => {
                declared.push(name);
                self.hidden.push(name);
                name.to_owned()
            }
            _ => {
                self.fresh += 1;
                format!("w{}", self.fresh)
            }
        }
    }

    fn parameter(&mut self) -> String {
        let name = self.any_name();
        if self.params.contains(&name) {
            self.fresh += 1;
            return format!("p{}", self.fresh);
        }
        self.params.push(name);
        self.hidden.push(name);
        name.to_owned()
    }
}

fn is_block(name: &str) -> bool {
    name == "block" || name == "loopblock" || name.ends_with("body")
}

/// Returns whether a rule is a subject of statements.
fn is_about(name: &str) -> bool {
    matches!(
        name,
        "language"
            | "waiting"
            | "calls"
            | "console"
            | "builtins"
            | "types"
            | "use"
            | "corners"
            | "idioms"
    )
}

/// Returns whether a text never needs parentheses: a name with its members, or a quoted string.
fn is_one_word(text: &str) -> bool {
    let is_name = text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '_');
    let is_quoted = text.len() > 1
        && text.starts_with('\'')
        && text.find(['\'', '\\']).is_some()
        && text[1..].find(['\'', '\\']) == Some(text.len() - 2)
        && text.ends_with('\'');
    is_name || is_quoted || text.is_empty()
}
