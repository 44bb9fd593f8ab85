//! In which order people look for texts: that of en-US, for Latin letters and
//! whatever marks they have, for digits and punctuation. Letters of other scripts
//! follow in the order of their characters. Knows no engine.
//!
//! Texts are compared by their letters first; where these are the same by the marks
//! on them; where these are, too, small letters stand before large ones.

// The other guest has this file as well, from its own place.
#[path = "collation/marked.rs"]
mod marked;

use std::cmp::Ordering;
use std::iter::Peekable;

use marked::MARKED;

/// What is compared, as the prelude puts it together for `collate`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct How(pub(crate) u32);

impl How {
    /// Letters, marks and case.
    #[allow(dead_code, reason = "one of the two guests asks for it")]
    pub(crate) const ALL: Self = Self(3);

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

/// Which of two texts comes first.
pub(crate) fn compare<A, B>(one: A, other: B, how: How) -> Ordering
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

/// The same for texts of ASCII alone, which most are; `None` where it takes more.
pub(crate) fn compare_plain(one: &[u8], other: &[u8], how: How) -> Option<Ordering> {
    if how.is_numeric() || how.skips_punctuation() || !(one.is_ascii() && other.is_ascii()) {
        return None;
    }
    let order = letters(one).cmp(letters(other));
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

fn letters(text: &[u8]) -> impl Iterator<Item = u16> {
    let letters = text.iter().filter_map(|byte| PLAIN.get(usize::from(*byte)));
    letters.copied().filter(|letter| *letter > 0)
}

/// What each character of ASCII counts as; zero where it does not.
static PLAIN: [u16; 128] = plain();

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

/// How one letter counts, or one mark.
#[derive(Debug, Clone, Copy, Default)]
struct Weight {
    /// Zero for a mark.
    letter: u32,
    mark: u8,
    case: u8,
}

const SMALL: u8 = 0;
const LARGE: u8 = 1;
/// Another way to write the same.
const OTHERWISE: u8 = 2;

const NO_MARK: u8 = 1;
/// A letter that stands for others.
const STANDS_FOR: u8 = 0xff;

impl Weight {
    const fn of(letter: u32, case: u8) -> Self {
        Self {
            letter,
            mark: NO_MARK,
            case,
        }
    }

    const fn of_mark(mark: u8) -> Self {
        Self {
            letter: 0,
            mark,
            case: SMALL,
        }
    }

    fn letter(self) -> Option<u32> {
        (self.letter > 0).then_some(self.letter)
    }

    fn mark(self) -> u8 {
        self.mark
    }

    fn case(self, large_first: bool) -> Option<u8> {
        let case = match self.case {
            LARGE if large_first => SMALL,
            SMALL if large_first => LARGE,
            case => case,
        };
        (self.letter > 0).then_some(case)
    }
}

/// The weights of a text, one after the other.
#[derive(Clone)]
struct Weights<I: Iterator<Item = char>> {
    chars: Peekable<I>,
    how: How,
    /// What the last character stands for besides what it was answered with, last first.
    more: Vec<Weight>,
}

impl<I: Iterator<Item = char>> Weights<I> {
    fn new(chars: I, how: How) -> Self {
        Self {
            chars: chars.peekable(),
            how,
            more: Vec::new(),
        }
    }

    /// A number counts by how many digits it has, then by them.
    fn number(&mut self, first: char) -> Weight {
        let mut digits = vec![first];
        while let Some(digit) = self.chars.next_if(char::is_ascii_digit) {
            if digits == ['0'] {
                digits.clear();
            }
            digits.push(digit);
        }
        let weights = digits
            .iter()
            .rev()
            .map(|digit| Weight::of(digit_letter(*digit), SMALL));
        self.more.extend(weights);
        let length = u32::try_from(digits.len()).unwrap_or(u32::MAX);
        Weight::of(NUMBERS.saturating_add(length.min(NUMBER_LENGTH_MAX)), SMALL)
    }
}

impl<I: Iterator<Item = char>> Iterator for Weights<I> {
    type Item = Weight;

    fn next(&mut self) -> Option<Weight> {
        loop {
            if let Some(weight) = self.more.pop() {
                return Some(weight);
            }
            let char = self.chars.next()?;
            if char.is_ascii_alphabetic() {
                return Some(latin(char, 0));
            }
            if self.how.is_numeric() && char.is_ascii_digit() {
                return Some(self.number(char));
            }
            if let Some(weight) = weigh(char, &mut self.more)
                && !(self.how.skips_punctuation() && weight.letter > 0 && weight.letter < SYMBOLS)
            {
                return Some(weight);
            }
        }
    }
}

/// Spaces and punctuation in their order, then symbols in theirs.
const PUNCTUATION: &str = "\t\n\u{b}\u{c}\r\u{85}\u{2028}\u{2029} \u{203e}_\u{2017}-\u{2010}\u{2012}\u{2013}\u{2014}\u{2015},;:!\u{a1}?\u{bf}.\u{2025}\u{2026}\u{b7}'\u{2018}\u{2019}\u{201a}\u{2039}\u{203a}\"\u{201c}\u{201d}\u{201e}\u{ab}\u{bb}()[]{}\u{a7}\u{b6}@*/\\&#%\u{2030}\u{2020}\u{2021}\u{2022}\u{2023}\u{2032}\u{2033}\u{203b}";
const OF_SYMBOLS: &str = "`\u{b4}^\u{af}\u{a8}\u{b8}\u{b0}\u{a9}\u{ae}\u{2190}\u{2192}+\u{b1}\u{f7}\u{d7}<=>\u{ac}|\u{a6}~\u{2212}\u{2044}\u{221e}\u{2264}\u{2265}\u{2713}\u{a4}\u{a2}$\u{a3}\u{a5}\u{20a6}\u{20a9}\u{20aa}\u{20ab}\u{20ac}\u{20b1}\u{20b4}\u{20b9}\u{20ba}\u{20bd}\u{20bf}";

const SYMBOLS: u32 = 500;
const DIGITS: u32 = 1_000;
const NUMBERS: u32 = 1_010;
const NUMBER_LENGTH_MAX: u32 = 0xff_ffff;
const LATIN: u32 = 0x200_0000;
/// Between two letters of the alphabet is room for some that are in none.
const LATIN_STEP: u32 = 8;
const OTHER_SCRIPTS: u32 = 0x300_0000;
const HANGUL: u32 = 0x400_0000;
const KANA: u32 = 0x500_0000;
const HAN: u32 = 0x600_0000;

fn digit_letter(digit: char) -> u32 {
    DIGITS + digit.to_digit(10).unwrap_or(0)
}

/// A letter of the alphabet, or one that follows it so many places behind.
fn latin(letter: char, behind: u32) -> Weight {
    let place = u32::from(letter.to_ascii_lowercase()) - u32::from('a');
    let case = if letter.is_ascii_uppercase() {
        LARGE
    } else {
        SMALL
    };
    Weight::of(LATIN + place * LATIN_STEP + behind, case)
}

/// What a character counts as; what it stands for besides goes into `more`, last first. `None`
/// when it does not count.
fn weigh(char: char, more: &mut Vec<Weight>) -> Option<Weight> {
    match char {
        '0'..='9' => Some(Weight::of(digit_letter(char), SMALL)),
        '\u{300}'..='\u{36f}' => Some(Weight::of_mark(mark(char))),
        '\u{a0}' | '\u{202f}' | '\u{2000}'..='\u{200a}' => {
            let space = weigh(' ', more)?;
            Some(Weight {
                case: OTHERWISE,
                ..space
            })
        }
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{feff}' => None,
        _ => ordered(char)
            .or_else(|| marked(char, more))
            .or_else(|| standing_for(char, more))
            .or_else(|| other_script(char)),
    }
}

fn ordered(char: char) -> Option<Weight> {
    let place = |of: &str, base: u32| {
        let at = of.chars().position(|other| other == char)?;
        Some(Weight::of(base + u32::try_from(at).unwrap_or(0), SMALL))
    };
    place(PUNCTUATION, 1).or_else(|| place(OF_SYMBOLS, SYMBOLS))
}

fn marked(char: char, more: &mut Vec<Weight>) -> Option<Weight> {
    let at = MARKED.binary_search_by_key(&char, |entry| entry.0).ok()?;
    let (_, letter, its_mark) = MARKED.get(at)?;
    more.push(Weight::of_mark(mark(*its_mark)));
    match letter.is_ascii() {
        true => Some(latin(*letter, 0)),
        false => weigh(*letter, more),
    }
}

/// Marks in the order in which they count.
const MARKS: &str = "\u{332}\u{313}\u{314}\u{301}\u{300}\u{306}\u{302}\u{30c}\u{30a}\u{342}\u{308}\u{30b}\u{303}\u{307}\u{338}\u{327}\u{328}\u{304}";

fn mark(char: char) -> u8 {
    let same = match char {
        '\u{341}' | '\u{343}' => '\u{301}',
        '\u{340}' => '\u{300}',
        '\u{344}' => '\u{308}',
        other => other,
    };
    let known = MARKS.chars().position(|mark| mark == same);
    let behind = || 24 + (u32::from(same).saturating_sub(0x300) as usize);
    u8::try_from(known.unwrap_or_else(behind) + 2).unwrap_or(STANDS_FOR)
}

/// Letters that are two, or one with a stroke, or stand behind one of the alphabet.
fn standing_for(char: char, more: &mut Vec<Weight>) -> Option<Weight> {
    let mut two = |first, mark, second, case| {
        more.push(Weight {
            case,
            ..latin(second, 0)
        });
        if mark {
            more.push(Weight::of_mark(STANDS_FOR));
        }
        Weight {
            case,
            ..latin(first, 0)
        }
    };
    Some(match char {
        'ß' => two('s', true, 's', SMALL),
        'æ' => two('a', true, 'e', SMALL),
        'Æ' => two('a', true, 'e', LARGE),
        'œ' => two('o', true, 'e', SMALL),
        'Œ' => two('o', true, 'e', LARGE),
        'ĳ' => two('i', false, 'j', OTHERWISE),
        'Ĳ' => two('i', false, 'j', OTHERWISE),
        'ﬁ' => two('f', false, 'i', OTHERWISE),
        'ﬂ' => two('f', false, 'l', OTHERWISE),
        '™' => two('t', false, 'm', OTHERWISE),
        '№' => two('n', false, 'o', OTHERWISE),
        'ı' => latin('i', 1),
        'ĸ' => latin('q', 1),
        'ŋ' => latin('n', 1),
        'Ŋ' => latin('N', 1),
        'ŧ' => latin('t', 1),
        'Ŧ' => latin('T', 1),
        'þ' => latin('z', 1),
        'Þ' => latin('Z', 1),
        'ª' => Weight {
            case: OTHERWISE,
            ..latin('a', 0)
        },
        'º' => Weight {
            case: OTHERWISE,
            ..latin('o', 0)
        },
        '¹' => Weight::of(digit_letter('1'), OTHERWISE),
        '²' => Weight::of(digit_letter('2'), OTHERWISE),
        '³' => Weight::of(digit_letter('3'), OTHERWISE),
        _ => {
            let (letter, mark) = match char {
                'ø' => ('o', mark('\u{338}')),
                'Ø' => ('O', mark('\u{338}')),
                'ł' => ('l', mark('\u{335}')),
                'Ł' => ('L', mark('\u{335}')),
                'đ' => ('d', mark('\u{335}')),
                'Đ' => ('D', mark('\u{335}')),
                'ħ' => ('h', mark('\u{335}')),
                'Ħ' => ('H', mark('\u{335}')),
                'ð' => ('d', STANDS_FOR),
                'Ð' => ('D', STANDS_FOR),
                'ŀ' => ('l', STANDS_FOR),
                'Ŀ' => ('L', STANDS_FOR),
                'ſ' => ('s', STANDS_FOR),
                _ => return None,
            };
            more.push(Weight::of_mark(mark));
            latin(letter, 0)
        }
    })
}

/// By the small form of the letter. Controls do not count.
fn other_script(char: char) -> Option<Weight> {
    if char.is_control() {
        return None;
    }
    let number = u32::from(char);
    Some(match number {
        0x30a1..=0x30f6 => Weight::of(KANA + number - 0x60, LARGE),
        0x3040..=0x30ff => Weight::of(KANA + number, SMALL),
        0xac00..=0xd7a3 => Weight::of(HANGUL + number, SMALL),
        0x3400..=0x9fff | 0xf900..=0xfaff | 0x2_0000..=0x3_ffff => Weight::of(HAN + number, SMALL),
        _ => {
            let small = char.to_lowercase().next().unwrap_or(char);
            let case = if small == char { SMALL } else { LARGE };
            Weight::of(OTHER_SCRIPTS + u32::from(small), case)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const VARIANT: u32 = 3;
    const NUMERIC: u32 = 4;
    const LARGE_FIRST: u32 = 8;
    const NO_PUNCTUATION: u32 = 16;

    #[track_caller]
    fn check(how: u32, one: &str, expected: Ordering, other: &str) {
        let found = compare(one.chars(), other.chars(), How(how));
        assert_eq!(found, expected, "{one:?} and {other:?}");
        let found = compare(other.chars(), one.chars(), How(how));
        assert_eq!(found, expected.reverse(), "{other:?} and {one:?}");
        if let Some(found) = compare_plain(one.as_bytes(), other.as_bytes(), How(how)) {
            assert_eq!(found, expected, "{one:?} and {other:?}, plain");
        }
    }

    use Ordering::{Equal, Less};

    #[test]
    fn letters_count_before_marks_and_marks_before_case() {
        for [one, other] in [
            ["a", "A"],
            ["A", "b"],
            ["ab", "aB"],
            ["aB", "Ab"],
            ["resume", "Resume"],
            ["Resume", "résumé"],
            ["áb", "ac"],
            ["coté", "côte"],
            ["zebra", "Zoo"],
            ["a b", "ab"],
            ["a-b", "ab"],
            ["", "a"],
            ["10", "9"],
            ["1", "a"],
            ["$", "1"],
            ["_", "-"],
            ["l", "ł"],
            ["o", "ö"],
            ["ö", "ø"],
            ["ae", "æ"],
            ["æ", "af"],
            ["ss", "ß"],
            ["z", "þ"],
            ["z", "α"],
            ["α", "β"],
            ["я", "가"],
            ["가", "あ"],
            ["あ", "中"],
            ["ế", "ề"],
            ["а", "Б"],
        ] {
            check(VARIANT, one, Less, other);
        }
    }

    #[test]
    fn a_mark_may_stand_behind_its_letter_and_controls_do_not_count() {
        check(VARIANT, "é", Equal, "e\u{301}");
        check(VARIANT, "ế", Equal, "e\u{302}\u{301}");
        check(VARIANT, "a\0b", Equal, "ab");
        check(VARIANT, "a\u{ad}b", Equal, "ab");
    }

    #[test]
    fn what_counts_can_be_chosen() {
        for (how, same, other) in [(0, "É", "e"), (1, "E", "e"), (2, "é", "e")] {
            check(how, same, Equal, other);
        }
        check(1, "e", Less, "é");
        check(2, "é", Less, "E");
        check(VARIANT | LARGE_FIRST, "A", Less, "a");
        check(VARIANT | LARGE_FIRST, "a", Less, "B");
        check(VARIANT | NO_PUNCTUATION, "a-b", Equal, "ab");
        check(VARIANT | NO_PUNCTUATION, "a+c", Less, "ab");
    }

    #[test]
    fn numbers_may_count_as_numbers() {
        check(VARIANT | NUMERIC, "a2", Less, "a10");
        check(VARIANT | NUMERIC, "a02", Equal, "a2");
        check(VARIANT | NUMERIC, "00", Equal, "0");
        check(VARIANT | NUMERIC, "1.5", Less, "1.10");
        check(VARIANT | NUMERIC, "9", Less, "a");
        check(
            VARIANT | NUMERIC,
            "99999999999999999999",
            Less,
            "100000000000000000000",
        );
        check(VARIANT, "a10", Less, "a2");
    }

    #[test]
    fn plain_texts_have_the_order_of_all() {
        for how in 0..16 {
            for one in 0..128_u8 {
                for other in 0..128_u8 {
                    let (one, other) = ([one, b'a'], [other, b'A']);
                    let [a, b] = [&one, &other].map(|text| std::str::from_utf8(text).unwrap());
                    let all = compare(a.chars(), b.chars(), How(how));
                    let plain = compare_plain(&one, &other, How(how));
                    assert!(plain.is_none_or(|plain| plain == all), "{a:?} {b:?} {how}");
                }
            }
        }
    }

    #[test]
    fn the_table_of_marked_letters_is_in_order() {
        assert!(MARKED.is_sorted_by(|one, other| one.0 < other.0));
    }
}
