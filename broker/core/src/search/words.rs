//! A text as the words that search compares: identifiers split, everything in
//! lower case and cut to its stem, without words that say nothing.

use std::collections::HashMap;

use super::stem::stem;

/// Words that are in every request and in no tool's name. Sorted.
const STOP: [&str; 96] = [
    "a", "about", "also", "am", "an", "and", "any", "are", "as", "at", "be", "been", "being",
    "but", "by", "can", "could", "did", "do", "does", "for", "from", "get", "give", "had", "has",
    "have", "he", "help", "her", "hers", "his", "how", "i", "if", "in", "into", "is", "it", "its",
    "let", "like", "looking", "make", "me", "mine", "more", "my", "myself", "need", "not", "of",
    "on", "one", "or", "our", "ours", "please", "provide", "she", "show", "so", "some", "such",
    "tell", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "to",
    "too", "us", "use", "want", "was", "we", "were", "what", "when", "where", "which", "while",
    "who", "whose", "will", "with", "would", "you", "your", "yours",
];
const WORD_CHARS_MIN: usize = 2;
const WORD_CHARS_MAX: usize = 40;

/// The words of a text, in their order.
pub(super) fn of(text: &str) -> impl Iterator<Item = String> + '_ {
    split(text).filter_map(word)
}

/// A piece as a word; none when it says nothing.
fn word(piece: &str) -> Option<String> {
    let word = piece.to_lowercase();
    let says = STOP.binary_search(&word.as_str()).is_err()
        && (WORD_CHARS_MIN..=WORD_CHARS_MAX).contains(&word.chars().count());
    says.then(|| stem(&word))
}

/// The words of many texts, numbered in the order in which they come first. What a piece stands
/// for is worked out once: a thousand descriptions repeat a few thousand pieces.
#[derive(Default)]
pub(super) struct Numbered<'a> {
    pieces: HashMap<&'a str, Option<u32>>,
    numbers: HashMap<String, u32>,
}

impl<'a> Numbered<'a> {
    pub(super) fn read(&mut self, text: &'a str) -> impl Iterator<Item = u32> {
        split(text).filter_map(|piece| self.number(piece))
    }

    fn number(&mut self, piece: &'a str) -> Option<u32> {
        if let Some(known) = self.pieces.get(piece) {
            return *known;
        }
        let next = u32::try_from(self.numbers.len()).ok()?;
        let number = word(piece).map(|word| *self.numbers.entry(word).or_insert(next));
        self.pieces.insert(piece, number);
        number
    }

    /// Each under its number.
    pub(super) fn into_words(self) -> Vec<String> {
        let mut words = vec![String::new(); self.numbers.len()];
        for (word, number) in self.numbers {
            if let Some(place) = words.get_mut(number as usize) {
                *place = word;
            }
        }
        words
    }
}

/// Pieces of letters and pieces of digits; `readFile`, `HTTPServer` and `read_file` are two words each.
fn split(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = from_piece(rest);
        if rest.is_empty() {
            return None;
        }
        let end = end_in_ascii(rest).unwrap_or_else(|| end_of_piece(rest));
        let (piece, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        rest = after;
        Some(piece)
    })
}

/// From where the next piece begins.
fn from_piece(text: &str) -> &str {
    let begins = |byte: &u8| byte.is_ascii_alphanumeric() || !byte.is_ascii();
    let at = text.bytes().position(|byte| begins(&byte));
    let rest = at.and_then(|at| text.get(at..)).unwrap_or_default();
    match rest.as_bytes().first() {
        Some(byte) if !byte.is_ascii() => rest.trim_start_matches(|c: char| !c.is_alphanumeric()),
        _ => rest,
    }
}

/// Where a piece ends, by its bytes; most texts are nothing but ASCII. Nothing when this one is
/// not as far as it has to be looked at.
fn end_in_ascii(text: &str) -> Option<usize> {
    let mut bytes = text.bytes().enumerate().peekable();
    let mut before: Option<u8> = None;
    while let Some((at, byte)) = bytes.next() {
        let next = bytes.peek().map(|(_, next)| *next);
        if !byte.is_ascii() || next.is_some_and(|it| !it.is_ascii()) {
            return None;
        }
        if let Some(before) = before
            && is_border(before.into(), byte.into(), next.map(char::from))
        {
            return Some(at);
        }
        before = Some(byte);
    }
    Some(text.len())
}

/// The same by its characters.
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
    fn bytes_and_characters_end_a_piece_at_the_same_place() {
        let alphabet = ['a', 'z', 'B', 'Z', '0', '9', '_', ' ', 'é', 'Ü', '日', '٣'];
        let count = alphabet.len();
        for number in 0..count.pow(4) {
            let letter = |at: u32| alphabet[number / count.pow(at) % count];
            let text: String = (0..4).map(letter).collect();
            for (at, _) in text.char_indices() {
                let rest = &text[at..];
                let by_bytes = end_in_ascii(rest);
                assert!(by_bytes.is_none_or(|it| it == end_of_piece(rest)), "{rest}");
                let begins = rest.trim_start_matches(|c: char| !c.is_alphanumeric());
                assert_eq!(from_piece(rest), begins, "{rest}");
            }
        }
    }

    #[test]
    fn many_texts_have_the_words_that_each_has_alone() {
        let texts = ["Reads a file", "read_file", "It reads FILES", "", "the of"];
        let mut numbered = Numbered::default();
        let read = texts.map(|text| numbered.read(text).collect::<Vec<_>>());
        let words = numbered.into_words();
        assert_eq!(words, ["read", "file"]);
        for (text, numbers) in texts.into_iter().zip(read) {
            let named: Vec<_> = numbers
                .iter()
                .map(|it| words[*it as usize].clone())
                .collect();
            assert_eq!(named, of(text).collect::<Vec<_>>(), "{text}");
        }
    }

    #[test]
    fn words_that_say_nothing_are_left_out() {
        assert!(STOP.is_sorted() && STOP.iter().all(|word| word.to_lowercase() == *word));
        let words: Vec<_> = of("Could you please help me find the Files?").collect();
        assert_eq!(words, ["find", "file"]);
    }
}
