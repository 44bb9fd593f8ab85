//! Validates the arguments and results of calls against schemas. A schema is compiled when its
//! first value is checked, because a session calls only a few of a thousand tools.

use std::collections::HashMap;
use std::sync::Arc;

use airlock_core::catalog::{Validate, ValueCheck};
use airlock_core::id::Digest;
use codegen::description::Description;
use codegen::lazy_json::LazyJson;
use codegen::validate::{BadSchema, Finding, Validator};
use serde_json::Value;

use super::schema_cache::{SchemaCache, SchemaKey, SchemaSource};
use crate::config::UnknownKeys;

/// The checks of one tool.
#[derive(Debug, Clone)]
pub(super) struct ToolChecks {
    pub(super) args_check: ValueCheck,
    pub(super) likely_mistakes: Option<ValueCheck>,
    pub(super) result_check: Option<ValueCheck>,
}

/// The checks of all tools. Tools with equal descriptions share one set, even across servers.
#[derive(Debug)]
pub(super) struct CheckRegistry {
    /// The checks, by the digest of the description and by whether the result is checked.
    by_digest: HashMap<(Digest, bool), CachedChecks>,
    /// The number of times that all tools were processed.
    round: u64,
    compiled: Arc<SchemaCache>,
    unknown_keys: UnknownKeys,
}

#[derive(Debug)]
struct CachedChecks {
    checks: ToolChecks,
    round: u64,
}

impl CheckRegistry {
    pub(super) fn new(unknown_keys: UnknownKeys) -> Self {
        Self {
            by_digest: HashMap::new(),
            round: 0,
            compiled: Arc::default(),
            unknown_keys,
        }
    }

    /// Returns the checks of a tool without compiling anything. If the input schema cannot be
    /// compiled later, calls are refused. If the result schema cannot be compiled, results are
    /// passed on unchecked.
    pub(super) fn of(&mut self, description: &Description) -> ToolChecks {
        let key = (description.digest, description.checked_output().is_some());
        if let Some(known) = self.by_digest.get_mut(&key) {
            known.round = self.round;
            return known.checks.clone();
        }
        let checks = self.made(description);
        let known = CachedChecks {
            checks: checks.clone(),
            round: self.round,
        };
        self.by_digest.insert(key, known);
        checks
    }

    /// Ends a round over all tools, and drops the checks that no tool of this round used.
    pub(super) fn forget_others(&mut self) {
        self.by_digest.retain(|_, known| known.round == self.round);
        self.round += 1;
    }

    fn made(&self, description: &Description) -> ToolChecks {
        let digest = description.digest;
        let schema = |name: SchemaKey, value: &LazyJson| {
            let value = value.clone();
            Arc::new(SchemaSource { name, value })
        };
        let lazily = |schema: &Arc<SchemaSource>, part: CheckedPart| {
            ValueCheck::from_validator(AgainstSchema {
                schema: Arc::clone(schema),
                compiled: Arc::clone(&self.compiled),
                part,
            })
        };
        let input = schema(SchemaKey::Input(digest), &description.input_schema);
        let output = description.checked_output();
        let output = output.map(|it| schema(SchemaKey::Output(digest), it));
        let (of_input, likely_mistakes) = match self.unknown_keys {
            UnknownKeys::Refuse => (CheckedPart::Arguments, None),
            UnknownKeys::Warn => (
                CheckedPart::ArgumentErrors,
                Some(CheckedPart::LikelyMistakes),
            ),
        };
        ToolChecks {
            args_check: lazily(&input, of_input),
            likely_mistakes: likely_mistakes.map(|part| lazily(&input, part)),
            result_check: output.map(|it| lazily(&it, CheckedPart::Result)),
        }
    }
}

/// Which findings a check returns.
#[derive(Debug, Clone, Copy)]
enum CheckedPart {
    /// Both errors and doubts.
    Arguments,
    ArgumentErrors,
    LikelyMistakes,
    Result,
}

struct AgainstSchema {
    schema: Arc<SchemaSource>,
    compiled: Arc<SchemaCache>,
    part: CheckedPart,
}

impl AgainstSchema {
    fn validator(&self) -> Result<Arc<Validator>, BadSchema> {
        self.compiled.of(&self.schema)
    }
}

impl Validate for AgainstSchema {
    fn findings(&self, value: &Value) -> Vec<String> {
        let Ok(validator) = self.validator() else {
            return Vec::new();
        };
        let mut findings = match self.part {
            CheckedPart::Arguments => validator.check("args", value),
            CheckedPart::ArgumentErrors => {
                let errors = validator.errors("args", value);
                match errors.is_empty() {
                    true => errors,
                    // An unknown name is often the cause of a missing one.
                    false => validator.check("args", value),
                }
            }
            CheckedPart::LikelyMistakes => validator.doubts("args", value),
            CheckedPart::Result => validator.errors("result", value),
        };
        // A correction says more than the rest.
        findings.sort_by_key(|finding| finding.suggestion.is_none());
        findings.iter().map(Finding::to_string).collect()
    }

    fn unusable(&self) -> Option<String> {
        let bad = self.validator().err()?;
        Some(format!("the arguments cannot be checked: {bad}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn described(name: &str, schema: &Value) -> Description {
        Description::parse("s", &json!({"name": name, "inputSchema": schema})).unwrap()
    }

    fn checks(unknown_keys: UnknownKeys) -> ToolChecks {
        let schema = json!({"type": "object", "properties": {"limit": {"type": "integer"}}});
        CheckRegistry::new(unknown_keys).of(&described("t", &schema))
    }

    #[test]
    fn unknown_key_is_warned_about_or_refused() {
        let args = json!({"limits": 5});
        let says = "args.limits: expected `limit`, got an unknown property. Did you mean `limit`?";
        let warning = checks(UnknownKeys::Warn);
        assert_eq!(warning.args_check.findings(&args), Vec::<String>::new());
        assert_eq!(warning.likely_mistakes.unwrap().findings(&args), [says]);
        let refusing = checks(UnknownKeys::Refuse);
        assert_eq!(refusing.args_check.findings(&args), [says]);
        assert!(refusing.likely_mistakes.is_none());
    }

    #[test]
    fn schema_is_compiled_on_first_use_and_cached() {
        let mut all = CheckRegistry::new(UnknownKeys::Warn);
        let schema = json!({"type": "object", "required": ["a"]});
        let checks: Vec<_> = (0..100)
            .map(|at| all.of(&described(&format!("t{at}"), &schema)))
            .collect();
        assert_eq!(all.compiled.len(), 0);
        for _ in 0..3 {
            assert_eq!(checks[7].args_check.findings(&json!({})).len(), 1);
            assert_eq!(checks[7].args_check.unusable(), None);
        }
        assert_eq!(all.compiled.len(), 1);
    }

    #[test]
    fn invalid_schema_disables_check_and_reports_reason() {
        let mut all = CheckRegistry::new(UnknownKeys::Warn);
        for (schema, why) in [
            (
                json!({"type": "object", "$ref": "https://a.example/b"}),
                "does not fetch it",
            ),
            (json!({"type": "object", "required": 7}), "is invalid"),
        ] {
            let check = all.of(&described("t", &schema)).args_check;
            assert_eq!(check.findings(&json!({})), Vec::<String>::new());
            assert!(check.unusable().unwrap().contains(why), "{schema}");
        }
    }

    #[test]
    fn equal_descriptions_share_checks_and_removed_ones_are_dropped() {
        let mut all = CheckRegistry::new(UnknownKeys::Warn);
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
