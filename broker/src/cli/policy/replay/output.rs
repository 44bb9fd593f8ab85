//! Formats a replay for people, as JSON and as SARIF.

use airlock_core::policy::Place;
use airlock_core::problem::Problem;
use serde_json::{Value, json};

use super::decision::DecisionSummary;
use super::{Change, FactsFrom, Replay, ReplayedCall, ReplayedJournal};
use crate::cli::screen::Screen;
use crate::cli::{print, print_json};
use crate::render::{Sarif, SarifLevel, SarifResult, escape};

const CHARS_SHOWN: usize = 400;

impl Replay {
    pub(super) fn print_text(&self, screen: &Screen) -> Result<(), Problem> {
        let mut text = String::new();
        for journal in &self.done {
            text.push_str(&of_journal(journal));
        }
        text.push_str(&self.summary());
        print(&text)?;
        if self.calls().any(|(_, it)| it.facts == FactsFrom::Journal) {
            screen.remark(
                "labels, destinations and roots of the calls are those in the journals; the \
                 current configuration does not change them\n",
            );
        }
        self.broken
            .iter()
            .for_each(|(_, problem)| screen.problem(problem));
        Ok(())
    }

    fn summary(&self) -> String {
        let count = |change| self.calls().filter(|(_, it)| it.change == change).count();
        let calls = self.calls().count();
        let mut parts = Vec::new();
        for (change, word) in [
            (Change::Widened, "widened"),
            (Change::Narrowed, "narrowed"),
            (Change::OtherRules, "decided the same by other rules"),
        ] {
            match count(change) {
                0 => {}
                count => parts.push(format!("{count} {word}")),
            }
        }
        if parts.is_empty() {
            parts.push("all decided as recorded".to_owned());
        }
        let journals = self.done.len();
        let (calls, journals) = (counted(calls, "call"), counted(journals, "journal"));
        let worst = self
            .calls()
            .filter(|(_, it)| it.facts == FactsFrom::Worst)
            .count();
        let worst = match worst {
            0 => String::new(),
            count => format!(
                "; no facts are recorded for {}, so their worst values are used",
                counted(count, "call")
            ),
        };
        let broken = match self.broken.len() {
            0 => String::new(),
            count => format!("; {} could not be read", counted(count, "journal")),
        };
        format!(
            "{calls} of {journals}: {}{worst}{broken}\n",
            parts.join(", ")
        )
    }

    pub(super) fn print_json(&self) -> Result<(), Problem> {
        let broken = |(journal, problem): &(String, Problem)| json!({"journal": journal, "problem": problem});
        let count = |change| self.calls().filter(|(_, it)| it.change == change).count();
        print_json(&json!({
            "journals": self.done,
            "broken": self.broken.iter().map(broken).collect::<Vec<Value>>(),
            "widened": count(Change::Widened),
            "narrowed": count(Change::Narrowed),
            "other_rules": count(Change::OtherRules),
        }))
    }

    pub(super) fn sarif(&self) -> Sarif {
        let differing = self.calls().filter(|(_, call)| call.change != Change::Same);
        let differing = differing.map(|(journal, call)| {
            let (rule, level) = match call.change {
                Change::Widened => ("call-widened", SarifLevel::Error),
                Change::Narrowed => ("call-narrowed", SarifLevel::Warning),
                Change::OtherRules | Change::Same => ("call-other-rules", SarifLevel::Note),
            };
            SarifResult {
                rule,
                level,
                message: format!("{}: {}", heading(journal, call), between(call)),
                place: place(&call.now).or_else(|| place(&call.then)),
                fix: None,
            }
        });
        let broken = self.broken.iter().map(|(journal, problem)| SarifResult {
            rule: "journal-broken",
            level: SarifLevel::Error,
            message: format!("{journal}: {}: {}", problem.what, problem.why),
            place: None,
            fix: None,
        });
        Sarif {
            rules: vec![
                (
                    "call-widened",
                    "The decision on a recorded call is less strict than before.",
                ),
                (
                    "call-narrowed",
                    "The decision on a recorded call is stricter than before.",
                ),
                (
                    "call-other-rules",
                    "The decision on a recorded call is the same, but by other rules.",
                ),
                ("journal-broken", "A journal cannot be read."),
            ],
            results: differing.chain(broken).collect(),
        }
    }
}

fn of_journal(journal: &ReplayedJournal) -> String {
    let mut text = String::new();
    for call in journal
        .calls
        .iter()
        .filter(|call| call.change != Change::Same)
    {
        let word = match call.change {
            Change::Widened => "widened:",
            Change::Narrowed => "narrowed:",
            Change::OtherRules | Change::Same => "same:",
        };
        text.push_str(&format!(
            "{word} {}\n",
            escape::brief(&heading(journal, call), CHARS_SHOWN)
        ));
        let args = call
            .args
            .as_ref()
            .map_or("not recorded", |args| args.text());
        text.push_str(&format!("  args: {}\n", escape::brief(args, CHARS_SHOWN)));
        for (when, told) in [("then", &call.then), ("now", &call.now)] {
            text.push_str(&format!("{when:>6}: {}\n", escape::line(&told.how)));
            for reason in &told.reasons {
                text.push_str(&format!("        {}\n", escape::brief(reason, CHARS_SHOWN)));
            }
        }
        if call.facts == FactsFrom::Worst {
            text.push_str(" facts: none are recorded, so their worst values are used\n");
        }
        text.push('\n');
    }
    if journal.cut {
        let name = escape::line(&journal.journal);
        text.push_str(&format!(
            "note: the journal of {name} is cut off; its complete entries were used\n"
        ));
    }
    text
}

fn heading(journal: &ReplayedJournal, call: &ReplayedCall) -> String {
    let ReplayedJournal {
        journal, script, ..
    } = journal;
    let ReplayedCall {
        call,
        tool,
        line,
        column,
        ..
    } = call;
    format!(
        "call {} of {journal}, {script}:{line}:{column}: `{tool}`",
        call.0
    )
}

fn between(call: &ReplayedCall) -> String {
    let of = |told: &DecisionSummary| {
        let rules: Vec<&str> = told.rules.iter().map(String::as_str).collect();
        match rules.as_slice() {
            [] => format!("{} by no rule", told.how),
            rules => format!("{} by {}", told.how, rules.join(", ")),
        }
    };
    format!("was {}, and now {}", of(&call.then), of(&call.now))
}

/// Returns the place of the first rule that a decision names.
fn place(told: &DecisionSummary) -> Option<Place> {
    told.reasons.iter().find_map(|reason| {
        let place = reason
            .strip_prefix("rule `")?
            .split_once("` (")?
            .1
            .split_once(')')?
            .0;
        let (file, line) = place.rsplit_once(':')?;
        Some(Place {
            file: file.into(),
            line: line.parse().ok()?,
            column: 1,
        })
    })
}

fn counted(count: usize, word: &str) -> String {
    match count {
        1 => format!("1 {word}"),
        many => format!("{many} {word}s"),
    }
}
