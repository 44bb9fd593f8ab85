//! Faults that the engine is known to have: what a script did when one of them ended it, and
//! what it can do instead. The engine's own words say neither.

/// Words of the engine, and what to say of them.
const KNOWN: [(&str, &str); 2] = [
    (
        "already borrowed",
        "most likely a class was written to while a field of a new object got its first value, \
         as in `id = T.count++`, which this engine cannot do; write to the class in the \
         constructor, or choose the engine quickjs",
    ),
    (
        "iterator stack should have at least an iterator",
        "most likely the `next` of an iterator failed where a pattern takes its items inside a \
         loop, as in `const [a] = items`, which this engine cannot go on from; take them with \
         `const [a] = [...items]`, or choose the engine quickjs",
    ),
];

/// What the engine said in the end, with what is known of it.
pub(super) fn told(fault: String) -> String {
    let known = KNOWN.iter().find(|(words, _)| fault.contains(words));
    match known {
        Some((_, why)) => format!("{why} (the engine said: {fault})"),
        None => fault,
    }
}

#[cfg(test)]
mod tests {
    use super::told;

    #[test]
    fn what_is_known_is_said_before_the_words_of_the_engine() {
        let borrowed = "Object already borrowed: BorrowMutError".to_owned();
        let said = told(borrowed);
        assert!(said.contains("in the constructor"), "{said}");
        assert!(said.contains("BorrowMutError"), "{said}");
        assert_eq!(told("something else".to_owned()), "something else");
    }
}
