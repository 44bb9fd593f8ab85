//! English words cut to what their forms have in common, by the rules of the
//! Porter2 stemmer: `connection`, `connected` and `connects` meet.
//!
//! Words of other scripts, and words with anything but letters in them, stay as they are.

/// Endings that are looked for among others, longest first, and what takes their place.
type Endings = [(&'static str, &'static str)];

const STEP_2: &Endings = &[
    ("ization", "ize"),
    ("ational", "ate"),
    ("fulness", "ful"),
    ("ousness", "ous"),
    ("iveness", "ive"),
    ("tional", "tion"),
    ("biliti", "ble"),
    ("lessli", "less"),
    ("entli", "ent"),
    ("ation", "ate"),
    ("alism", "al"),
    ("aliti", "al"),
    ("ousli", "ous"),
    ("iviti", "ive"),
    ("fulli", "ful"),
    ("enci", "ence"),
    ("anci", "ance"),
    ("abli", "able"),
    ("izer", "ize"),
    ("ator", "ate"),
    ("alli", "al"),
    ("bli", "ble"),
];
const STEP_3: &Endings = &[
    ("ational", "ate"),
    ("tional", "tion"),
    ("alize", "al"),
    ("icate", "ic"),
    ("iciti", "ic"),
    ("ical", "ic"),
    ("ness", ""),
    ("ful", ""),
];
const STEP_4: &[&str] = &[
    "ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ism", "ate", "iti", "ous",
    "ive", "ize", "al", "er", "ic",
];
/// After these a removed `ed` or `ing` leaves an `e`.
const WANTS_E: [&str; 3] = ["at", "bl", "iz"];

pub(super) fn stem(word: &str) -> String {
    if word.len() < 3 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return word.to_owned();
    }
    let mut word = Word::of(word);
    word.plural();
    word.past();
    word.final_y();
    word.replace(STEP_2);
    word.remove_li();
    word.replace(STEP_3);
    word.remove_ative();
    word.remove_step_4();
    word.final_e_and_l();
    word.text.to_lowercase()
}

/// The letters, a `y` that is a consonant as `Y`, and where its two regions begin.
struct Word {
    text: String,
    first: usize,
    second: usize,
}

impl Word {
    fn of(text: &str) -> Self {
        let text = with_marked_y(text);
        let first = ["gener", "commun", "arsen"]
            .iter()
            .find(|head| text.starts_with(**head))
            .map_or_else(|| region(&text, 0), |head| head.len());
        let second = region(&text, first);
        Self {
            text,
            first,
            second,
        }
    }

    fn head(&self, ending: &str) -> Option<&str> {
        self.text.strip_suffix(ending)
    }

    fn set_ending(&mut self, ending: &str, instead: &str) {
        self.text.truncate(self.text.len() - ending.len());
        self.text.push_str(instead);
    }

    fn ends_in_first(&self, ending: &str) -> bool {
        self.head(ending)
            .is_some_and(|head| head.len() >= self.first)
    }

    fn ends_in_second(&self, ending: &str) -> bool {
        self.head(ending)
            .is_some_and(|head| head.len() >= self.second)
    }

    fn plural(&mut self) {
        if self.head("sses").is_some() {
            self.set_ending("sses", "ss");
        } else if let Some(ending) = ["ied", "ies"]
            .into_iter()
            .find(|it| self.head(it).is_some())
        {
            let is_long = self.text.len() > 4;
            self.set_ending(ending, if is_long { "i" } else { "ie" });
        } else if self.head("us").is_none()
            && self.head("ss").is_none()
            && let Some(head) = self.head("s")
            && head
                .get(..head.len().saturating_sub(1))
                .is_some_and(has_vowel)
        {
            self.set_ending("s", "");
        }
    }

    fn past(&mut self) {
        for ending in ["eedly", "eed"] {
            if self.head(ending).is_some() {
                if self.ends_in_first(ending) {
                    self.set_ending(ending, "ee");
                }
                return;
            }
        }
        let ending = ["ingly", "edly", "ing", "ed"]
            .into_iter()
            .find(|ending| self.head(ending).is_some());
        let Some(ending) = ending.filter(|it| self.head(it).is_some_and(has_vowel)) else {
            return;
        };
        self.set_ending(ending, "");
        if WANTS_E.iter().any(|end| self.text.ends_with(end)) {
            self.text.push('e');
        } else if ends_in_double(&self.text) {
            self.text.pop();
        } else if self.first >= self.text.len() && ends_in_short_syllable(&self.text) {
            self.text.push('e');
        }
    }

    fn final_y(&mut self) {
        let ending = ["y", "Y"].into_iter().find(|it| self.head(it).is_some());
        if let Some(ending) = ending
            && let Some(head) = self.head(ending)
            && head.len() > 1
            && !head.ends_with(is_vowel)
        {
            self.set_ending(ending, "i");
        }
    }

