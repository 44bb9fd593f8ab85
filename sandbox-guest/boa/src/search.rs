//! Finds one string in another, in time linear in both lengths, whatever their content.

use std::borrow::Cow;
use std::cell::OnceCell;

use boa_engine::string::{JsStr, JsStrVariant};

/// Maximum length of a sought string for which checking every position is fast enough.
const SHORT: usize = 8;

/// A sought string and a text, for repeated searches.
pub(crate) enum Search<'a> {
    Latin1(SoughtText<'a, u8>),
    Wide(SoughtText<'a, u16>),
    /// The sought string contains characters that the text cannot contain.
    Nowhere,
}

impl<'a> Search<'a> {
    pub(crate) fn new(text: JsStr<'a>, sought: JsStr<'a>) -> Self {
        match (text.variant(), sought.variant()) {
            (JsStrVariant::Latin1(text), JsStrVariant::Latin1(sought)) => {
                Self::Latin1(SoughtText::new(text, Cow::Borrowed(sought)))
            }
            (JsStrVariant::Utf16(text), JsStrVariant::Utf16(sought)) => {
                Self::Wide(SoughtText::new(text, Cow::Borrowed(sought)))
            }
            (JsStrVariant::Utf16(text), JsStrVariant::Latin1(sought)) => {
                let sought = sought.iter().copied().map(u16::from).collect();
                Self::Wide(SoughtText::new(text, Cow::Owned(sought)))
            }
            (JsStrVariant::Latin1(text), JsStrVariant::Utf16(sought)) => {
                let narrow: Result<Vec<u8>, _> = sought.iter().copied().map(u8::try_from).collect();
                narrow.map_or(Self::Nowhere, |sought| {
                    Self::Latin1(SoughtText::new(text, Cow::Owned(sought)))
                })
            }
        }
    }

    /// Returns the first position at or after `from`.
    pub(crate) fn next(&self, from: usize) -> Option<usize> {
        match self {
            Self::Latin1(sought) => sought.next(from),
            Self::Wide(sought) => sought.next(from),
            Self::Nowhere => None,
        }
    }
}

/// Returns the last position at or before `from`.
pub(crate) fn last(text: JsStr<'_>, sought: JsStr<'_>, from: usize) -> Option<usize> {
    let length = sought.len();
    let from = from.min(text.len().checked_sub(length)?);
    let text = text.get(..from + length)?;
    if length <= SHORT {
        let first = sought.get(0);
        let is_there =
            |at: &usize| text.get(*at) == first && text.get(*at..*at + length) == Some(sought);
        return (0..=from).rev().find(is_there);
    }
    // In reversed texts, this is the first position.
    let [text, sought] = [text, sought].map(|it| {
        let mut units: Vec<u16> = it.iter().collect();
        units.reverse();
        units
    });
    let search = Search::new(JsStr::utf16(&text), JsStr::utf16(&sought));
    search.next(0).map(|at| from - at)
}

pub(crate) struct SoughtText<'a, T: Copy> {
    text: &'a [T],
    sought: Cow<'a, [T]>,
    /// For each prefix of the sought string, the length of its longest border.
    again: OnceCell<Vec<usize>>,
}

impl<'a, T: Copy + Eq> SoughtText<'a, T>
where
    [T]: ToOwned<Owned = Vec<T>>,
{
    fn new(text: &'a [T], sought: Cow<'a, [T]>) -> Self {
        Self {
            text,
            sought,
            again: OnceCell::new(),
        }
    }

    fn next(&self, from: usize) -> Option<usize> {
        let rest = self.text.get(from..)?;
        let Some(first) = self.sought.first() else {
            return Some(from);
        };
        let found = if self.sought.len() <= SHORT {
            self.everywhere(rest, *first)
        } else {
            self.without_going_back(rest)
        };
        found.map(|at| from + at)
    }

    fn everywhere(&self, text: &[T], first: T) -> Option<usize> {
        let mut at = 0;
        loop {
            let rest = text.get(at..)?;
            at += rest.iter().position(|unit| *unit == first)?;
            if text.get(at..)?.starts_with(&self.sought) {
                return Some(at);
            }
            at += 1;
        }
    }

    fn without_going_back(&self, text: &[T]) -> Option<usize> {
        let again = self.again.get_or_init(|| beginnings(&self.sought));
        let mut matched = 0;
        for (at, unit) in text.iter().enumerate() {
            matched = one_more(&self.sought, again, matched, unit);
            if matched == self.sought.len() {
                return Some(at + 1 - matched);
            }
        }
        None
    }
}

/// Returns how many units of `sought` match up to and including `unit`, if `matched` units matched
/// before `unit`.
fn one_more<T: Eq>(sought: &[T], again: &[usize], mut matched: usize, unit: &T) -> usize {
    while matched > 0 && sought.get(matched) != Some(unit) {
        matched = again.get(matched - 1).copied().unwrap_or(0);
    }
    matched + usize::from(sought.get(matched) == Some(unit))
}

fn beginnings<T: Eq>(sought: &[T]) -> Vec<usize> {
    let mut again = Vec::with_capacity(sought.len());
    let mut matched = 0;
    for (place, unit) in sought.iter().enumerate() {
        if place > 0 {
            matched = one_more(sought, &again, matched, unit);
        }
        again.push(matched);
    }
    again
}

#[cfg(test)]
mod tests {
    use boa_engine::JsString;

    use super::*;

    fn check(text: &str, sought: &str) {
        let units: Vec<u16> = text.encode_utf16().collect();
        let sought_units: Vec<u16> = sought.encode_utf16().collect();
        let (text, sought) = (JsString::from(text), JsString::from(sought));
        let search = Search::new(text.as_str(), sought.as_str());
        for from in 0..=units.len() + 1 {
            let expected = (from..=units.len()).find(|&at| units[at..].starts_with(&sought_units));
            assert_eq!(search.next(from), expected, "{text:?} {sought:?} {from}");
            let mut before = (0..=from.min(units.len())).rev();
            let expected = before.find(|&at| units[at..].starts_with(&sought_units));
            let found = last(text.as_str(), sought.as_str(), from);
            assert_eq!(found, expected, "last {text:?} {sought:?} {from}");
        }
    }

    #[test]
    fn every_place_is_found_in_every_encoding() {
        let texts = [
            "",
            "a",
            "abcabcabd",
            "aaaaaaaaaaaaaaaaaaaaaaab",
            "ééaé",
            "x€y€€z",
            "😀a😀😀b",
        ];
        let sought = [
            "",
            "a",
            "abd",
            "aaaaaaaaaaab",
            "aaaaaaaaab",
            "é",
            "éa",
            "€",
            "€€z",
            "😀",
            "😀😀",
            "ab",
        ];
        for text in texts {
            for sought in sought {
                check(text, sought);
                check(&text.repeat(5), &sought.repeat(5));
            }
        }
    }

    #[test]
    fn all_words_of_two_letters_are_found() {
        for bits in 0..1_u32 << 12 {
            let letters: String = (0..12)
                .map(|at| if bits >> at & 1 == 1 { 'a' } else { 'b' })
                .collect();
            let text = format!("abbaabbabaab{letters}abbaababbaba");
            check(&text, &letters[..9]);
        }
    }
}
