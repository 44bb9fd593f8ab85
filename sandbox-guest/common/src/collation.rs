//! Collation of texts for en-US: Latin letters with any marks, digits and punctuation. Letters of
//! other scripts follow in the order of their code points. Independent of the engine.
//!
//! Texts are compared first by their letters, then by the marks on them, and then by case, lower
//! case first.

// The other guest includes these files too, at another path.
#[path = "collation/letters.rs"]
mod letters;
#[path = "collation/marked.rs"]
mod marked;
#[cfg(test)]
#[path = "collation/tests.rs"]
mod tests;
#[path = "collation/weights.rs"]
mod weights;

use std::cmp::Ordering;

use letters::{OF_SYMBOLS, PUNCTUATION};
use weights::{Weight, Weights};

/// What the comparison considers: the flags that the prelude computes for `collate`.
#[derive(Debug, Clone, Copy)]
pub struct CollationOptions(pub u32);

impl CollationOptions {
    /// Letters, marks and case.
    #[allow(dead_code, reason = "only one of the two guests uses it")]
    pub const ALL: Self = Self(3);

    const fn has_marks(self) -> bool {
        self.0 & 1 == 1
    }

    const fn has_case(self) -> bool {
        self.0 & 2 == 2
    }

    const fn is_numeric(self) -> bool {
        self.0 & 4 == 4
    }

    const fn large_first(self) -> bool {
        self.0 & 8 == 8
    }

    const fn skips_punctuation(self) -> bool {
        self.0 & 16 == 16
    }
}

/// Compares two texts.
pub fn compare<A, B>(one: A, other: B, how: CollationOptions) -> Ordering
where
    A: Iterator<Item = char> + Clone,
    B: Iterator<Item = char> + Clone,
{
    let one = Weights::new(one, how);
    let other = Weights::new(other, how);
    let letters = one
        .clone()
        .filter_map(Weight::letter)
        .cmp(other.clone().filter_map(Weight::letter));
    letters
        .then_with(|| match how.has_marks() {
            true => one
                .clone()
                .map(Weight::mark)
                .cmp(other.clone().map(Weight::mark)),
            false => Ordering::Equal,
        })
        .then_with(|| {
            let case = |weight: Weight| weight.case(how.large_first());
            match how.has_case() {
                true => one.filter_map(case).cmp(other.filter_map(case)),
                false => Ordering::Equal,
            }
        })
}

/// Compares two ASCII texts, which most texts are; `None` if the general comparison is needed.
pub fn compare_plain(one: &[u8], other: &[u8], how: CollationOptions) -> Option<Ordering> {
    if how.is_numeric() || how.skips_punctuation() || !(one.is_ascii() && other.is_ascii()) {
        return None;
    }
    let order = plain_letters(one).cmp(plain_letters(other));
    if order.is_ne() || !how.has_case() {
        return Some(order);
    }
    let is_large = |byte: &u8| byte.is_ascii_uppercase() != how.large_first();
    let counts = |byte: &&u8| {
        PLAIN
            .get(usize::from(**byte))
            .is_some_and(|letter| *letter > 0)
    };
    let case = |text: &[u8]| text.iter().filter(counts).map(is_large).collect::<Vec<_>>();
    Some(case(one).cmp(&case(other)))
}

fn plain_letters(text: &[u8]) -> impl Iterator<Item = u16> {
    let letters = text.iter().filter_map(|byte| PLAIN.get(usize::from(*byte)));
    letters.copied().filter(|letter| *letter > 0)
}

/// The weight of each ASCII character; zero if the comparison ignores it.
static PLAIN: [u16; 128] = plain();

#[allow(
    clippy::indexing_slicing,
    reason = "it runs at compile time, where an index out of bounds is an error"
)]
const fn plain() -> [u16; 128] {
    let mut plain = [0; 128];
    let mut next = 1;
    let orders = [PUNCTUATION.as_bytes(), OF_SYMBOLS.as_bytes(), b"0123456789"];
    let mut order = 0;
    while order < orders.len() {
        let mut at = 0;
        while at < orders[order].len() {
            let byte = orders[order][at];
            if byte < 128 {
                plain[byte as usize] = next;
                next += 1;
            }
            at += 1;
        }
        order += 1;
    }
    let mut letter = b'a';
    while letter <= b'z' {
        plain[letter as usize] = next;
        plain[letter.to_ascii_uppercase() as usize] = next;
        next += 1;
        letter += 1;
    }
    plain
}
