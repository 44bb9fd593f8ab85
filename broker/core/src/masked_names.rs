//! Keeps the names of members distinct when credentials in them are masked. Two masked names could
//! otherwise be equal, to each other or to a name that contained a mask before, and a member would
//! be lost.

/// What stands in the place of a masked credential.
pub const MASK: &str = "***";

/// Numbers the masked names of one value, in the order of the text.
#[derive(Debug, Default)]
pub struct MaskedNames {
    count: usize,
    has_masked: bool,
    numbers_earlier_masks: bool,
}

impl MaskedNames {
    /// Also numbers names that contain a mask without having been masked here.
    #[must_use]
    pub fn with_earlier_masks() -> Self {
        Self {
            numbers_earlier_masks: true,
            ..Self::default()
        }
    }

    /// Returns whether a name was masked.
    #[must_use]
    pub fn has_masked(&self) -> bool {
        self.has_masked
    }

    #[must_use]
    pub fn numbers_earlier_masks(&self) -> bool {
        self.numbers_earlier_masks
    }

    /// Returns what replaces a name: its masked form with a number that no other name of this value
    /// ends with. The first one has no number. Returns `None` if the name stays as it is.
    pub fn replacement(&mut self, name: &str, masked: Option<String>) -> Option<String> {
        self.has_masked |= masked.is_some();
        let is_earlier = self.numbers_earlier_masks && name.contains(MASK);
        let shown = masked.or_else(|| is_earlier.then(|| name.to_owned()))?;
        self.count += 1;
        match self.count {
            1 if !ends_with_number(&shown) => Some(shown),
            number => Some(format!("{shown}#{number}")),
        }
    }
}

fn ends_with_number(name: &str) -> bool {
    let without_digits = name.trim_end_matches(|c: char| c.is_ascii_digit());
    without_digits.len() < name.len() && without_digits.ends_with('#')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(names: &[(&str, Option<&str>)], expected: &[Option<&str>]) {
        let mut masked = MaskedNames::with_earlier_masks();
        let shown: Vec<Option<String>> = names
            .iter()
            .map(|(name, it)| masked.replacement(name, it.map(str::to_owned)))
            .collect();
        let shown: Vec<Option<&str>> = shown.iter().map(Option::as_deref).collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn masked_names_stay_distinct() {
        check(
            &[("tok", Some("***")), ("a", None), ("tik", Some("***"))],
            &[Some("***"), None, Some("***#2")],
        );
        check(
            &[("***", None), ("tok", Some("***"))],
            &[Some("***"), Some("***#2")],
        );
        check(
            &[("***#2", None), ("tok", Some("***"))],
            &[Some("***#2#1"), Some("***#2")],
        );
    }
}
