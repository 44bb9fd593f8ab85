//! A text as the words that search compares: identifiers split, everything in
//! lower case and cut to its stem, without words that say nothing.

use super::stem::stem;

/// Words that are in every request and in no tool's name. Sorted.
const STOP: [&str; 96] = [
    "a", "about", "also", "am", "an", "and", "any", "are", "as", "at", "be", "been", "being",
    "but", "by", "can", "could", "did", "do", "does", "for", "from", "get", "give", "had", "has",
    "have", "he", "help", "her", "his", "how", "i", "if", "in", "into", "is", "it", "its", "let",
    "like", "looking", "make", "me", "more", "my", "need", "not", "of", "on", "one", "or", "our",
    "please", "provide", "she", "show", "so", "some", "such", "tell", "than", "that", "the",
    "their", "them", "then", "there", "these", "they", "this", "to", "too", "us", "use", "want",
    "was", "we", "were", "what", "when", "where", "which", "while", "who", "will", "with", "would",
    "you", "your", "yours", "ours", "mine", "myself", "hers", "whose",
];
const WORD_CHARS_MIN: usize = 2;
const WORD_CHARS_MAX: usize = 40;

/// The words of a text, in their order.
pub(super) fn of(text: &str) -> impl Iterator<Item = String> + '_ {
    split(text)
        .map(str::to_lowercase)
        .filter(|word| !STOP.contains(&word.as_str()))
        .filter(|word| (WORD_CHARS_MIN..=WORD_CHARS_MAX).contains(&word.chars().count()))
        .map(|word| stem(&word))
}

/// Pieces of letters and pieces of digits; `readFile`, `HTTPServer` and `read_file` are two words each.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| !c.is_alphanumeric());
        if rest.is_empty() {
            return None;
        }
        let end = end_of_piece(rest);
        let (piece, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        rest = after;
        Some(piece)
    })
}

fn end_of_piece(text: &str) -> usize {
    let mut chars = text.char_indices().peekable();
    let mut before: Option<char> = None;
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, next)| *next);
        if let Some(before) = before
            && is_border(before, c, next)
        {
            return at;
        }
        before = Some(c);
    }
    text.len()
}

fn is_border(before: char, c: char, next: Option<char>) -> bool {
    !c.is_alphanumeric()
        || before.is_numeric() != c.is_numeric()
        || (before.is_lowercase() && c.is_uppercase())
        || (before.is_uppercase() && c.is_uppercase() && next.is_some_and(char::is_lowercase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_split_where_a_reader_would() {
        for (text, expected) in [
            ("readFile", &["read", "File"] as &[&str]),
            ("read_file-v2", &["read", "file", "v", "2"]),
            ("HTTPServer", &["HTTP", "Server"]),
            ("getURL", &["get", "URL"]),
            ("Größe über日本", &["Größe", "über日本"]),
            ("...", &[]),
        ] {
            assert_eq!(split(text).collect::<Vec<_>>(), expected, "{text}");
        }
    }

    #[test]
    fn words_that_say_nothing_are_left_out() {
        assert!(STOP.iter().all(|word| word.to_lowercase() == *word));
        let words: Vec<_> = of("Could you please help me find the Files?").collect();
        assert_eq!(words, ["find", "file"]);
    }
}
