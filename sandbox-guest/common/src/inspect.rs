//! The format of printed values: limits, quotes, and line breaks.

use crate::text::cut;

pub const DEPTH_MAX: usize = 4;
pub const ITEMS_MAX: usize = 100;
/// Maximum length in characters of one printed value that is not a text.
pub const VALUE_CHARS_MAX: usize = 100_000;
/// Maximum length in characters of a text inside an object; a text printed on its own is not cut.
const INNER_TEXT_MAX: usize = 4_000;
/// Maximum length of one line in characters.
const LINE_CHARS: usize = 76;

/// Replaces `%s`, `%d`, `%i`, `%f`, `%j`, `%o`, `%O` and `%c` of a format with the available
/// values; `shown` formats a value for a letter. Returns the number of used values.
pub fn fill(
    format: &str,
    values: usize,
    line: &mut String,
    mut shown: impl FnMut(char, usize) -> String,
) -> usize {
    let mut used = 0;
    let mut chars = format.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('%', Some('%')) => {
                chars.next();
                line.push('%');
            }
            ('%', Some(&letter @ ('s' | 'd' | 'i' | 'f' | 'j' | 'o' | 'O' | 'c')))
                if used < values =>
            {
                chars.next();
                if letter != 'c' {
                    line.push_str(&shown(letter, used));
                }
                used += 1;
            }
            _ => line.push(c),
        }
    }
    used
}

/// Writes a member's name as in a script.
pub fn shown_name(name: &str) -> String {
    let plain = name
        .chars()
        .all(|c| c.is_alphanumeric() || c == '_' || c == '$')
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty();
    if plain {
        name.to_owned()
    } else {
        format!("'{}'", name.replace('\'', "\\'"))
    }
}

/// Quotes a text inside another value.
pub fn quoted(text: &str) -> String {
    let text = cut(text, INNER_TEXT_MAX);
    let quote = if !text.contains('\'') {
        '\''
    } else if !text.contains('"') {
        '"'
    } else {
        '`'
    };
    let text = text
        .replace('\\', "\\\\")
        .replace('\n', "\\n")
        .replace('\r', "\\r");
    format!("{quote}{text}{quote}")
}

/// Writes the parts on one line if they fit, and one per line otherwise; `total` is the number of
/// all parts.
pub fn wrap(open: &str, mut parts: Vec<String>, total: usize, close: &str, depth: usize) -> String {
    if total > parts.len() {
        parts.push(format!("… {} more", total - parts.len()));
    }
    if parts.is_empty() {
        return format!("{open}{close}");
    }
    let length: usize = parts.iter().map(|part| part.len() + 2).sum::<usize>() + open.len();
    if length <= LINE_CHARS && !parts.iter().any(|part| part.contains('\n')) {
        return format!("{open} {} {close}", parts.join(", "));
    }
    let indent = "  ".repeat(depth + 1);
    let inner = parts.join(&format!(",\n{indent}"));
    format!("{open}\n{indent}{inner}\n{}{close}", "  ".repeat(depth))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_takes_as_many_values_as_it_names() {
        for (format, values, expected, used) in [
            ("%s is %d%%", 3, "s0 is d1%", 2),
            ("%c%j", 2, "j1", 2),
            ("%s %s", 1, "s0 %s", 1),
            ("%x %", 1, "%x %", 0),
        ] {
            let mut line = String::new();
            let shown = |letter, at| format!("{letter}{at}");
            assert_eq!(fill(format, values, &mut line, shown), used);
            assert_eq!(line, expected);
        }
    }

    #[test]
    fn names_and_texts_have_quotes_where_they_need_them() {
        let names = ["a1", "$_ä", "1a", "", "a-b", "it's"].map(shown_name);
        assert_eq!(names, ["a1", "$_ä", "'1a'", "''", "'a-b'", "'it\\'s'"]);
        let texts = ["a", "it's", "'\"", "a\n\\"].map(quoted);
        assert_eq!(texts, ["'a'", "\"it's\"", "`'\"`", "'a\\n\\\\'"]);
    }

    #[test]
    fn what_does_not_fit_on_a_line_has_a_line_a_part() {
        let parts = |length| vec!["x".repeat(length), "y".to_owned()];
        assert_eq!(wrap("[", Vec::new(), 0, "]", 0), "[]");
        assert_eq!(wrap("[", parts(1), 3, "]", 0), "[ x, y, … 1 more ]");
        let long = "x".repeat(71);
        assert_eq!(
            wrap("[", parts(71), 2, "]", 1),
            format!("[\n    {long},\n    y\n  ]")
        );
    }
}