    fn replace(&mut self, endings: &Endings) {
        let found = endings
            .iter()
            .find(|(ending, _)| self.head(ending).is_some());
        if let Some((ending, instead)) = found
            && self.ends_in_first(ending)
        {
            self.set_ending(ending, instead);
        }
    }

    /// What `ogi` and `li` lose depends on the letter before them.
    fn remove_li(&mut self) {
        if self.ends_in_first("ogi") && self.head("ogi").is_some_and(|head| head.ends_with('l')) {
            self.set_ending("ogi", "og");
        } else if self.ends_in_first("li")
            && self
                .head("li")
                .is_some_and(|head| head.ends_with(|c| "cdeghkmnrt".contains(c)))
        {
            self.set_ending("li", "");
        }
    }

    fn remove_ative(&mut self) {
        if self.ends_in_second("ative") {
            self.set_ending("ative", "");
        }
    }

    fn remove_step_4(&mut self) {
        let ending = STEP_4.iter().find(|ending| self.head(ending).is_some());
        if let Some(ending) = ending {
            if self.ends_in_second(ending) {
                self.set_ending(ending, "");
            }
        } else if self.ends_in_second("ion")
            && self
                .head("ion")
                .is_some_and(|head| head.ends_with(['s', 't']))
        {
            self.set_ending("ion", "");
        }
    }

    fn final_e_and_l(&mut self) {
        if let Some(head) = self.head("e") {
            let goes = self.ends_in_second("e")
                || (self.ends_in_first("e") && !ends_in_short_syllable(head));
            if goes {
                self.set_ending("e", "");
            }
        } else if self.ends_in_second("l") && self.head("l").is_some_and(|it| it.ends_with('l')) {
            self.set_ending("l", "");
        }
    }
}

fn with_marked_y(text: &str) -> String {
    let mut marked = String::with_capacity(text.len());
    for c in text.chars() {
        let after_vowel = marked.ends_with(is_vowel);
        let consonant = c == 'y' && (marked.is_empty() || after_vowel);
        marked.push(if consonant { 'Y' } else { c });
    }
    marked
}

/// Behind the first consonant that follows a vowel, from a place on.
fn region(text: &str, from: usize) -> usize {
    let mut seen_vowel = false;
    let rest = text.get(from..).unwrap_or_default();
    for (at, c) in rest.char_indices() {
        if is_vowel(c) {
            seen_vowel = true;
        } else if seen_vowel {
            return from + at + 1;
        }
    }
    text.len()
}

fn is_vowel(c: char) -> bool {
    matches!(c, 'a' | 'e' | 'i' | 'o' | 'u' | 'y')
}

fn has_vowel(text: &str) -> bool {
    text.contains(is_vowel)
}

fn ends_in_double(text: &str) -> bool {
    let mut ends = text.chars().rev();
    match (ends.next(), ends.next()) {
        (Some(last), Some(before)) => last == before && "bdfgmnprt".contains(last),
        _ => false,
    }
}

/// `hop`, `at`: a vowel between consonants, or at the beginning before one.
fn ends_in_short_syllable(text: &str) -> bool {
    let mut ends = text.chars().rev();
    match (ends.next(), ends.next(), ends.next()) {
        (Some(last), Some(vowel), Some(before)) => {
            !is_vowel(last)
                && !matches!(last, 'w' | 'x' | 'Y')
                && is_vowel(vowel)
                && !is_vowel(before)
        }
        (Some(last), Some(vowel), None) => !is_vowel(last) && is_vowel(vowel),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_one_word_meet() {
        for forms in [
            &["repository", "repositories"] as &[&str],
            &["commit", "commits", "committed", "committing"],
            &["file", "files", "filing", "filed"],
            &["create", "creates", "created", "creating"],
            &["organize", "organization", "organizations"],
            &["connect", "connection", "connected", "connective"],
            &["translate", "translation", "translator"],
            &["query", "queries"],
        ] {
            let stems: std::collections::HashSet<_> = forms.iter().map(|form| stem(form)).collect();
            assert_eq!(stems.len(), 1, "{stems:?}");
        }
    }

    #[test]
    fn stems_are_those_of_the_algorithm() {
        for (word, expected) in [
            ("consistently", "consist"),
            ("knightly", "knight"),
            ("generously", "generous"),
            ("hopping", "hop"),
            ("hoping", "hope"),
            ("ponies", "poni"),
            ("ties", "tie"),
            ("cries", "cri"),
            ("gas", "gas"),
            ("this", "this"),
            ("caresses", "caress"),
            ("agreed", "agre"),
            ("happy", "happi"),
            ("say", "say"),
            ("relational", "relat"),
            ("replacement", "replac"),
            ("adoption", "adopt"),
            ("probate", "probat"),
            ("controlling", "control"),
            ("controller", "control"),
            ("youth", "youth"),
        ] {
            assert_eq!(stem(word), expected, "{word}");
        }
    }

    #[test]
    fn short_words_and_other_scripts_stay() {
        for word in ["is", "red", "größe", "日本", "s3"] {
            assert_eq!(stem(word), word);
        }
    }
}
