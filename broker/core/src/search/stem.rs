//! English words cut to what their forms have in common. Coarser than a
//! dictionary and finer than nothing: `repositories`, `repository` and
//! `committing`, `commits` meet.

/// Endings from long to short, and what takes their place.
const ENDINGS: [(&str, &str); 8] = [
    ("ization", "ize"),
    ("ational", "ate"),
    ("ation", "ate"),
    ("ment", ""),
    ("edly", ""),
    ("ing", ""),
    ("ed", ""),
    ("ly", ""),
];
/// What has to be left of a word.
const LEFT_CHARS_MIN: usize = 3;

/// A word in lower case; other scripts stay as they are.
pub(super) fn stem(word: &str) -> String {
    if !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return word.to_owned();
    }
    let mut word = singular(word);
    let ending = ENDINGS.iter().find(|(ending, _)| {
        word.strip_suffix(ending)
            .is_some_and(|left| left.len() >= LEFT_CHARS_MIN)
    });
    if let Some((ending, instead)) = ending {
        word.truncate(word.len() - ending.len());
        word.push_str(instead);
        undouble(&mut word);
    }
    if word.len() > LEFT_CHARS_MIN + 1 && word.ends_with('e') {
        word.pop();
    }
    word
}

fn singular(word: &str) -> String {
    let long = |chars: usize| word.len() > chars;
    if let Some(left) = word.strip_suffix("ies").filter(|_| long(4)) {
        return format!("{left}y");
    }
    if let Some(left) = word.strip_suffix("sses").filter(|_| long(5)) {
        return format!("{left}ss");
    }
    let stays = ["ss", "us", "is"]
        .iter()
        .any(|ending| word.ends_with(ending));
    match word.strip_suffix('s').filter(|_| long(3) && !stays) {
        Some(left) => left.to_owned(),
        None => word.to_owned(),
    }
}

/// `committing` left `committ`.
fn undouble(word: &mut String) {
    let mut ends = word.bytes().rev();
    if let (Some(last), Some(before)) = (ends.next(), ends.next())
        && last == before
        && !matches!(last, b'l' | b's' | b'z')
        && word.len() > LEFT_CHARS_MIN
    {
        word.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_one_word_meet() {
        for forms in [
            &["repository", "repositories"] as &[&str],
            &["commit", "commits", "committed", "committing"],
            &["file", "files"],
            &["create", "creates", "created", "creating", "creation"],
            &["organize", "organization", "organizations"],
            &["process", "processes", "processing"],
            &["status"],
            &["analysis"],
        ] {
            let stems: std::collections::HashSet<_> = forms.iter().map(|form| stem(form)).collect();
            assert_eq!(stems.len(), 1, "{stems:?}");
        }
        assert_ne!(stem("news"), stem("needs"));
    }

    #[test]
    fn short_words_and_other_scripts_stay() {
        for word in ["is", "red", "sing", "größe", "日本", "s3"] {
            assert_eq!(stem(word), word);
        }
    }
}
