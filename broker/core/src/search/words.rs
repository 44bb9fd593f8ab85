//! Splits a text into the words that search compares: identifiers are split, words are in lower
//! case and stemmed, and stop words are dropped.

use std::collections::HashMap;
use std::sync::Arc;

use super::hash::Hash;
use super::stem::stem;

/// Stop words: they occur in requests but not in tool names. Sorted.
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

/// Returns the words of a text, in their order.
pub(super) fn terms(text: &str) -> impl Iterator<Item = String> + '_ {
    split(text).filter_map(word)
}

/// Returns a piece as a word, or `None` for a stop word and for a piece of unsuitable length.
fn word(piece: &str) -> Option<String> {
    let word = piece.to_lowercase();
    let says = STOP.binary_search(&word.as_str()).is_err()
        && (WORD_CHARS_MIN..=WORD_CHARS_MAX).contains(&word.chars().count());
    says.then(|| stem(&word))
}

/// The words of many texts, numbered in order of first occurrence. The word for each piece is
/// computed only once, because a thousand descriptions repeat a few thousand pieces.
#[derive(Default)]
pub(super) struct NumberedWords<'a> {
    pieces: HashMap<&'a str, Option<u32>, Hash>,
    numbers: HashMap<Arc<str>, u32, Hash>,
    /// Words by their number.
    words: Vec<Arc<str>>,
}

impl<'a> NumberedWords<'a> {
    pub(super) fn read(&mut self, text: &'a str) -> impl Iterator<Item = u32> {
        split(text).filter_map(|piece| self.number(piece))
    }

    fn number(&mut self, piece: &'a str) -> Option<u32> {
        if let Some(known) = self.pieces.get(piece) {
            return *known;
        }
        let number = word(piece).and_then(|word| self.number_of(&word));
        self.pieces.insert(piece, number);
        number
    }

    fn number_of(&mut self, word: &str) -> Option<u32> {
        if let Some(known) = self.numbers.get(word) {
            return Some(*known);
        }
        let next = u32::try_from(self.words.len()).ok()?;
        let word: Arc<str> = word.into();
        self.words.push(Arc::clone(&word));
        self.numbers.insert(word, next);
        Some(next)
    }

    /// Returns the words by their number.
    pub(super) fn into_words(self) -> Vec<Arc<str>> {
        self.words
    }
}

/// Splits a text into pieces of letters and pieces of digits. `readFile`, `HTTPServer` and
/// `read_file` are two words each.
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

/// Skips to the beginning of the next piece.
fn from_piece(text: &str) -> &str {
    let at = text
        .bytes()
        .position(|byte| Kind::from_byte(byte) != Kind::Between);
    let rest = at.and_then(|at| text.get(at..)).unwrap_or_default();
    match rest.as_bytes().first() {
        Some(byte) if !byte.is_ascii() => rest.trim_start_matches(|c: char| !c.is_alphanumeric()),
        _ => rest,
    }
}

/// The class of a byte for finding the end of a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Lower,
    Upper,
    Digit,
    /// A byte that belongs to no piece.
    Between,
    /// A byte of a character that is not ASCII.
    Beyond,
}

impl Kind {
    const fn from_byte(byte: u8) -> Self {
        match byte {
            b'a'..=b'z' => Self::Lower,
            b'A'..=b'Z' => Self::Upper,
            b'0'..=b'9' => Self::Digit,
            0x80.. => Self::Beyond,
            _ => Self::Between,
        }
    }
}

/// Returns the end of the first piece by looking at bytes only, since most texts are ASCII. Returns
/// `None` at a character that is not ASCII.
fn end_in_ascii(text: &str) -> Option<usize> {
    let mut before: Option<Kind> = None;
    let mut last = Kind::Between;
    for (at, byte) in text.bytes().enumerate() {
        let kind = Kind::from_byte(byte);
        // In a sequence of upper-case letters, the last letter belongs to the lower-case letters
        // after it. Only the next byte shows which letter is the last.
        match (before, last, kind) {
            (_, _, Kind::Beyond) => return None,
            (Some(Kind::Upper), Kind::Upper, Kind::Lower) => return Some(at - 1),
            _ => {}
        }
        if at > 0 && is_border_in_ascii(last, kind) {
            return Some(at);
        }
        before = (at > 0).then_some(last);
        last = kind;
    }
    Some(text.len())
}

fn is_border_in_ascii(before: Kind, kind: Kind) -> bool {
    match (before, kind) {
        (_, Kind::Between) | (Kind::Lower, Kind::Upper) => true,
        _ => (before == Kind::Digit) != (kind == Kind::Digit),
    }
}

/// Returns the end of the first piece by looking at characters.
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
    fn identifiers_are_split_into_words() {
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
    fn byte_and_char_splitting_agree() {
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
    fn batch_and_single_words_agree() {
        let texts = ["Reads a file", "read_file", "It reads FILES", "", "the of"];
        let mut numbered = NumberedWords::default();
        let read = texts.map(|text| numbered.read(text).collect::<Vec<_>>());
        let words = numbered.into_words();
        assert_eq!(words, ["read".into(), "file".into()]);
        for (text, numbers) in texts.into_iter().zip(read) {
            let named: Vec<_> = numbers
                .iter()
                .map(|it| words[*it as usize].to_string())
                .collect();
            assert_eq!(named, terms(text).collect::<Vec<_>>(), "{text}");
        }
    }

    #[test]
    fn stop_words_are_dropped() {
        assert!(STOP.is_sorted() && STOP.iter().all(|word| word.to_lowercase() == *word));
        let words: Vec<_> = terms("Could you please help me find the Files?").collect();
        assert_eq!(words, ["find", "file"]);
    }
}
