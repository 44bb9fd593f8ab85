//! The weight of each character.

use super::marked::MARKED;
use super::weights::{LARGE, OTHERWISE, SMALL, STANDS_FOR, Weight};

/// Spaces and punctuation in order; symbols follow, in the order of their code points.
pub(super) const PUNCTUATION: &str = "\t\n\u{b}\u{c}\r\u{85}\u{2028}\u{2029} \u{203e}_\u{2017}-\u{2010}\u{2012}\u{2013}\u{2014}\u{2015},;:!\u{a1}?\u{bf}.\u{2025}\u{2026}\u{b7}'\u{2018}\u{2019}\u{201a}\u{2039}\u{203a}\"\u{201c}\u{201d}\u{201e}\u{ab}\u{bb}()[]{}\u{a7}\u{b6}@*/\\&#%\u{2030}\u{2020}\u{2021}\u{2022}\u{2023}\u{2032}\u{2033}\u{203b}";
pub(super) const OF_SYMBOLS: &str = "`\u{b4}^\u{af}\u{a8}\u{b8}\u{b0}\u{a9}\u{ae}\u{2190}\u{2192}+\u{b1}\u{f7}\u{d7}<=>\u{ac}|\u{a6}~\u{2212}\u{2044}\u{221e}\u{2264}\u{2265}\u{2713}\u{a4}\u{a2}$\u{a3}\u{a5}\u{20a6}\u{20a9}\u{20aa}\u{20ab}\u{20ac}\u{20b1}\u{20b4}\u{20b9}\u{20ba}\u{20bd}\u{20bf}";

pub(super) const SYMBOLS: u32 = 500;
const DIGITS: u32 = 1_000;
pub(super) const NUMBERS: u32 = 1_010;
pub(super) const NUMBER_LENGTH_MAX: u32 = 0xff_ffff;
const LATIN: u32 = 0x200_0000;
/// Distance between two letters of the alphabet, which leaves room for letters between them.
const LATIN_STEP: u32 = 8;
const OTHER_SCRIPTS: u32 = 0x300_0000;
const HANGUL: u32 = 0x400_0000;
const KANA: u32 = 0x500_0000;
const HAN: u32 = 0x600_0000;

pub(super) fn digit_letter(digit: char) -> u32 {
    DIGITS + digit.to_digit(10).unwrap_or(0)
}

/// Returns the weight of a letter of the alphabet, or of a letter `behind` places after it.
pub(super) fn latin(letter: char, behind: u32) -> Weight {
    let place = u32::from(letter.to_ascii_lowercase()) - u32::from('a');
    let case = if letter.is_ascii_uppercase() {
        LARGE
    } else {
        SMALL
    };
    Weight::of(LATIN + place * LATIN_STEP + behind, case)
}

/// Returns the weight of a character; `None` if the comparison ignores it. Further weights of the
/// same character are appended to `more`, last first.
pub(super) fn weigh(char: char, more: &mut Vec<Weight>) -> Option<Weight> {
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

/// Marks in the order of their weights.
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

/// Returns the weight of ligatures, of letters with a stroke, and of letters sorted after a letter
/// of the alphabet.
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

/// Returns the weight of any other letter, by its lower-case form. Control characters are ignored.
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
