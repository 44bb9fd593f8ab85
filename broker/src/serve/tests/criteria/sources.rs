//! Compares the table with the documents: how many statements of which strength each section
//! contains, and how many rows the table has for it. The documents are not part of this repository.
//! `AIRLOCK_SPEC` names their folder; without it these tests are skipped.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::{May, Must, STATEMENTS, Should, Strength};

/// The sections of the disclosure document that contain requirements on a server.
const SECTIONS: std::ops::RangeInclusive<u32> = 3..=10;

/// Rows for statements without a keyword in the document: section, strength, count and reason.
const WITHOUT_KEYWORD: &[(&str, Strength, usize, &str)] = &[
    (
        "5.1",
        Must,
        1,
        "steps of a mechanism that the section requires as a whole",
    ),
    ("5.3", Must, 3, "each layer has to permit a call"),
    ("7.1", Should, 1, "how the separate files are combined"),
];

/// Names in the examples of the filtering document, and the statements about them.
const NAMES: &[(&str, &[&str])] = &[
    ("capabilities", &["gt-declared"]),
    ("filtering", &["gt-declared"]),
    ("listChanged", &["gt-declared", "gt-list-changed"]),
    ("groups/list", &["gt-groups"]),
    ("tags/list", &["gt-tags"]),
    ("tools/list", &["gt-absent"]),
    ("filter", &["gt-any", "gt-all", "gt-both", "gt-empty"]),
    ("cursor", &["gt-cursor"]),
    ("groups", &["gt-carried", "gt-groups", "gt-many"]),
    ("tags", &["gt-carried", "gt-tags", "gt-across"]),
    ("name", &["gt-groups", "gt-tags"]),
    ("title", &["gt-groups"]),
    ("description", &["gt-groups", "gt-tags"]),
];

/// Members of the examples that belong to MCP and not to filtering.
const OF_THE_PROTOCOL: [&str; 10] = [
    "jsonrpc",
    "id",
    "method",
    "params",
    "result",
    "inputSchema",
    "properties",
    "required",
    "type",
    "expression",
];

type Counts = BTreeMap<(String, Strength), usize>;

fn source(name: &str) -> Option<String> {
    let named = std::env::var_os("AIRLOCK_SPEC").map(PathBuf::from);
    let text = named.and_then(|it| std::fs::read_to_string(it.join(name)).ok());
    if text.is_none() {
        eprintln!("SKIP: criteria: AIRLOCK_SPEC names no folder that contains `{name}`");
    }
    text
}

/// Returns the strengths of the RFC 2119 keywords in one line. A refusal without a keyword counts
/// as one.
fn keywords(line: &str) -> Vec<Strength> {
    let words: Vec<&str> = line
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|it| !it.is_empty())
        .collect();
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|it| words.get(it));
        found.extend(match *word {
            "MUST" | "SHALL" | "REQUIRED" => Some(Must),
            "SHOULD" | "RECOMMENDED" => Some(Should),
            "MAY" | "OPTIONAL" => Some(May),
            "NOT" if before == Some(&"does") => Some(Must),
            _ => None,
        });
    }
    found
}

fn is_item(line: &str) -> bool {
    let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with("- ") || (digits.len() < line.len() && digits.starts_with(". "))
}

/// Returns the strength that a heading gives to items below it that have no keyword.
fn heading(line: &str) -> Option<Strength> {
    if !line.trim_end_matches('*').ends_with(':') {
        return None;
    }
    let word = line.trim_matches(['*', ':']);
    match (keywords(line).first(), word) {
        (Some(strength), _) => Some(*strength),
        (None, "Recommendations" | "Mitigations") => Some(Should),
        (None, word) if word.contains("conforms to") => Some(Must),
        (None, _) => None,
    }
}

/// Counts the statements of each strength per section.
fn stated(text: &str) -> Counts {
    let mut counts = Counts::new();
    let (mut section, mut is_example) = (String::new(), false);
    // A line that ends in a colon, held until the next line shows whether a list follows.
    let mut held: Option<(Strength, Vec<Strength>)> = None;
    let mut items: Option<Strength> = None;
    let mut count = |section: &String, strength: Strength| {
        let number = section.split('.').next().and_then(|it| it.parse().ok());
        if number.is_some_and(|it: u32| SECTIONS.contains(&it)) {
            *counts.entry((section.clone(), strength)).or_default() += 1;
        }
    };
    for line in text.lines().map(str::trim) {
        if line.is_empty() {
            continue;
        }
        if let Some((strength, own)) = held.take() {
            if is_item(line) {
                items = Some(strength);
            } else {
                own.into_iter().for_each(|it| count(&section, it));
            }
        }
        if line.starts_with("```") {
            is_example = !is_example;
            continue;
        }
        if is_example {
            continue;
        }
        if line.starts_with('#') {
            let title = line.trim_start_matches('#').trim();
            let number = title.split(' ').next().unwrap_or_default();
            section = number.trim_end_matches('.').to_owned();
            items = None;
            continue;
        }
        let own = keywords(line);
        if is_item(line) {
            let inherited = items.filter(|_| own.is_empty());
            own.into_iter()
                .chain(inherited)
                .for_each(|it| count(&section, it));
            continue;
        }
        items = None;
        match heading(line) {
            Some(strength) => held = Some((strength, own)),
            None => own.into_iter().for_each(|it| count(&section, it)),
        }
    }
    counts
}

