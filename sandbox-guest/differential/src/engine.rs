//! Known defects of the engine that the guest does not have. Differences due to these are ignored.

use crate::compare::Difference;

struct Defect {
    /// Beginning of the engine's output.
    bare: &'static str,
    /// Texts in the program, each with a minimum number of occurrences. At least one of them must
    /// occur.
    said: &'static [(&'static str, usize)],
}

const DEFECTS: [Defect; 2] = [
    // `JSON.parse` refuses an escaped lone surrogate, an infinite number, and a repeated member
    // `__proto__`.
    Defect {
        bare: "threw error of 'SyntaxError'",
        said: &[
            ("\\u005cud", 1),
            ("\\ud8", 1),
            ("\\ude", 1),
            ("\\udf", 1),
            ("e308", 1),
            ("e324", 1),
            ("1e400", 1),
            ("__proto__", 2),
        ],
    },
    // With the flag `v`, the search after an empty match continues in the middle of a character.
    Defect {
        bare: "",
        said: &[("v')", 1), ("v;", 1)],
    },
];

pub(crate) fn is_known(difference: &Difference) -> bool {
    let text = difference.program.text();
    let is_said = |(what, times): &(&str, usize)| text.matches(what).count() >= *times;
    DEFECTS
        .iter()
        .any(|defect| difference.bare.starts_with(defect.bare) && defect.said.iter().any(is_said))
}
