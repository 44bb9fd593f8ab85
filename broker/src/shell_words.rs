//! Splits a command line into words as a shell does, without a shell. Quotes and backslashes have
//! their usual meaning, and nothing is expanded.

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadWords {
    #[error("the quote {0} is never closed")]
    OpenQuote(char),
    #[error("the command ends with a backslash")]
    TrailingBackslash,
}

pub(crate) fn split(text: &str) -> Result<Vec<String>, BadWords> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' | '\n' | '\r' => words.extend(word.take()),
            '\'' | '"' => quoted(c, &mut chars, word.get_or_insert_default())?,
            '\\' => word
                .get_or_insert_default()
                .push(chars.next().ok_or(BadWords::TrailingBackslash)?),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

/// Returns a word so that a shell reads it unchanged.
pub(crate) fn quote(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

fn quoted(quote: char, chars: &mut std::str::Chars<'_>, word: &mut String) -> Result<(), BadWords> {
    loop {
        match chars.next().ok_or(BadWords::OpenQuote(quote))? {
            c if c == quote => return Ok(()),
            '\\' if quote == '"' => match chars.next().ok_or(BadWords::OpenQuote(quote))? {
                c @ ('"' | '\\' | '$' | '`') => word.push(c),
                '\n' => {}
                c => word.extend(['\\', c]),
            },
            c => word.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        assert_eq!(split(text).unwrap(), expected, "{text}");
    }

    #[test]
    fn shell_words_split_like_a_shell() {
        check("npx -y  server .", &["npx", "-y", "server", "."]);
        check(r#"a "b c" 'd "e' f\ g"#, &["a", "b c", "d \"e", "f g"]);
        check(r#"'' "" x"y"'z'"#, &["", "", "xyz"]);
        check(r#""a\"b\\c\d""#, &[r#"a"b\c\d"#]);
        check("  ", &[]);
    }

    #[test]
    fn shell_words_expand_nothing() {
        check(
            "echo $HOME `id` *.js ~ ; rm",
            &["echo", "$HOME", "`id`", "*.js", "~", ";", "rm"],
        );
    }

    #[test]
    fn unterminated_quote_is_refused() {
        assert_eq!(split("a 'b"), Err(BadWords::OpenQuote('\'')));
        assert_eq!(split("a \"b\\"), Err(BadWords::OpenQuote('"')));
        assert_eq!(split("a \\"), Err(BadWords::TrailingBackslash));
    }
}
