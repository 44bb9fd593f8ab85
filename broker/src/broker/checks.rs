//! What is checked of a call and of its result, against schemas that are compiled when a value
//! is first held against them: of a thousand tools a session calls a few.

use std::collections::HashMap;
use std::sync::Arc;

use airlock_core::catalog::{Check, Looks};
use airlock_core::id::Digest;
use codegen::description::Description;
use codegen::later::Later;
use codegen::validate::{BadSchema, Finding, Validator};
use serde_json::Value;

use super::compiled::{Compiled, Name, Schema};
use crate::config::UnknownKeys;

/// The checks of one tool.
#[derive(Debug, Clone)]
pub(super) struct Checks {
    pub(super) input: Check,
    pub(super) doubts: Option<Check>,
    pub(super) output: Option<Check>,
}

/// Tools whose descriptions are equal share one set, whichever servers list them.
#[derive(Debug)]
pub(super) struct AllChecks {
    /// By digest, and by whether the result is checked at all.
    by_digest: HashMap<(Digest, bool), Known>,
    /// Counts how often all tools were gone through.
    round: u64,
    compiled: Arc<Compiled>,
    unknown_keys: UnknownKeys,
}

#[derive(Debug)]
struct Known {
    checks: Checks,
    round: u64,
}

impl AllChecks {
    pub(super) fn new(unknown_keys: UnknownKeys) -> Self {
        Self {
            by_digest: HashMap::new(),
            round: 0,
            compiled: Arc::default(),
            unknown_keys,
        }
    }

    /// Nothing is compiled yet. A call of a tool whose input schema cannot be compiled is
    /// refused then; a result whose schema cannot be is passed on as what it is.
    pub(super) fn of(&mut self, description: &Description) -> Checks {
        let key = (description.digest, description.checked_output().is_some());
        if let Some(known) = self.by_digest.get_mut(&key) {
            known.round = self.round;
            return known.checks.clone();
        }
        let checks = self.made(description);
        let known = Known {
            checks: checks.clone(),
            round: self.round,
        };
        self.by_digest.insert(key, known);
        checks
    }

    /// All tools were gone through: what none of them has any more is forgotten.
    pub(super) fn forget_others(&mut self) {
        self.by_digest.retain(|_, known| known.round == self.round);
        self.round += 1;
    }

    fn made(&self, description: &Description) -> Checks {
        let digest = description.digest;
        let schema = |name: Name, value: &Later| {
            let value = value.clone();
            Arc::new(Schema { name, value })
        };
        let lazily = |schema: &Arc<Schema>, part: Part| {
            Check::of(AgainstSchema {
                schema: Arc::clone(schema),
                compiled: Arc::clone(&self.compiled),
                part,
            })
        };
        let input = schema(Name::Input(digest), &description.input_schema);
        let output = description.checked_output();
        let output = output.map(|it| schema(Name::Output(digest), it));
        let (of_input, doubts) = match self.unknown_keys {
            UnknownKeys::Refuse => (Part::Arguments, None),
            UnknownKeys::Warn => (Part::ArgumentErrors, Some(Part::ArgumentDoubts)),
        };
        Checks {
            input: lazily(&input, of_input),
            doubts: doubts.map(|part| lazily(&input, part)),
            output: output.map(|it| lazily(&it, Part::Result)),
        }
    }
}

/// What is looked for.
#[derive(Debug, Clone, Copy)]
enum Part {
    /// Errors and doubts alike.
    Arguments,
    ArgumentErrors,
    ArgumentDoubts,
    Result,
}

struct AgainstSchema {
    schema: Arc<Schema>,
    compiled: Arc<Compiled>,
    part: Part,
}

impl AgainstSchema {
    fn validator(&self) -> Result<Arc<Validator>, BadSchema> {
        self.compiled.of(&self.schema)
    }
}

impl Looks for AgainstSchema {
    fn findings(&self, value: &Value) -> Vec<String> {
        let Ok(validator) = self.validator() else {
            return Vec::new();
        };
        let findings = match self.part {
            Part::Arguments => validator.check("args", value),
            Part::ArgumentErrors => validator.errors("args", value),
            Part::ArgumentDoubts => validator.doubts("args", value),
            Part::Result => validator.errors("result", value),
        };
        findings.iter().map(Finding::to_string).collect()
    }

    fn unusable(&self) -> Option<String> {
        let bad = self.validator().err()?;
        Some(format!("no call of it can be checked: {bad}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn described(name: &str, schema: &Value) -> Description {
        Description::parse("s", &json!({"name": name, "inputSchema": schema})).unwrap()
    }

    fn checks(unknown_keys: UnknownKeys) -> Checks {
        let schema = json!({"type": "object", "properties": {"limit": {"type": "integer"}}});
        AllChecks::new(unknown_keys).of(&described("t", &schema))
    }

    #[test]
    fn a_key_that_nobody_names_is_doubted_or_refused() {
        let args = json!({"limits": 5});
        let says = "args.limits: expected `limit`, got an unknown property. Did you mean `limit`?";
        let warning = checks(UnknownKeys::Warn);
        assert_eq!(warning.input.findings(&args), Vec::<String>::new());
        assert_eq!(warning.doubts.unwrap().findings(&args), [says]);
        let refusing = checks(UnknownKeys::Refuse);
        assert_eq!(refusing.input.findings(&args), [says]);
        assert!(refusing.doubts.is_none());
    }

    #[test]
    fn a_schema_is_compiled_when_something_is_first_held_against_it_and_kept() {
        let mut all = AllChecks::new(UnknownKeys::Warn);
        let schema = json!({"type": "object", "required": ["a"]});
        let checks: Vec<_> = (0..100)
            .map(|at| all.of(&described(&format!("t{at}"), &schema)))
            .collect();
        assert_eq!(all.compiled.len(), 0);
        for _ in 0..3 {
            assert_eq!(checks[7].input.findings(&json!({})).len(), 1);
            assert_eq!(checks[7].input.unusable(), None);
        }
        assert_eq!(all.compiled.len(), 1);
    }

    #[test]
    fn a_schema_that_makes_no_sense_is_no_check_and_says_why() {
        let mut all = AllChecks::new(UnknownKeys::Warn);
        for (schema, why) in [
            (
                json!({"type": "object", "$ref": "https://a.example/b"}),
                "nothing is fetched",
            ),
            (json!({"type": "object", "required": 7}), "not valid"),
        ] {
            let check = all.of(&described("t", &schema)).input;
            assert_eq!(check.findings(&json!({})), Vec::<String>::new());
            assert!(check.unusable().unwrap().contains(why), "{schema}");
        }
    }

    #[test]
    fn equal_descriptions_share_their_checks_and_those_that_are_gone_are_forgotten() {
        let mut all = AllChecks::new(UnknownKeys::Warn);
        let described = |name: &str| described(name, &json!({"type": "object"}));
        for round in [["a", "a", "b"], ["a", "c", "c"]] {
            for name in round {
                all.of(&described(name));
            }
            all.forget_others();
            assert_eq!(all.by_digest.len(), 2, "{round:?}");
        }
    }
}
