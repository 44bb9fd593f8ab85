//! Converts a text to the weights of its letters and marks.

use std::iter::Peekable;

use super::CollationOptions;
use super::letters::{NUMBER_LENGTH_MAX, NUMBERS, SYMBOLS, digit_letter, latin, weigh};

/// The weight of one letter or mark.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Weight {
    /// Zero for a mark.
    pub(super) letter: u32,
    pub(super) mark: u8,
    pub(super) case: u8,
}

pub(super) const SMALL: u8 = 0;
pub(super) const LARGE: u8 = 1;
/// A different spelling of the same letter.
pub(super) const OTHERWISE: u8 = 2;

const NO_MARK: u8 = 1;
/// Mark of a letter that is part of a ligature.
pub(super) const STANDS_FOR: u8 = 0xff;

impl Weight {
    pub(super) const fn of(letter: u32, case: u8) -> Self {
        Self {
            letter,
            mark: NO_MARK,
            case,
        }
    }

    pub(super) const fn of_mark(mark: u8) -> Self {
        Self {
            letter: 0,
            mark,
            case: SMALL,
        }
    }

    pub(super) fn letter(self) -> Option<u32> {
        (self.letter > 0).then_some(self.letter)
    }

    pub(super) fn mark(self) -> u8 {
        self.mark
    }

    pub(super) fn case(self, large_first: bool) -> Option<u8> {
        let case = match self.case {
            LARGE if large_first => SMALL,
            SMALL if large_first => LARGE,
            case => case,
        };
        (self.letter > 0).then_some(case)
    }
}

/// Iterates over the weights of a text.
#[derive(Clone)]
pub(super) struct Weights<I: Iterator<Item = char>> {
    chars: Peekable<I>,
    how: CollationOptions,
    /// Further weights of the last character, last first.
    more: Vec<Weight>,
}

impl<I: Iterator<Item = char>> Weights<I> {
    pub(super) fn new(chars: I, how: CollationOptions) -> Self {
        Self {
            chars: chars.peekable(),
            how,
            more: Vec::new(),
        }
    }

    /// Returns the weight of a number: the count of digits is compared before the digits.
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
