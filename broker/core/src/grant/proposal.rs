//! The grant that is proposed to the approver: a number of calls of the same tool, in which the
//! arguments that were equal so far stay equal.

use std::num::NonZeroU32;

use codegen::canonical;
use serde_json::Value;

use super::condition::{Condition, FieldValue};
use crate::call::Args;
use crate::labels::Labels;

/// Maximum number of calls shown as examples of a proposal.
const EXAMPLES_MAX: usize = 3;
/// Number of uses proposed if only one call waits, so that the number of calls is unknown.
const USES_UNKNOWN: NonZeroU32 = NonZeroU32::MIN.saturating_add(19);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    pub condition: Condition,
    /// The number of calls that wait for an answer, or 20 if only one call waits.
    pub uses_max: NonZeroU32,
    /// The first three of the calls that were asked about so far.
    pub examples: Vec<Args>,
    pub calls: u32,
}

/// What the run was started with.
#[derive(Clone, Copy)]
pub(crate) struct ScriptAndInput<'a> {
    pub(crate) script: &'a str,
    /// JSON text; empty means `undefined`.
    pub(crate) input: &'a [u8],
}

/// The calls of one tool that were asked about in this run.
#[derive(Debug, Clone)]
pub(super) struct AskedCalls {
    /// The condition that all calls meet; `None` if they have too many fields to be compared.
    common: Option<Condition>,
    examples: Vec<Args>,
    calls: u32,
    /// Union of the labels at the time of each call.
    labels: Labels,
}

impl AskedCalls {
    pub(super) fn first(args: &Args, labels: Labels) -> Self {
        Self {
            common: Condition::exactly(args.value()),
            examples: vec![args.clone()],
            calls: 1,
            labels,
        }
    }

    pub(super) fn labels(&self) -> &Labels {
        &self.labels
    }

    pub(super) fn add(&mut self, args: &Args, labels: &Labels) {
        self.labels.join(labels);
        if let Some(common) = &mut self.common {
            common.widen(args.value());
        }
        if self.examples.len() < EXAMPLES_MAX {
            self.examples.push(args.clone());
        }
        self.calls = self.calls.saturating_add(1);
    }

    /// Returns the grant to propose. `waiting` is the number of calls of the tool that wait for an
    /// answer, including this one. If there is only one call, a field stays fixed only if the
    /// script contains its value as a literal, because a loop would probably not change such a
    /// field. If the arguments are the input itself, as in a direct call of a host, all fields stay
    /// fixed, because the input was written for this call.
    pub(super) fn proposal(&self, waiting: u32, run: ScriptAndInput<'_>) -> Option<Proposal> {
        let mut condition = self.common.clone()?;
        if self.calls == 1 && !self.is_input(run.input) {
            condition.keep(|_, same| is_spelt_out(same, run.script));
        }
        Some(Proposal {
            condition,
            uses_max: NonZeroU32::new(waiting)
                .filter(|it| it.get() > 1)
                .unwrap_or(USES_UNKNOWN),
            examples: self.examples.clone(),
            calls: self.calls,
        })
    }
}

impl AskedCalls {
    /// Whether the arguments of the call are the whole input of the run.
    fn is_input(&self, input: &[u8]) -> bool {
        let args = self.examples.first().filter(|it| it.text() != "{}");
        let input = crate::json::parse(input);
        args.zip(input.ok())
            .is_some_and(|(args, input)| canonical::canonical(&input) == args.text().as_bytes())
    }
}

/// Whether the script contains the value as a literal.
fn is_spelt_out(same: &FieldValue, script: &str) -> bool {
    let FieldValue::Is(text) = same else {
        return false;
    };
    match crate::json::parse(text.as_bytes()) {
        Ok(Value::String(text)) => ['"', '\'', '`']
            .iter()
            .any(|quote| script.contains(&format!("{quote}{text}{quote}"))),
        Ok(Value::Array(_) | Value::Object(_)) | Err(_) => false,
        Ok(_) => has_word(script, text),
    }
}

fn has_word(script: &str, word: &str) -> bool {
    let goes_on = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '$');
    script.match_indices(word).any(|(at, _)| {
        let before = script.get(..at).and_then(|text| text.chars().next_back());
        let after = script
            .get(at + word.len()..)
            .and_then(|text| text.chars().next());
        !before.is_some_and(goes_on) && !after.is_some_and(goes_on)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::args;

    fn check(calls: &[&str], script: &str, expected: &str) {
        let (first, rest) = calls.split_first().unwrap();
        let mut seen = AskedCalls::first(&args(first), Labels::default());
        rest.iter()
            .for_each(|call| seen.add(&args(call), &Labels::default()));
        let input = b"{\"title\": \"a\", \"project\": \"OPS\", \"n\": 5}";
        let proposal = seen.proposal(1, ScriptAndInput { script, input }).unwrap();
        assert_eq!(proposal.condition.to_string(), expected);
        assert_eq!(proposal.examples.len(), calls.len().min(3));
    }

    #[test]
    fn single_call_proposal_fixes_fields_named_by_script() {
        check(
            &[r#"{"project":"OPS","urgent":true,"n":5,"title":"disk full"}"#],
            r#"for (const t of input) await tickets.create({project: 'OPS', urgent: true, n: 15, title: t})"#,
            "/project = \"OPS\", /urgent = true; /n, /title may be anything",
        );
    }

    #[test]
    fn arguments_that_are_the_input_stay_fixed() {
        let script = "return await tickets.create(input);";
        check(
            &[r#"{"n":5.0,"project":"OPS","title":"a"}"#],
            script,
            "/n = 5, /project = \"OPS\", /title = \"a\"",
        );
        check(
            &[r#"{"project":"OPS","title":"a"}"#],
            script,
            "/project, /title may be anything",
        );
        check(
            &[
                r#"{"n":5,"project":"OPS","title":"a"}"#,
                r#"{"n":5,"project":"OPS","title":"b"}"#,
            ],
            script,
            "/n = 5, /project = \"OPS\"; /title may be anything",
        );
    }

    #[test]
    fn proposal_for_several_calls_fixes_shared_fields() {
        let call = |n: u32| format!(r#"{{"project":"OPS","title":"{n}"}}"#);
        let calls: Vec<_> = (0..5).map(call).collect();
        let calls: Vec<_> = calls.iter().map(String::as_str).collect();
        check(&calls, "", "/project = \"OPS\"; /title may be anything");
    }

    #[test]
    fn proposal_counts_waiting_calls() {
        let seen = AskedCalls::first(&args("{}"), Labels::default());
        let (script, input) = ("", &b""[..]);
        let run = ScriptAndInput { script, input };
        assert_eq!(seen.proposal(7, run).unwrap().uses_max.get(), 7);
        assert_eq!(seen.proposal(1, run).unwrap().uses_max.get(), 20);
    }
}
