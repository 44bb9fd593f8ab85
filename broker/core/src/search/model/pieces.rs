//! Splits a text into the pieces that a model knows: WordPiece as in BERT's tokenizers, configured
//! by `tokenizer.json`. A tokenizer that this code cannot reproduce is refused.

use std::collections::HashMap;

use serde_json::Value;
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

#[derive(Debug, Clone)]
pub(super) struct WordPieces {
    numbers: HashMap<String, usize>,
    /// Prefix of a piece that does not begin a word.
    inside: String,
    unknown: Option<usize>,
    chars_max: usize,
    lowercase: bool,
    strip_accents: bool,
}

impl WordPieces {
    pub(super) fn read(tokenizer: &Value) -> Result<Self, String> {
        let model = tokenizer.get("model").ok_or("missing `model`")?;
        match model.get("type").and_then(Value::as_str) {
            None | Some("WordPiece") => {}
            Some(_) => return Err("unsupported `model.type`; only `WordPiece` is supported".into()),
        }
        let vocabulary = model.get("vocab").and_then(Value::as_object);
        let vocabulary = vocabulary.ok_or("`model.vocab` is not an object")?;
        let number = |it: &Value| usize::try_from(it.as_u64()?).ok();
        let numbers: Option<HashMap<String, usize>> = vocabulary
            .iter()
            .map(|(piece, it)| Some((piece.clone(), number(it)?)))
            .collect();
        let numbers = numbers.ok_or("`model.vocab` contains values that are not piece numbers")?;
        if numbers.is_empty() {
            return Err("`model.vocab` is empty".into());
        }
        let text = |key: &str, default: &str| {
            let text = model.get(key).and_then(Value::as_str);
            text.unwrap_or(default).to_owned()
        };
        let mut normal = Normal::default();
        normal.read(tokenizer.get("normalizer").unwrap_or(&Value::Null))?;
        check_pre_tokenizer(tokenizer.get("pre_tokenizer").unwrap_or(&Value::Null))?;
        let chars_max = model.get("max_input_chars_per_word").and_then(number);
        Ok(Self {
            unknown: numbers.get(&text("unk_token", "[UNK]")).copied(),
            inside: text("continuing_subword_prefix", "##"),
            numbers,
            chars_max: chars_max.unwrap_or(100),
            lowercase: normal.lowercase,
            strip_accents: normal.strip_accents,
        })
    }

    /// Returns the highest piece number.
    pub(super) fn most(&self) -> usize {
        self.numbers.values().copied().max().unwrap_or_default()
    }

    /// Returns the known pieces of a text.
    pub(super) fn of(&self, text: &str) -> impl Iterator<Item = usize> + '_ {
        let normal = self.normal(text);
        let words: Vec<String> = words(&normal).map(str::to_owned).collect();
        words
            .into_iter()
            .flat_map(|word| self.pieces(&word))
            .filter(|piece| Some(*piece) != self.unknown)
    }

    fn normal(&self, text: &str) -> String {
        let clean = text
            .chars()
            .filter(|c| !c.is_control() || c.is_whitespace());
        let clean: String = clean.collect();
        let plain: String = if self.strip_accents {
            clean.nfd().filter(|c| !is_combining_mark(*c)).collect()
        } else {
            clean
        };
        if self.lowercase {
            plain.to_lowercase()
        } else {
            plain
        }
    }

    /// Splits a word into the longest known pieces from the left. If the rest of the word has no
    /// known piece, the whole word has no pieces.
    fn pieces(&self, word: &str) -> Vec<usize> {
        if word.chars().count() > self.chars_max {
            return Vec::new();
        }
        let mut found = Vec::new();
        let mut rest = word;
        while !rest.is_empty() {
            let ends = rest.char_indices().map(|(at, c)| at + c.len_utf8());
            let longest = ends.rev().find_map(|end| {
                let (piece, after) = rest.split_at_checked(end)?;
                let number = if found.is_empty() {
                    self.numbers.get(piece)
                } else {
                    self.numbers.get(&format!("{}{piece}", self.inside))
                };
                Some((*number?, after))
            });
            let Some((number, after)) = longest else {
                return Vec::new();
            };
            found.push(number);
            rest = after;
        }
        found
    }
}

/// The normalisation of a text before it is split.
#[derive(Debug, Default)]
struct Normal {
    lowercase: bool,
    strip_accents: bool,
}

impl Normal {
    fn read(&mut self, normalizer: &Value) -> Result<(), String> {
        let flag = |key: &str| normalizer.get(key).and_then(Value::as_bool);
        match kind(normalizer) {
            None => {}
            Some("Lowercase") => self.lowercase = true,
            Some("StripAccents") => self.strip_accents = true,
            // Removing accents normalises to NFD anyway; otherwise these normal forms are ignored.
            Some("NFD" | "NFC" | "NFKD" | "NFKC") => {}
            Some("BertNormalizer") => {
                let lowercase = flag("lowercase").unwrap_or(true);
                self.lowercase |= lowercase;
                self.strip_accents |= flag("strip_accents").unwrap_or(lowercase);
            }
            Some("Sequence") => {
                for part in parts(normalizer, "normalizers") {
                    self.read(part)?;
                }
            }
            Some(_) => return Err("unsupported type of `normalizer`".into()),
        }
        Ok(())
    }
}

/// Checks that the tokenizer splits words as this code does: at spaces, with each punctuation
/// character as its own word.
fn check_pre_tokenizer(pre_tokenizer: &Value) -> Result<(), String> {
    match kind(pre_tokenizer) {
        None | Some("BertPreTokenizer" | "Whitespace" | "WhitespaceSplit" | "Punctuation") => {
            Ok(())
        }
        Some("Sequence") => parts(pre_tokenizer, "pretokenizers").try_for_each(check_pre_tokenizer),
        Some(_) => Err("unsupported type of `pre_tokenizer`".into()),
    }
}

fn kind(part: &Value) -> Option<&str> {
    part.get("type").and_then(Value::as_str)
}

fn parts<'a>(sequence: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    sequence
        .get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace().flat_map(|word| {
        let mut rest = word;
        std::iter::from_fn(move || {
            let first = rest.chars().next()?;
            let end = if is_alone(first) {
                first.len_utf8()
            } else {
                rest.find(is_alone).unwrap_or(rest.len())
            };
            let (piece, after) = rest.split_at_checked(end)?;
            rest = after;
            Some(piece)
        })
    })
}

/// Whether a character is its own word: punctuation, and scripts without spaces between words.
fn is_alone(c: char) -> bool {
    let is_sign = c.is_ascii_punctuation()
        || matches!(c, '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}' | '\u{3000}'..='\u{303f}');
    let is_ideograph = matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{2fa1f}');
    is_sign || is_ideograph
}
