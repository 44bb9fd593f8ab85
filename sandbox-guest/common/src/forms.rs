//! The forms of a script, as far as its text shows them.

use std::borrow::Cow;

use sandbox_protocol::ScriptError;

use crate::nesting;

/// Maximum length in bytes of a script that is parsed as one expression although its start does not
/// look like one.
const EXPRESSION_BYTES_MAX: usize = 4_096;

/// Text around a script that is one expression.
pub const EXPRESSION: (&str, &str) = (
    "(async function () { const airlock_value =\n",
    "\n; return airlock_value })",
);
/// Text around a script that is one function.
pub const FUNCTION: (&str, &str) = (
    "(async function () { const main =\n",
    "\n; return await main(input) })",
);

/// What is wrong with a script's text, with the line and column.
#[derive(Debug, PartialEq, Eq)]
pub struct Fault {
    pub message: String,
    pub line: u32,
    pub column: u32,
}

/// Returns the script for the engine, or a fault if its brackets are not acceptable. A parser
/// recurses for each open bracket, and an unmatched closing bracket could close the wrapper.
pub fn readable(script: &str) -> Result<Cow<'_, str>, Fault> {
    let found = nesting::scan(script);
    let fault = |message: &str, (line, column)| Fault {
        message: message.to_owned(),
        line,
        column,
    };
    if let Some(at) = found.too_deep_at {
        return Err(fault("the script is nested too deeply", at));
    }
    if let Some(at) = found.unbalanced_at {
        return Err(fault("unmatched closing bracket", at));
    }
    Ok(match script.strip_prefix("#!") {
        Some(rest) => Cow::Owned(format!("//{rest}")),
        None => Cow::Borrowed(script),
    })
}

/// Returns the number of lines of a script.
pub fn lines(script: &str) -> u32 {
    u32::try_from(script.split('\n').count()).unwrap_or(u32::MAX)
}

/// Whether a script may be a single expression, so that parsing it as one is worthwhile.
pub fn may_be_expression(script: &str) -> bool {
    begins_like_function(script)
        || script.len() <= EXPRESSION_BYTES_MAX && !script.contains("return")
}

fn begins_like_function(script: &str) -> bool {
    let start = after_comments(script);
    start.starts_with('(')
        || start.starts_with("async")
        || start.starts_with("function")
        || start.split_once("=>").is_some_and(|(before, _)| {
            before
                .trim()
                .chars()
                .all(|c| c.is_alphanumeric() || c == '_' || c == '$')
        })
}

/// Returns the script from its first token on.
pub fn after_comments(script: &str) -> &str {
    let mut rest = script;
    loop {
        rest = rest.trim_start();
        if let Some(comment) = rest.strip_prefix("//") {
            rest = comment.split_once('\n').map_or("", |(_, after)| after);
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/").map_or("", |(_, after)| after);
        } else {
            return rest;
        }
    }
}

/// Whether a line begins with `export` or `import`.
pub fn looks_like_module(script: &str) -> bool {
    let begins = [
        "export ", "export{", "import ", "import{", "import\"", "import'",
    ];
    script.lines().any(|line| {
        let line = line.trim_start();
        begins.iter().any(|begin| line.starts_with(begin))
    })
}

/// Returns the line and column of a script's end, for errors about a missing part.
pub fn end_of(script: &str) -> (u32, u32) {
    end_of_prefix(script.trim_end())
}

/// Returns the line and column right after a text.
pub fn end_of_prefix(text: &str) -> (u32, u32) {
    let last = text.rsplit('\n').next().unwrap_or_default();
    let column = u32::try_from(last.chars().count()).unwrap_or(0) + 1;
    (lines(text), column)
}

/// Returns the error for a script that cannot be parsed; line 0 means that the position is unknown.
pub fn syntax_error(fault: Fault, script_name: &str) -> ScriptError {
    let Fault {
        message,
        line,
        column,
    } = fault;
    ScriptError {
        name: "SyntaxError".to_owned(),
        message,
        line,
        column,
        stack: match line {
            0 => String::new(),
            _ => format!("    at {script_name}:{line}:{column}"),
        },
        ..ScriptError::default()
    }
}

/// Returns the error for an input that is not JSON.
pub fn input_not_json(why: &str) -> ScriptError {
    let fault = Fault {
        message: format!("`input` is not JSON: {why}"),
        line: 0,
        column: 0,
    };
    syntax_error(fault, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_are_looked_at_before_a_script_is_read() {
        assert_eq!(readable("return 1").as_deref(), Ok("return 1"));
        assert_eq!(readable("#!x\n1").as_deref(), Ok("//x\n1"));
        let fault = |script: &str| {
            let fault = readable(script).unwrap_err();
            (fault.message, fault.line, fault.column)
        };
        let unbalanced = "unmatched closing bracket".to_owned();
        assert_eq!(fault("x\n }"), (unbalanced, 2, 2));
        assert_eq!(fault(&"[".repeat(400)).0, "the script is nested too deeply");
    }

    #[test]
    fn only_what_can_be_an_expression_is_looked_at_as_one() {
        let long = |text: &str| format!("/* a */ // b\n{text}{}", " ".repeat(EXPRESSION_BYTES_MAX));
        for (text, expected) in [
            ("(1)", true),
            ("async () => 1", true),
            ("function f() { return 1 }", true),
            ("x => { return 1 }", true),
            ("const x = y => { return 1 }", false),
            ("1 + 1", false),
        ] {
            assert_eq!(may_be_expression(&long(text)), expected, "{text}");
        }
        assert!(may_be_expression("1 + 1"));
        assert!(!may_be_expression("return 1"));
    }

    #[test]
    fn modules_are_known_by_their_lines() {
        assert!(looks_like_module("const a = 1\n  export default a"));
        assert!(looks_like_module("import'x'"));
        assert!(!looks_like_module("exported = 1; // export default"));
    }

    #[test]
    fn a_place_is_given_where_there_is_one() {
        assert_eq!(end_of("a\nbc \n"), (2, 3));
        let error = |line| {
            let fault = Fault {
                message: String::new(),
                line,
                column: 4,
            };
            syntax_error(fault, "a.js").stack
        };
        assert_eq!(error(3), "    at a.js:3:4");
        assert_eq!(error(0), "");
    }
}
