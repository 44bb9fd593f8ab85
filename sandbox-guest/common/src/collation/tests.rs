//! Tests of well-known orders.

use super::*;

const VARIANT: u32 = 3;
const NUMERIC: u32 = 4;
const LARGE_FIRST: u32 = 8;
const NO_PUNCTUATION: u32 = 16;

#[track_caller]
fn check(how: u32, one: &str, expected: Ordering, other: &str) {
    let found = compare(one.chars(), other.chars(), CollationOptions(how));
    assert_eq!(found, expected, "{one:?} and {other:?}");
    let found = compare(other.chars(), one.chars(), CollationOptions(how));
    assert_eq!(found, expected.reverse(), "{other:?} and {one:?}");
    if let Some(found) = compare_plain(one.as_bytes(), other.as_bytes(), CollationOptions(how)) {
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
                let all = compare(a.chars(), b.chars(), CollationOptions(how));
                let plain = compare_plain(&one, &other, CollationOptions(how));
                assert!(plain.is_none_or(|plain| plain == all), "{a:?} {b:?} {how}");
            }
        }
    }
}

#[test]
fn the_table_of_marked_letters_is_in_order() {
    assert!(marked::MARKED.is_sorted_by(|one, other| one.0 < other.0));
}
