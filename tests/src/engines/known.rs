//! Applies the list of known differences to a comparison.

use airlock::sandbox::{Comparison, DIFFERENCES};

use super::compare::Difference;

/// Returns whether a script uses a feature with a known difference.
pub(super) fn is_left_out(script: &str) -> bool {
    DIFFERENCES
        .iter()
        .any(|difference| match difference.compared {
            Comparison::LeftOut(ways) => ways
                .iter()
                .any(|words| words.iter().all(|word| script.contains(word))),
            _ => false,
        })
}

/// Returns whether the order of a script's output is unspecified.
pub(super) fn is_unordered(script: &str) -> bool {
    DIFFERENCES
        .iter()
        .any(|difference| match difference.compared {
            Comparison::Unordered(words) => words.iter().any(|word| script.contains(word)),
            _ => false,
        })
}

/// Returns whether a difference is ignored in every script:
///
/// - error messages, and the class of the error for a string that grows too long,
/// - the escapes in the source of a regular expression,
/// - the last digits of numbers,
/// - the order in which the members of a built-in function behind a proxy are listed,
/// - spaces after the commas of printed typed arrays.
pub(super) fn is_known(difference: &Difference, script: &str) -> bool {
    let [boa, quickjs] = [&difference.boa, &difference.quickjs].map(|line| bare(line));
    boa == quickjs
        || is_same_built_in(&boa, &quickjs) && script.contains("Proxy")
        || is_typed_for_people(script) && boa.replace(", ", ",") == quickjs.replace(", ", ",")
}

/// Returns whether two lines differ only in the order of the members of a built-in function.
fn is_same_built_in(boa: &str, quickjs: &str) -> bool {
    let is_built_in = BUILT_INS
        .iter()
        .any(|name| boa.contains(&format!("function '{name}'/")));
    let sorted = |line: &str| {
        let begin = line.split_once(" {").map_or(line, |(begin, _)| begin);
        let mut members: Vec<_> = line
            .split([' ', ',', '{', '}'])
            .map(str::to_owned)
            .collect();
        members.sort();
        (begin.to_owned(), members)
    };
    is_built_in && sorted(boa) == sorted(quickjs)
}

const BUILT_INS: [&str; 6] = ["Number", "String", "Object", "Array", "Symbol", "BigInt"];

fn is_typed_for_people(script: &str) -> bool {
    script.contains("toLocaleString") && script.contains("Array")
}

/// Returns whether a script uses a feature with a known difference that no generated script uses.
/// Shortening must not replace the difference that was found by such a known one.
pub(super) fn is_never_made_up(script: &str) -> bool {
    let script: String = script.split_whitespace().collect::<Vec<_>>().join(" ");
    let tight: String = script.chars().filter(|c| *c != ' ').collect();
    NEVER_MADE_UP.iter().any(|words| tight.contains(words))
        || loops_over_no_name(&script)
        || tight.contains(".toString(") && LARGE.iter().any(|number| tight.contains(number))
        || takes_apart_beside_a_rest(&tight)
}

const NEVER_MADE_UP: [&str; 7] = [
    // Iteration results that are not objects, and iterators without `next`.
    "next(){}",
    "[Symbol.iterator](){return{return",
    "[Symbol.iterator](){return{}",
    // A function whose kind only its prototype shows.
    "Array.fromAsync)",
    // Patterns that are invalid with the flag `v`.
    "\\u0/v",
    "{}/v",
    "{}/gv",
];
/// Numbers whose digits are exact only in radix ten.
const LARGE: [&str; 4] = ["1e100", "1e21", "2**53", "e308"];

