//! Finds which of several names was probably meant.

/// Returns the name most similar to `wanted`, if any is similar enough.
pub fn closest<'a>(names: impl Iterator<Item = &'a str>, wanted: &str) -> Option<&'a str> {
    let folded = fold(wanted);
    let allowed = folded.len() / 3 + 1;
    names
        .map(|name| {
            let other = fold(name);
            let distance = if other.contains(&folded) || folded.contains(&other) {
                usize::from(other != folded)
            } else {
                edits(&other, &folded)
            };
            (distance, name)
        })
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Removes case and separators, which the comparison ignores.
fn fold(name: &str) -> String {
    name.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|c| c.to_ascii_lowercase())
        .collect()
}

/// Computes the edit distance, row by row.
fn edits(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        for (cell, y) in row.iter_mut().skip(1).zip(b.bytes()) {
            let replaced = diagonal + usize::from(x != y);
            diagonal = *cell;
            left = replaced.min(*cell + 1).min(left + 1);
            *cell = left;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_like_it_is_found_and_what_is_not_is_not() {
        let names = ["list_issues", "get_issue", "search"];
        let found = |wanted| closest(names.into_iter(), wanted);
        assert_eq!(found("listIssues"), Some("list_issues"));
        assert_eq!(found("get_isue"), Some("get_issue"));
        assert_eq!(found("searchAll"), Some("search"));
        assert_eq!(found("delete_repository"), None);
    }

    #[test]
    fn edits_are_counted() {
        for (a, b, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(edits(a, b), expected, "{a} {b}");
        }
    }
}
