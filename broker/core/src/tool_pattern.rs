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
