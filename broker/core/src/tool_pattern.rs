//! A pattern over `server.tool`. `*` matches any characters within its side of the dot; everything
//! else matches itself, case-sensitively.

use crate::id::ToolId;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolPattern {
    text: String,
    server: String,
    tool: String,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadToolPattern {
    #[error("the pattern is empty")]
    Nothing,
    #[error("`{text}` has no dot; expected `server.tool`, or `{text}.*` for all tools of a server")]
    NoDot { text: String },
    #[error("`{text}` is empty on one side of the dot")]
    Empty { text: String },
    #[error(
        "the pattern has {chars} characters; the limit is {}",
        ToolPattern::CHARS_MAX
    )]
    TooLong { chars: usize },
    #[error("`{text}` contains a space or a control character")]
    NotAName { text: String },
}

impl ToolPattern {
    pub const CHARS_MAX: usize = 256;

    /// Parses a pattern. `*` alone matches every tool of every server.
    pub fn parse(text: &str) -> Result<Self, BadToolPattern> {
        let chars = text.chars().count();
        if chars > Self::CHARS_MAX {
            return Err(BadToolPattern::TooLong { chars });
        }
        if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(BadToolPattern::NotAName {
                text: text.escape_debug().to_string(),
            });
        }
        let (server, tool) = match (text, text.split_once('.')) {
            ("", _) => return Err(BadToolPattern::Nothing),
            ("*", _) => ("*", "*"),
            (_, Some(sides)) => sides,
            (_, None) => return Err(BadToolPattern::NoDot { text: text.into() }),
        };
        if server.is_empty() || tool.is_empty() {
            return Err(BadToolPattern::Empty { text: text.into() });
        }
        Ok(Self {
            text: text.into(),
            server: server.into(),
            tool: tool.into(),
        })
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    #[must_use]
    pub fn matches(&self, tool: &ToolId) -> bool {
        is_match(&self.server, &tool.server.0) && is_match(&self.tool, &tool.tool.0)
    }

    /// Whether every name that matches this pattern also matches `other`. All possible names count,
    /// not only names of existing tools.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        is_within(&self.server, &other.server) && is_within(&self.tool, &other.tool)
    }
}

/// Matches a text against a pattern in which `*` matches any characters. Used for all name patterns
/// in the configuration. Backtracks to the latest `*` only, so the time is bounded by the product
/// of the lengths.
#[must_use]
pub fn is_match(pattern: &str, text: &str) -> bool {
    let (mut pattern, mut text) = (pattern.as_bytes(), text.as_bytes());
    let mut star = None;
    loop {
        match (pattern.split_first(), text.split_first()) {
            (Some((b'*', after)), _) => {
                star = Some((after, text));
                pattern = after;
            }
            (Some((p, p_rest)), Some((t, t_rest))) if p == t => (pattern, text) = (p_rest, t_rest),
            (None, None) => return true,
            _ => {
                let Some((after, [_, rest @ ..])) = star else {
                    return false;
                };
                star = Some((after, rest));
                (pattern, text) = (after, rest);
            }
        }
    }
}

/// Whether every text that matches `inner` also matches `outer`. The result is exact, for this
/// reason: replace each `*` of `inner` with a character that is in no pattern. If `outer` matches
/// the resulting text, only a `*` of `outer` can have matched that character, so it also matches
/// any other text in this place. The same argument shows that several patterns cover `inner`
/// together only if one of them covers it alone.
fn is_within(inner: &str, outer: &str) -> bool {
    is_match(outer, &inner.replace('*', "\0"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, yes: &[&str], no: &[&str]) {
        let pattern = ToolPattern::parse(pattern).unwrap();
        for (names, expected) in [(yes, true), (no, false)] {
            for name in names {
                let id = ToolId::parse(name).unwrap();
                assert_eq!(
                    pattern.matches(&id),
                    expected,
                    "{} {name}",
                    pattern.as_str()
                );
            }
        }
    }

    #[test]
    fn star_matches_within_its_side_of_dot() {
        check("fs.*", &["fs.read", "fs.a.b"], &["fsx.read", "f.s"]);
        check("*", &["fs.read", "a.b.c"], &[]);
        check(
            "*.read*file",
            &["fs.read_file", "x.readfile", "x.read_file_file"],
            &["fs.read"],
        );
        check("git-*.log", &["git-hub.log"], &["git.log", "git-hub.logs"]);
        check("fs.read", &["fs.read"], &["fs.Read", "fs.reads", "fs.rea"]);
        check("fs.a*b*c", &["fs.abc", "fs.axbxbxc"], &["fs.acb", "fs.ab"]);
    }

    #[test]
    fn pattern_is_within_another() {
        for (inner, outer, expected, reverse) in [
            ("fs.read_*", "fs.*", true, false),
            ("fs.read", "fs.read", true, true),
            ("fs.*", "*", true, false),
            ("fs.**", "fs.*", true, true),
            ("fs.*a*", "fs.*", true, false),
            ("fs.a*b*c", "fs.a*c", true, false),
            ("fs.read_*", "fs.*_all", false, false),
            ("f*.read", "fs.*", false, false),
            ("fs.read", "*.read", true, false),
            ("fs.Read", "fs.read", false, false),
        ] {
            let [inner, outer] = [inner, outer].map(|it| ToolPattern::parse(it).unwrap());
            assert_eq!(inner.is_within(&outer), expected, "{inner:?} {outer:?}");
            assert_eq!(outer.is_within(&inner), reverse, "{outer:?} {inner:?}");
        }
    }

    /// Returns all texts of up to `length` of these characters.
    fn texts(characters: &str, length: usize) -> Vec<String> {
        let mut all = vec![String::new()];
        for _ in 0..length {
            let longer = all.iter().flat_map(|text| {
                let longer = |c: char| format!("{text}{c}");
                characters.chars().map(longer).collect::<Vec<_>>()
            });
            let longer: Vec<_> = longer.collect();
            all.extend(longer);
            all.sort();
            all.dedup();
        }
        all
    }

    #[test]
    fn containment_equals_brute_force() {
        // `c` is in no pattern, so these texts distinguish any two different patterns of this
        // length.
        let words = texts("abc", 5);
        let patterns = texts("ab*", 3);
        for inner in &patterns {
            for outer in &patterns {
                let mut matching = words.iter().filter(|word| is_match(inner, word));
                let expected = matching.all(|word| is_match(outer, word));
                assert_eq!(is_within(inner, outer), expected, "{inner} in {outer}");
            }
        }
    }

    #[test]
    fn ambiguous_pattern_is_refused() {
        assert!(
            ToolPattern::parse("github")
                .unwrap_err()
                .to_string()
                .contains("`github.*`")
        );
        for bad in [
            "",
            ".x",
            "x.",
            "a b.c",
            "a.b\n",
            &format!("a.{}", "*".repeat(300)),
        ] {
            assert!(ToolPattern::parse(bad).is_err(), "{bad:?}");
        }
    }
}
