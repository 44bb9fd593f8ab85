//! Where the engine itself is known to be wrong and the guest is right: differences that
//! nobody wants to hear of.

use crate::compare::Difference;

struct Defect {
    /// What the engine shows begins with this.
    bare: &'static str,
    /// And the program says one of these, as often as the number tells.
    said: &'static [(&'static str, usize)],
}

const DEFECTS: [Defect; 2] = [
    // `JSON.parse` refuses half a surrogate pair as an escape, a number that is infinite, and
    // a member named `__proto__` that comes twice.
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
    // With the flag `v`, going on behind a match of nothing goes into the middle of a character.
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