/// Returns whether a loop's head assigns to a name that no declaration in the script has.
fn loops_over_no_name(script: &str) -> bool {
    let heads = script.split("for").skip(1);
    heads.filter_map(head_name).any(|name| {
        let is_fresh = name.len() > 1 && name.starts_with(['v', 'w', 'p']);
        is_fresh && name[1..].bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Returns the name in `(name of …` or `(name in …`.
fn head_name(head: &str) -> Option<&str> {
    let head = head.trim_start().strip_prefix('(')?.trim_start();
    let end = head.find(|c: char| !c.is_ascii_alphanumeric())?;
    let (name, rest) = head.split_at(end);
    let rest = rest.trim_start();
    (rest.starts_with("of") || rest.starts_with("in")).then_some(name)
}

/// Returns whether a script contains `{ a: { b } = {}, ...rest } = o`. For this pattern, an engine
/// may read the member `a` more than once.
fn takes_apart_beside_a_rest(tight: &str) -> bool {
    let Some((_, rest)) = tight.split_once("}={},...") else {
        return false;
    };
    rest.split_once("}=")
        .is_some_and(|(_, source)| !source.starts_with("{..."))
}

fn bare(line: &str) -> String {
    let line = line
        .replace("InternalError", "RangeError")
        .replace("\\u005c", "");
    let bare = rounded(&line).replace('\\', "");
    // The width of a table depends on the stack of an error in one of its cells.
    match bare.contains("(index)") {
        true => bare.replace([' ', '-'], ""),
        false => bare,
    }
}

/// Rounds every fraction to twelve digits.
fn rounded(line: &str) -> String {
    let mut told = String::new();
    let mut number = String::new();
    for c in line.chars().chain(['\n']) {
        if c.is_ascii_digit() || c == '.' {
            number.push(c);
            continue;
        }
        if !number.is_empty() {
            match number.parse::<f64>() {
                Ok(value) if number.contains('.') => told.push_str(&format!("{value:.11e}")),
                _ => told.push_str(&number),
            }
            number.clear();
        }
        told.push(c);
    }
    told
}

#[cfg(test)]
mod tests {
    use super::super::generate::GeneratedScript;
    use super::*;

    fn known(boa: &str, quickjs: &str, script: &str) -> bool {
        let difference = Difference {
            made: GeneratedScript::read(script),
            boa: boa.to_owned(),
            quickjs: quickjs.to_owned(),
        };
        is_known(&difference, script)
    }

    #[test]
    fn only_proxied_builtins_may_reorder_keys() {
        let told = |members: &str| format!("log: function 'String'/1 {{{members}, }}");
        let (one, two) = (
            told("'raw': hidden, 'at': hidden"),
            told("'at': hidden, 'raw': hidden"),
        );
        assert!(known(&one, &two, "log(new Proxy(String, {}))"));
        assert!(!known(&one, &two, "log(String)"));
        assert!(!known(
            &one,
            &told("'at': hidden"),
            "log(new Proxy(String, {}))"
        ));
        let own = |line: &str| line.replace("String", "f");
        assert!(!known(&own(&one), &own(&two), "log(new Proxy(f, {}))"));
        let object = |line: &str| line.replace("function 'String'/1", "object");
        assert!(!known(
            &object(&one),
            &object(&two),
            "log(new Proxy(o, {}))"
        ));
    }

    #[test]
    fn only_typed_array_spacing_may_differ() {
        let [one, two] = ["log: '1, 2'", "log: '1,2'"];
        assert!(known(
            one,
            two,
            "log(new Uint8Array([1, 2]).toLocaleString())"
        ));
        assert!(!known(one, two, "log(new Uint8Array([1, 2]).join())"));
        assert!(!known(
            one,
            "log: '1,3'",
            "log(new Uint8Array([1, 2]).toLocaleString())"
        ));
    }

    #[test]
    fn ungenerated_syntax_is_recognised() {
        for script in [
            "for (w2 of [3]) f = {}",
            "for(v1 in o)log()",
            "Iterator.from({ next() {} })",
            "1e100.toString(36)",
            "const { x: {} = {}, ...w2 } = new Proxy(o, { get() {} })",
        ] {
            assert!(is_never_made_up(script), "{script}");
        }
        for script in [
            "for (const w2 of [3]) f = {}",
            "for (a of [3]) f = {}",
            "for (let v1 = 0; v1 < 2; v1++) log()",
            "Iterator.from({ next() { return {} } })",
            "(1e10).toString(36)",
            "const { x: {} = {}, ...w2 } = { ...o }",
            "const { x = {}, ...w2 } = o",
        ] {
            assert!(!is_never_made_up(script), "{script}");
        }
    }
}
