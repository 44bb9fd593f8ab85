//! What is checked of a call and of its result, compiled once per description.

use std::collections::HashMap;
use std::sync::Arc;

use airlock_core::catalog::Check;
use airlock_core::id::Digest;
use codegen::description::Description;
use codegen::validate::{Finding, Validator};
use serde_json::Value;

use crate::config::UnknownKeys;

/// The checks of one tool.
#[derive(Debug, Clone)]
pub(super) struct Checks {
    pub(super) input: Check,
    pub(super) doubts: Option<Check>,
    pub(super) output: Option<Check>,
}

/// Tools whose descriptions are equal share one compiled set, whichever servers list them.
#[derive(Debug, Default)]
pub(super) struct CompiledChecks {
    /// By digest, and by whether its result is checked at all.
    by_digest: HashMap<(Digest, bool), Checks>,
    unknown_keys: UnknownKeys,
}

impl CompiledChecks {
    pub(super) fn new(unknown_keys: UnknownKeys) -> Self {
        Self {
            by_digest: HashMap::new(),
            unknown_keys,
        }
    }

    /// The input must have a validator, or its calls could not be checked; a result
    /// whose schema cannot be compiled is passed on as what it is.
    pub(super) fn of(&mut self, description: &Description) -> Result<Checks, String> {
        let key = (description.digest, description.checked_output().is_some());
        if let Some(known) = self.by_digest.get(&key) {
            return Ok(known.clone());
        }
        let input = Validator::compile(&description.input_schema).map_err(|bad| bad.to_string())?;
        let output = description
            .checked_output()
            .and_then(|schema| Validator::compile(schema).ok());
        let (input, doubts) = self.of_arguments(Arc::new(input));
        let checks = Checks {
            input,
            doubts,
            output: output
                .map(|output| Check::new(move |value| texts(&output.errors("result", value)))),
        };
        self.by_digest.insert(key, checks.clone());
        Ok(checks)
    }

    fn of_arguments(&self, validator: Arc<Validator>) -> (Check, Option<Check>) {
        match self.unknown_keys {
            UnknownKeys::Refuse => {
                let all = move |value: &Value| texts(&validator.check("args", value));
                (Check::new(all), None)
            }
            UnknownKeys::Warn => {
                let of_doubts = Arc::clone(&validator);
                let errors = move |value: &Value| texts(&validator.errors("args", value));
                let doubts = move |value: &Value| texts(&of_doubts.doubts("args", value));
                (Check::new(errors), Some(Check::new(doubts)))
            }
        }
    }
}

fn texts(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn checks(unknown_keys: UnknownKeys) -> Checks {
        let schema = json!({"type": "object", "properties": {"limit": {"type": "integer"}}});
        let tool = json!({"name": "t", "inputSchema": schema});
        let description = Description::parse("s", &tool).unwrap();
        CompiledChecks::new(unknown_keys).of(&description).unwrap()
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
    fn equal_descriptions_are_compiled_once() {
        let tool = json!({"name": "t", "inputSchema": {"type": "object"}});
        let mut compiled = CompiledChecks::new(UnknownKeys::Warn);
        for server in ["a", "b"] {
            let description = Description::parse(server, &tool).unwrap();
            compiled.of(&description).unwrap();
        }
        assert_eq!(compiled.by_digest.len(), 1);
    }
}