/// Counts the rows of the table per section.
fn rows() -> Counts {
    let mut counts = Counts::new();
    for (id, strength, _) in STATEMENTS {
        let Some((section, _)) = id.strip_prefix("pd-").and_then(|it| it.split_once('-')) else {
            continue;
        };
        *counts.entry((section.to_owned(), *strength)).or_default() += 1;
    }
    counts
}

#[test]
fn each_section_on_disclosure_has_a_row_for_each_of_its_statements() {
    let Some(text) = source("progressive-disclosure-v2.1.md") else {
        return;
    };
    let mut stated = stated(&text);
    assert!(stated.values().sum::<usize>() > 50, "{stated:?}");
    for (section, strength, more, _) in WITHOUT_KEYWORD {
        *stated
            .entry(((*section).to_owned(), *strength))
            .or_default() += more;
    }
    assert_eq!(rows(), stated);
}

/// Returns the members and methods in the examples.
fn names_in_examples(text: &str) -> BTreeSet<&str> {
    let mut quoted: Vec<&str> = text.split('"').collect();
    // Text before the first quote and after the last one is not quoted.
    quoted.push("");
    let pairs = quoted.windows(2).skip(1).step_by(2);
    pairs
        .filter_map(|pair| match pair {
            [name, after] => {
                (after.trim_start().starts_with(':') || name.ends_with("/list")).then_some(*name)
            }
            _ => None,
        })
        .collect()
}

#[test]
fn filtering_has_a_row_for_its_keyword_and_for_each_name_in_its_examples() {
    let Some(text) = source("sep-1300-groups-and-tags.md") else {
        return;
    };
    let demands: Vec<_> = text.lines().flat_map(keywords).collect();
    assert_eq!(demands, [Must], "only the declaration has a keyword");
    let strength = |id: &str| STATEMENTS.iter().find(|(it, ..)| *it == id).map(|it| it.1);
    assert_eq!(strength("gt-declared"), Some(Must));
    let here: BTreeSet<_> = names_in_examples(&text)
        .into_iter()
        .filter(|name| !OF_THE_PROTOCOL.contains(name))
        .collect();
    let known: BTreeSet<_> = NAMES.iter().map(|(name, _)| *name).collect();
    assert_eq!(here, known);
    let about: BTreeSet<_> = NAMES.iter().flat_map(|(_, ids)| *ids).collect();
    let without_row: Vec<_> = about.iter().filter(|id| strength(id).is_none()).collect();
    assert!(without_row.is_empty(), "{without_row:?}");
}

/// Tests the counting itself, on a document written for the test.
#[test]
fn statements_are_counted_by_their_keywords_and_by_the_lists_below_them() {
    let text = "\
## 2. Before
Nothing here MUST count.
### 3.1 First
It SHALL stand, and it MUST NOT fall. X_REQUIRED is a code.

**Notes:**
- It MAY be blue
- no keyword

It SHOULD have:

1. one
2. two, which MUST be there

The answer MUST be:
```json
{\"this\": \"MAY not count\"}
```
## 9. Last
A thing conforms to this if:
1. [x] a
2. [x] b
### 10.2 More
**Recommendations:**
- It does NOT sleep
- rest
";
    let expected = [
        (("10.2", Must), 1),
        (("10.2", Should), 1),
        (("3.1", Must), 4),
        (("3.1", Should), 1),
        (("3.1", May), 1),
        (("9", Must), 2),
    ];
    let expected: Counts = expected
        .into_iter()
        .map(|((section, strength), count)| ((section.to_owned(), strength), count))
        .collect();
    assert_eq!(stated(text), expected);
    assert_eq!(
        names_in_examples("a {\"method\": \"x/list\", \"id\" : 1, \"y\": [\"z\"]}"),
        BTreeSet::from(["id", "method", "x/list", "y"])
    );
}
