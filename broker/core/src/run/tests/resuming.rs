//! Tests of runs that resume an earlier run: what is reused, repeated, blocked and asked about.

use super::*;
use crate::facts::Facts;
use crate::flow::FlowSpec;
use crate::id::CallRef;
use crate::journal::{Chain, Predecessor, VerifiedJournal, read};
use crate::labels::{Label, Labels};
use crate::report::Status;
use crate::resume::chain::{BeganRecord, ChainRecord, RunChain, StoredAnswer, StoredAnswerWord};
use crate::resume::plan::{ResumeRequest, plan};
use crate::statement::{StatedOutcome, Statement};

const LATER: u64 = 86_400_000;

/// Runs that follow each other in one chain.
pub(super) struct ChainStory {
    pub(super) chain: RunChain,
    pub(super) journals: Vec<VerifiedJournal>,
    pub(super) rules: Vec<&'static str>,
    pub(super) suspend_after_ms: Option<u64>,
    reads_max_age_ms: u64,
    same_servers: Vec<crate::id::ServerName>,
    run: Option<Run>,
    sealed: (Chain, String),
    pub(super) at_ms: u64,
    pub(super) report: Option<Report>,
}

impl ChainStory {
    pub(super) fn new(rules: &[&'static str]) -> Self {
        Self {
            chain: RunChain::new(RunId("a".into())),
            journals: Vec::new(),
            rules: rules.to_vec(),
            suspend_after_ms: None,
            reads_max_age_ms: u64::MAX,
            same_servers: Vec::new(),
            run: None,
            sealed: (Chain::new(Redact::nothing()), String::new()),
            at_ms: T0,
            report: None,
        }
    }

    /// Starts the first run, or resumes the newest one. Returns whether it is continued.
    pub(super) fn start(&mut self, run: &str, script: &str, change: impl Fn(&mut RunSpec)) -> bool {
        self.close();
        let mut spec = RunSpec {
            run: RunId(run.into()),
            script: script.into(),
            suspend_after_ms: self.suspend_after_ms,
            ..spec(&self.rules, Limits::default())
        };
        change(&mut spec);
        let mut is_continued = false;
        if let Some(latest) = self.journals.last() {
            let request = ResumeRequest {
                script: Digest::sha256(spec.script.as_bytes()),
                input: Digest::sha256(&spec.input),
                guest: spec.guest.digest,
                reads_max_age_ms: self.reads_max_age_ms,
            };
            let began = BeganRecord {
                run: spec.run.clone(),
                predecessor: Predecessor {
                    run: self.chain.newest().clone(),
                    head: latest.head.unwrap(),
                },
            };
            let mut resume = plan(&self.chain, &self.journals, request).unwrap();
            resume.same_servers.clone_from(&self.same_servers);
            self.chain.apply(ChainRecord::Began(began)).unwrap();
            is_continued = resume.mode.is_continue();
            spec.resume = Some(Box::new(resume));
        }
        let (run, effects) = Run::start(spec, self.at_ms);
        self.run = Some(run);
        self.report = None;
        self.perform(effects);
        is_continued
    }

    fn perform(&mut self, effects: Vec<Effect>) -> Vec<String> {
        let words: Vec<_> = effects.iter().map(describe).collect();
        for effect in effects {
            match effect {
                Effect::Append { entry, .. } => {
                    let line = self.sealed.0.seal(&entry).unwrap();
                    self.sealed.1 += &line;
                }
                Effect::Finish(report) => self.report = Some(*report),
                _ => {}
            }
        }
        let is_quiet = |word: &String| word.starts_with("wake") || word.starts_with("append");
        words.into_iter().filter(|it| !is_quiet(it)).collect()
    }

    /// Handles an event, and returns the effects other than entries and alarms.
    pub(super) fn hear(&mut self, event: Event) -> Vec<String> {
        self.at_ms += 1;
        let effects = self.run.as_mut().unwrap().handle(self.at_ms, event);
        self.perform(effects)
    }

    /// Handles events of the same moment.
    pub(super) fn hear_all(&mut self, events: Vec<Event>) -> Vec<String> {
        self.at_ms += 1;
        let effects = self.run.as_mut().unwrap().handle_all(self.at_ms, events);
        self.perform(effects)
    }

    /// Keeps the journal of the run so far; a run that has not ended has crashed.
    pub(super) fn close(&mut self) {
        let new = (Chain::new(Redact::nothing()), String::new());
        let (_, lines) = std::mem::replace(&mut self.sealed, new);
        if !lines.is_empty() {
            self.journals.push(read(lines.as_bytes()).unwrap());
        }
    }

    /// Returns the lines of the newest run's journal.
    pub(super) fn lines(&self) -> &str {
        &self.sealed.1
    }

    pub(super) fn kinds(&self) -> Vec<String> {
        let journal = read(self.lines().as_bytes()).unwrap();
        journal
            .lines
            .iter()
            .map(|it| describe_entry(&it.body))
            .collect()
    }

    fn state(&mut self, run: &str, call: u32, outcome: StatedOutcome) {
        self.close();
        let about = CallRef {
            run: RunId(run.into()),
            call: CallId(call),
        };
        let args_digest = crate::testing::args("{}").digest();
        let statement = Statement {
            about,
            args_digest,
            outcome,
            by: "ada".into(),
            shown: args_digest,
        };
        self.chain.apply(ChainRecord::Statement(statement)).unwrap();
    }

    pub(super) fn report(&self) -> &Report {
        self.report.as_ref().expect("the run has finished")
    }

    /// Records that a person allowed a call of the run `a`, and which question the person was shown.
    fn allow(&mut self, call: u32, shown: Digest) {
        let answer = StoredAnswer {
            about: CallRef {
                run: RunId("a".into()),
                call: CallId(call),
            },
            shown,
            answer: StoredAnswerWord::AllowOnce,
            by: "ada".into(),
        };
        self.chain.apply(ChainRecord::Answer(answer)).unwrap();
    }

    /// Returns why an earlier answer does not count, as the latest question of the newest run says it.
    fn void_answer(&self) -> Option<String> {
        let journal = read(self.sealed.1.as_bytes()).unwrap();
        let mut lines = journal.lines.iter().rev();
        let reasons = lines.find_map(|line| match &line.body {
            Body::Asked(asked) => Some(asked.reasons.clone()),
            _ => None,
        });
        let mut reasons = reasons.into_iter().flatten();
        reasons.find(|it| it.starts_with("an earlier answer"))
    }

    /// Returns the facts of the latest decision of the newest run.
    fn latest_facts(&self) -> Facts {
        let journal = read(self.sealed.1.as_bytes()).unwrap();
        let mut lines = journal.lines.iter().rev();
        let facts = lines.find_map(|line| match &line.body {
            Body::Decided(decided) => decided.facts.clone(),
            _ => None,
        });
        Facts::clone(&facts.expect("the run computes facts"))
    }
}

pub(super) fn same(_: &mut RunSpec) {}

fn tracked(spec: &mut RunSpec) {
    spec.flow = Some(FlowSpec::default());
}

/// Lets the run belong to a session that has read data with these labels.
fn in_session(labels: &[&str]) -> impl Fn(&mut RunSpec) {
    let labels = labels.iter().map(|word| Label::parse(word).unwrap());
    let labels: Labels = labels.collect();
    move |spec| {
        tracked(spec);
        spec.flow.as_mut().unwrap().carried.labels = labels.clone();
    }
}

fn other_target(spec: &mut RunSpec) {
    let mut servers = spec.decision_context.catalog.servers().to_vec();
    servers[0].target = Some("https://other.example".into());
    let catalog = crate::catalog::Catalog::new(servers).unwrap();
    spec.decision_context.catalog = Arc::new(catalog);
}

fn other_descriptions(spec: &mut RunSpec) {
    let mut tools: Vec<_> = TOOLS.iter().map(|id| tool(id)).collect();
    tools[0].effects.read_only = Some(true);
    for tool in &mut tools {
        tool.description_digest = Digest::sha256(b"changed");
    }
    spec.decision_context.catalog = Arc::new(catalog_of(tools));
}

pub(super) fn write(ticket: u32, args: &str) -> OpenCall {
    open_call(ticket, 1, args)
}

pub(super) fn wait(calls: Vec<OpenCall>) -> Event {
    step(calls, StepState::Waiting { wake_at_ms: None })
}

#[test]
fn crashed_run_continues_with_recorded_outcomes_and_times() {
    let mut story = ChainStory::new(&["allow *"]);
    story.start("a", "s", same);
    story.hear(waits(&[(0, 1)]));
    story.hear(replies(1, "1"));
    story.hear(waits(&[(1, 0)]));
    story.hear(replies(2, "2"));
    story.hear(waits(&[(2, 1)]));
    story.at_ms += LATER;
    assert!(story.start("b", "s", same));
    assert_eq!(story.hear(waits(&[(0, 1)])), ["resume @2 0=1"]);
    assert_eq!(story.hear(waits(&[(1, 0)])), ["resume @4 1=2"]);
    // The third call was in flight when the run crashed.
    let heard = story.hear(waits(&[(2, 1)]));
    assert_eq!(heard, ["resume @4 2!outcome-unknown"]);
    story.hear(returns("1"));
    let kinds = story.kinds();
    assert_eq!(
        kinds[1..5],
        [
            "reused 1 from a:1",
            "resumed",
            "reused 2 from a:2",
            "resumed"
        ]
    );
    let report = story.report();
    assert_eq!((report.reused, report.ran), (2, 0));
    assert_eq!(report.chain.as_ref().unwrap().number, 2);
    assert_eq!(report.indeterminate[0].at.to_string(), "a:3");
}

#[test]
fn crashed_run_is_not_replayed_after_change_of_target_description_rules_or_disclosure() {
    let changes: [fn(&mut RunSpec); 4] = [
        other_target,
        other_descriptions,
        |spec| spec.decision_context.rules = Arc::new(rules(&["deny fs.*", "allow *"])),
        |spec| {
            let none = Arc::default();
            spec.decision_context.disclosed = crate::session::DisclosedTools::Only(none);
        },
    ];
    let codes = [
        "outcome-unknown",
        "outcome-unknown",
        "denied",
        "not-disclosed",
    ];
    for (change, code) in changes.into_iter().zip(codes) {
        let mut story = ChainStory::new(&["allow *"]);
        story.start("a", "s", same);
        story.hear(waits(&[(0, 1)]));
        story.hear(replies(1, "1"));
        story.start("b", "s", change);
        let heard = story.hear(waits(&[(0, 1)]));
        assert_eq!(heard.len(), 1, "{heard:?}");
        assert!(heard[0].ends_with(&format!(" 0!{code}")), "{heard:?}");
        story.hear(returns("1"));
        let report = story.report();
        assert_eq!((report.reused, report.ran), (0, 0));
    }
}

#[test]
fn crashed_run_with_masked_script_or_arguments_is_not_replayed() {
    let masks: [fn(&mut Body); 2] = [
        |body| {
            if let Body::RunStarted(started) = body {
                started.masked = true;
            }
        },
        |body| {
            if let Body::Decided(decided) = body {
                decided.masked = true;
            }
        },
    ];
    for (mask, told) in masks.into_iter().zip([" 0=1", " 0!outcome-unknown"]) {
        let mut story = ChainStory::new(&["allow *"]);
        story.start("a", "s", same);
        story.hear(waits(&[(0, 1)]));
        story.hear(replies(1, "1"));
        story.close();
        for line in &mut story.journals[0].lines {
            mask(&mut line.body);
        }
        assert!(!story.start("b", "s", same));
        let heard = story.hear(waits(&[(0, 1)]));
        assert_eq!(heard.len(), 1, "{heard:?}");
        assert!(heard[0].ends_with(told), "{heard:?}");
    }
}

#[test]
fn same_server_reuses_results_of_changed_target() {
    for script in ["s", "t"] {
        let mut story = ChainStory::new(&["allow *"]);
        story.start("a", "s", same);
        story.hear(waits(&[(0, 1)]));
        story.hear(replies(1, "1"));
        story.same_servers = vec![crate::id::ServerName("fs".into())];
        assert_eq!(story.start("b", script, other_target), script == "s");
        assert_eq!(story.hear(waits(&[(0, 1)])), ["resume @2 0=1"]);
        // The journal of the second run says so for later ones.
        story.same_servers.clear();
        story.start("c", "u", other_target);
        assert_eq!(story.hear(waits(&[(0, 1)])), ["resume @2 0=1"]);
    }
}

#[test]
fn stated_result_from_another_target_is_not_reused() {
    let mut story = ChainStory::new(&["allow *"]);
    story.start("a", "s", same);
    story.hear(waits(&[(0, 1)]));
    let result = Some("7".into());
    story.state("a", 1, StatedOutcome::Happened { result });
    story.start("b", "s", other_target);
    let heard = story.hear(waits(&[(0, 1)]));
    assert_eq!(heard.len(), 1, "{heard:?}");
    assert!(heard[0].ends_with(" 0!outcome-unknown"), "{heard:?}");
}

#[test]
fn repeat_that_did_nothing_leaves_earlier_result_in_the_ledger() {
    let mut story = ChainStory::new(&["allow *"]);
    story.start("a", "s", same);
    story.hear(waits(&[(0, 0)]));
    story.hear(replies(1, "1"));
    story.hear(throws("x", None));
    story.reads_max_age_ms = 600_000;
    story.at_ms += LATER;
    story.start("b", "t", same);
    assert_eq!(story.hear(waits(&[(0, 0)])), ["call 1"]);
    let reply = Reply::Refused {
        code: 1,
        message: "no".into(),
    };
    let call = CallId(1);
    story.hear(Event::Replied { call, reply });
    story.hear(throws("x", None));
    story.reads_max_age_ms = u64::MAX;
    story.start("c", "t", same);
    let heard = story.hear(waits(&[(0, 0)]));
    assert_eq!(heard, ["resume @2 0=1"]);
}

#[test]
fn statement_decides_about_unknown_call() {
    for (stated, expected) in [
        (StatedOutcome::DidNotHappen, "call 1"),
        (
            StatedOutcome::Happened {
                result: Some("7".into()),
            },
            "resume @0 0=7",
        ),
        (
            StatedOutcome::Happened { result: None },
            "resume @0 0!result-invalid",
        ),
    ] {
        let mut story = ChainStory::new(&["allow *"]);
        story.start("a", "s", same);
        story.hear(waits(&[(0, 1)]));
        story.state("a", 1, stated);
        story.start("b", "s", same);
        assert_eq!(story.hear(waits(&[(0, 1)])), [expected]);
    }
}

#[test]
fn last_statement_counts_also_after_a_run_used_an_earlier_one() {
    let happened = |result: &str| StatedOutcome::Happened {
        result: Some(result.into()),
    };
    let mut story = ChainStory::new(&["allow *"]);
    story.start("a", "s", same);
    story.hear(waits(&[(0, 1)]));
    story.state("a", 1, StatedOutcome::DidNotHappen);
    story.state("a", 1, happened("7"));
    assert!(story.start("b", "s", same));
    assert_eq!(story.hear(waits(&[(0, 1)])), ["resume @0 0=7"]);
    story.state("a", 1, happened("8"));
    // The script of the second run has got the earlier result, so that run is not replayed.
    assert!(!story.start("c", "s", same));
    assert_eq!(story.hear(waits(&[(0, 1)])), ["resume @0 0=8"]);
    story.state("a", 1, StatedOutcome::DidNotHappen);
    assert!(!story.start("d", "s", same));
    assert_eq!(story.hear(waits(&[(0, 1)])), ["call 1"]);
}

#[test]
fn replayed_statement_answers_one_call_as_before() {
    let unfit = |spec: &mut RunSpec| {
        let mut tools: Vec<_> = TOOLS.iter().map(|id| tool(id)).collect();
        tools[1].result_check = Some(crate::catalog::ValueCheck::new(|_| vec!["unfit".into()]));
        spec.decision_context.catalog = Arc::new(catalog_of(tools));
    };
    let changes: [fn(&mut RunSpec); 2] = [same, unfit];
    for (change, told) in changes.into_iter().zip([" 0=7", " 0!result-invalid"]) {
        let mut story = ChainStory::new(&["allow *"]);
        story.start("a", "s", change);
        story.hear(waits(&[(0, 1)]));
        let result = Some("7".into());
        story.state("a", 1, StatedOutcome::Happened { result });
        for run in ["b", "c"] {
            assert!(story.start(run, "s", change));
            let heard = story.hear(waits(&[(0, 1)]));
            assert!(heard[0].ends_with(told), "{run}: {heard:?}");
        }
        assert_eq!(story.hear(waits(&[(1, 1)])), ["call 2"]);
    }
}

#[test]
fn script_that_differs_from_recording_stops_before_anything_leaves() {
    let mut story = ChainStory::new(&["allow *"]);
    story.start("a", "s", same);
    story.hear(waits(&[(0, 1)]));
    story.hear(replies(1, "1"));
    assert!(story.start("b", "s", same));
    let heard = story.hear(wait(vec![write(0, r#"{"other":1}"#)]));
    assert_eq!(heard, ["stop", "finish failed resume-diverged"]);
    // The next run matches by content.
    assert!(!story.start("c", "s", same));
    assert_eq!(story.hear(waits(&[(0, 1)])), ["resume @2 0=1"]);
}

#[test]
fn continued_script_that_ends_early_has_diverged() {
    let mut story = ChainStory::new(&["allow *"]);
    story.start("a", "s", same);
    story.hear(waits(&[(0, 1)]));
    story.hear(replies(1, "1"));
    story.start("b", "s", same);
    let heard = story.hear(returns("1"));
    assert_eq!(heard, ["stop", "finish failed resume-diverged"]);
}

#[test]
fn edited_script_reuses_equal_calls_in_any_order() {
    let mut story = ChainStory::new(&["allow *"]);
    story.start("a", "s", same);
    story.hear(wait(vec![write(0, r#"{"n":1}"#)]));
    story.hear(replies(1, "1"));
    story.hear(wait(vec![write(1, r#"{"n":2}"#)]));
    story.hear(replies(2, "2"));
    story.hear(throws("x", None));
    assert!(!story.start("b", "t", same));
    let both = vec![write(0, r#"{"n":2}"#), write(1, r#"{"n":1}"#)];
    // The outcomes come in the recorded order, at the recorded times.
    assert_eq!(story.hear(wait(both)), ["resume @2 1=1"]);
    assert_eq!(story.hear(waits(&[])), ["resume @4 0=2"]);
    story.hear(returns("1"));
    let report = story.report();
    assert_eq!((report.reused, report.ran), (2, 0));
    assert!(report.left_over.is_empty());
}

#[test]
fn n_th_equal_call_meets_n_th_entry() {
    let mut story = ChainStory::new(&["allow *"]);
    story.start("a", "s", same);
    story.hear(waits(&[(0, 1), (1, 1)]));
    story.hear(replies(1, "1"));
    story.hear(replies(2, "2"));
    story.hear(throws("x", None));
    story.start("b", "t", same);
    let heard = story.hear(waits(&[(0, 1), (1, 1), (2, 1)]));
    assert_eq!(heard, ["call 3", "resume @5 0=1 1=2"]);
}

#[test]
fn failed_and_denied_calls_are_decided_again() {
    let mut story = ChainStory::new(&["deny fs.delete", "allow *"]);
    story.start("a", "s", same);
    story.hear(waits(&[(0, 1), (1, 2)]));
    let reply = Reply::Refused {
        code: 1,
        message: "no".into(),
    };
    let call = CallId(1);
    story.hear(Event::Replied { call, reply });
    story.hear(throws("x", None));
    story.rules = vec!["allow *"];
    story.start("b", "t", same);
    assert_eq!(story.hear(waits(&[(0, 1), (1, 2)])), ["call 1", "call 2"]);
}

#[test]
fn rewritten_write_is_doubtful_while_earlier_one_is_left_over() {
    let mut story = ChainStory::new(&["allow *"]);
    story.start("a", "s", same);
    story.hear(wait(vec![write(0, r#"{"title":"pay"}"#)]));
    story.hear(replies(1, "1"));
    story.hear(throws("x", None));
    story.start("b", "t", same);
    let heard = story.hear(wait(vec![write(0, r#"{"title":"pay now"}"#)]));
    assert_eq!(heard, ["ask 1"]);
    let heard = story.hear(answers(1, Answer::Unanswered));
    assert_eq!(heard, ["resume @5 0!unanswered"]);
    story.hear(returns("1"));
    let report = story.report();
    assert_eq!(report.doubtful[0].near[0].to_string(), "a:1");
    assert_eq!(report.left_over[0].at.to_string(), "a:1");
}

#[test]
fn new_write_is_not_doubtful_once_earlier_ones_are_met() {
    let mut story = ChainStory::new(&["allow *"]);
    story.start("a", "s", same);
    story.hear(wait(vec![write(0, r#"{"n":1}"#)]));
    story.hear(replies(1, "1"));
    story.hear(throws("x", None));
    story.start("b", "t", same);
    let both = vec![write(0, r#"{"n":2}"#), write(1, r#"{"n":1}"#)];
    assert_eq!(story.hear(wait(both)), ["call 1", "resume @4 1=1"]);
}

#[test]
fn changed_description_or_target_repeats_no_write() {
    let changes: [fn(&mut RunSpec); 2] = [other_descriptions, other_target];
    for change in changes {
        let mut story = ChainStory::new(&["allow *"]);
        story.start("a", "s", same);
        story.hear(waits(&[(0, 0), (1, 1)]));
        story.hear(replies(1, "1"));
        story.hear(replies(2, "1"));
        story.hear(throws("x", None));
        story.start("b", "t", change);
        // The read runs again.
        let heard = story.hear(waits(&[(0, 0), (1, 1)]));
        assert_eq!(heard, ["call 1", "resume @5 1!outcome-unknown"]);
    }
}

#[test]
fn old_read_is_refreshed_and_compared() {
    for (value, changed) in [("1", false), ("2", true)] {
        let mut story = ChainStory::new(&["allow *"]);
        story.start("a", "s", same);
        story.hear(waits(&[(0, 0)]));
        story.hear(replies(1, "1"));
        story.hear(throws("x", None));
        story.reads_max_age_ms = 600_000;
        story.at_ms += LATER;
        story.start("b", "t", same);
        assert_eq!(story.hear(waits(&[(0, 0)])), ["call 1"]);
        story.hear(replies(1, value));
        story.hear(returns("1"));
        let refreshed = &story.report().refreshed[0];
        assert_eq!(refreshed.from.to_string(), "a:1");
        assert_eq!(refreshed.changed, Some(changed));
    }
}

#[test]
fn rule_of_now_denies_reuse() {
    let mut story = ChainStory::new(&["allow *"]);
    story.start("a", "s", same);
    story.hear(waits(&[(0, 1)]));
    story.hear(replies(1, "1"));
    story.hear(throws("x", None));
    story.rules = vec!["deny *"];
    story.start("b", "t", same);
    assert_eq!(story.hear(waits(&[(0, 1)])), ["resume @0 0!denied"]);
    story.hear(returns("1"));
    assert_eq!(story.report().left_over.len(), 1);
}

#[test]
fn rules_count_reused_calls_as_calls_of_the_run() {
    for (is_continued, script) in [(true, "s"), (false, "t")] {
        let mut story = ChainStory::new(&["allow *"]);
        story.start("a", "s", tracked);
        story.hear(waits(&[(0, 1)]));
        story.hear(replies(1, "1"));
        assert_eq!(story.start("b", script, tracked), is_continued);
        story.hear(waits(&[(0, 1)]));
        story.hear(waits(&[(1, 1)]));
        assert_eq!(story.latest_facts().counts.calls_run, 1);
        story.hear(replies(2, "1"));
        story.hear(returns("1"));
        let kept = &story.report().flow.as_ref().unwrap().calls;
        assert_eq!(kept.values().sum::<u64>(), 1, "{kept:?}");
    }
}

#[test]
fn resumed_run_has_labels_with_which_each_earlier_run_started() {
    for script in ["s", "t"] {
        let mut story = ChainStory::new(&["allow *"]);
        story.start("a", "s", in_session(&["untrusted", "private:crm"]));
        story.hear(waits(&[(0, 1)]));
        for run in ["b", "c"] {
            story.start(run, script, tracked);
            story.hear(waits(&[(0, 1), (1, 0)]));
            let facts = story.latest_facts();
            assert_eq!(
                facts.labels.to_texts(),
                ["private", "private:crm", "untrusted"]
            );
            assert!(!facts.script_trusted);
        }
    }
}

#[test]
fn labels_of_input_do_not_make_resumed_script_untrusted() {
    let mut story = ChainStory::new(&["allow *"]);
    let untrusted_input = |spec: &mut RunSpec| {
        tracked(spec);
        let labels = [Label::untrusted()].into_iter().collect();
        spec.flow.as_mut().unwrap().input_labels = labels;
    };
    story.start("a", "s", untrusted_input);
    story.hear(waits(&[(0, 1)]));
    story.start("b", "s", tracked);
    story.hear(waits(&[(0, 1), (1, 0)]));
    let facts = story.latest_facts();
    assert!(facts.labels.is_untrusted() && facts.script_trusted);
}

#[test]
fn run_whose_journal_has_no_labels_is_resumed_with_the_worst() {
    let mut story = ChainStory::new(&["allow *"]);
    story.start("a", "s", same);
    story.hear(waits(&[(0, 1)]));
    story.start("b", "t", tracked);
    story.hear(waits(&[(0, 0)]));
    let facts = story.latest_facts();
    assert!(Labels::worst().is_within(&facts.labels) && !facts.script_trusted);
}

#[test]
fn drained_outcome_is_reused() {
    let mut story = ChainStory::new(&["allow *"]);
    story.start("a", "s", same);
    story.hear(waits(&[(0, 1), (1, 0)]));
    story.hear(replies(2, "1"));
    story.hear(returns("1"));
    story.hear(replies(1, "5"));
    story.start("b", "t", same);
    assert_eq!(story.hear(waits(&[(0, 1)])), ["resume @0 0=5"]);
}

#[test]
fn suspended_run_takes_answer_in_another_process() {
    let mut story = ChainStory::new(&["ask *"]);
    story.suspend_after_ms = Some(60_000);
    story.start("a", "s", same);
    assert_eq!(story.hear(waits(&[(0, 1)])), ["ask 1"]);
    story.at_ms += 60_000;
    let heard = story.hear(Event::Woke);
    assert_eq!(heard, ["withdraw 1", "stop", "finish paused -"]);
    assert_eq!(story.report().status, Status::Paused);
    assert!(story.report().can_resume.is_some());
    story.close();
    let Some(Body::Asked(asked)) = story.journals[0].of_call(CallId(1)).next() else {
        panic!("the question is recorded")
    };
    let shown = asked.shown;
    story.allow(1, shown);
    story.at_ms += LATER;
    let (chain, journals) = (story.chain.clone(), story.journals.clone());
    // A run that dies before it puts the question again does not use the answer.
    assert!(story.start("b", "s", same));
    // Neither does a run that is cancelled before.
    assert!(story.start("c", "s", same));
    story.hear(Event::Cancelled {
        why: "the host left".into(),
        may_wait: false,
    });
    assert!(!story.start("d", "s", same));
    assert_eq!(story.hear(waits(&[(0, 1)])), ["call 1"]);
    // A run that decided the call has used the answer.
    story.start("e", "s", same);
    assert_ne!(story.hear(waits(&[(0, 1)])), ["call 1"]);
    // Under other rules, the question is put again.
    let mut story = ChainStory::new(&["ask fs.*"]);
    (story.chain, story.journals) = (chain, journals);
    assert!(story.start("b", "s", same));
    assert_eq!(story.hear(waits(&[(0, 1)])), ["ask 1"]);
}

#[test]
fn question_says_why_an_earlier_answer_no_longer_counts() {
    let mut story = ChainStory::new(&["ask *"]);
    story.suspend_after_ms = Some(60_000);
    story.start("a", "s", same);
    story.hear(waits(&[(0, 1)]));
    assert_eq!(story.void_answer(), None);
    story.at_ms += 60_000;
    story.hear(Event::Woke);
    story.close();
    let Some(Body::Asked(asked)) = story.journals[0].of_call(CallId(1)).next() else {
        panic!("the question is recorded")
    };
    let shown = asked.shown;
    story.allow(1, shown);
    let (chain, journals) = (story.chain.clone(), story.journals.clone());
    type Change = fn(&mut RunSpec);
    let cases: [(&[&str], Change, Option<&str>); 4] = [
        (&["ask *"], same, None),
        (&["ask fs.*"], same, Some("because the rules have changed")),
        (
            &["ask *"],
            other_target,
            Some("of the server `fs` have changed"),
        ),
        (
            &["ask *"],
            other_descriptions,
            Some("its description or its facts have changed"),
        ),
    ];
    for (rules, change, expected) in cases {
        let mut story = ChainStory::new(rules);
        (story.chain, story.journals) = (chain.clone(), journals.clone());
        story.start("b", "s", change);
        let heard = story.hear(waits(&[(0, 1)]));
        let Some(expected) = expected else {
            assert_eq!(heard, ["call 1"]);
            continue;
        };
        assert_eq!(heard, ["ask 1"], "{expected}");
        let why = story.void_answer().unwrap_or_default();
        assert!(why.contains("`allow`") && why.contains(expected), "{why}");
    }
}

#[test]
fn answer_to_other_question_is_not_taken() {
    let mut story = ChainStory::new(&["ask *"]);
    story.start("a", "s", same);
    story.hear(waits(&[(0, 1)]));
    story.close();
    story.allow(1, Digest::sha256(b"another question"));
    story.start("b", "s", same);
    assert_eq!(story.hear(waits(&[(0, 1)])), ["ask 1"]);
}

#[test]
fn statement_keeps_answers_to_other_questions() {
    let mut story = ChainStory::new(&["ask fs.delete", "allow *"]);
    story.suspend_after_ms = Some(60_000);
    story.start("a", "s", same);
    assert_eq!(story.hear(waits(&[(0, 1)])), ["call 1"]);
    story.hear(lost(1));
    assert_eq!(story.hear(waits(&[(1, 2)])), ["ask 2"]);
    story.at_ms += 60_000;
    story.hear(Event::Woke);
    story.close();
    let Some(Body::Asked(asked)) = story.journals[0].of_call(CallId(2)).next() else {
        panic!("the question is recorded")
    };
    let shown = asked.shown;
    story.allow(2, shown);
    let result = Some("7".to_owned());
    story.state("a", 1, StatedOutcome::Happened { result });
    let (chain, journals) = (story.chain.clone(), story.journals.clone());
    type Change = fn(&mut RunSpec);
    let cases: [(&[&str], &str, Change, &str); 4] = [
        (&["ask fs.delete", "allow *"], "s", same, "call 2"),
        (&["ask fs.delete", "allow *"], "t", same, "ask 2"),
        (&["ask fs.delete", "allow fs.*"], "s", same, "ask 2"),
        (&["ask fs.delete", "allow *"], "s", other_target, "ask 2"),
    ];
    for (rules, script, change, expected) in cases {
        let mut story = ChainStory::new(rules);
        (story.chain, story.journals) = (chain.clone(), journals.clone());
        assert!(!story.start("b", script, change));
        story.hear(waits(&[(0, 1)]));
        assert_eq!(story.hear(waits(&[(1, 2)])), [expected], "{rules:?}");
    }
}

#[test]
fn answer_at_the_last_moment_is_acted_on() {
    let mut story = ChainStory::new(&["ask *"]);
    story.suspend_after_ms = Some(10);
    story.start("a", "s", same);
    assert_eq!(story.hear(waits(&[(0, 1)])), ["ask 1"]);
    story.at_ms += 100;
    assert_eq!(story.hear(answers(1, Answer::AllowOnce)), ["call 1"]);
}

#[test]
fn run_that_waits_for_call_is_not_suspended() {
    let mut story = ChainStory::new(&["ask fs.delete", "allow *"]);
    story.suspend_after_ms = Some(10);
    story.start("a", "s", same);
    story.hear(waits(&[(0, 1), (1, 2)]));
    story.at_ms += 100;
    assert_eq!(story.hear(Event::Woke), [""; 0]);
}

#[test]
fn third_run_reuses_calls_of_first_two() {
    let mut story = ChainStory::new(&["allow *"]);
    story.start("a", "s", same);
    story.hear(wait(vec![write(0, r#"{"n":1}"#)]));
    story.hear(replies(1, "1"));
    story.hear(throws("x", None));
    story.start("b", "t", same);
    story.hear(wait(vec![write(0, r#"{"n":1}"#)]));
    story.hear(wait(vec![write(1, r#"{"n":2}"#)]));
    story.hear(replies(2, "2"));
    // The second run crashes, so the third one continues it.
    assert!(story.start("c", "t", same));
    assert_eq!(
        story.hear(wait(vec![write(0, r#"{"n":1}"#)])),
        ["resume @2 0=1"]
    );
    let heard = story.hear(wait(vec![write(1, r#"{"n":2}"#)]));
    assert_eq!(heard.len(), 1);
    assert!(heard[0].ends_with(" 1=2"), "{heard:?}");
    story.hear(returns("1"));
    let from: Vec<_> = story
        .kinds()
        .into_iter()
        .filter(|it| it.starts_with("reused"))
        .collect();
    assert_eq!(from, ["reused 1 from a:1", "reused 2 from b:2"]);
}

#[test]
fn sleeps_between_recorded_outcomes_cost_nothing() {
    let mut story = ChainStory::new(&["allow *"]);
    story.start("a", "s", same);
    story.hear(waits(&[(0, 1)]));
    story.hear(replies(1, "1"));
    story.hear(sleeps_until(5_000));
    story.at_ms += 5_000;
    story.hear(Event::Woke);
    story.hear(throws("x", None));
    story.at_ms += LATER;
    story.start("b", "t", same);
    assert_eq!(story.hear(waits(&[(0, 1)])), ["resume @2 0=1"]);
    assert_eq!(story.hear(sleeps_until(5_000)), ["resume @5000"]);
    // The first call that is not recorded shows the host's time.
    story.hear(waits(&[(1, 0)]));
    let heard = story.hear(replies(2, "2"));
    assert_eq!(heard, [format!("resume @{} 1=2", story.at_ms - T0)]);
}

#[test]
fn forged_predecessor_is_refused() {
    let mut story = ChainStory::new(&["allow *"]);
    story.start("a", "s", same);
    story.hear(waits(&[(0, 1)]));
    story.start("b", "s", same);
    story.close();
    let request = ResumeRequest {
        script: Digest::sha256(b"s"),
        input: Digest::sha256(b""),
        guest: Digest::sha256(b"g"),
        reads_max_age_ms: 0,
    };
    assert!(plan(&story.chain, &story.journals, request).is_ok());
    // A journal that the chain does not expect there.
    let swapped = [story.journals[1].clone(), story.journals[0].clone()];
    assert!(plan(&story.chain, &swapped, request).is_err());
    // A journal with another end than the one that was resumed.
    let mut cut = story.journals.clone();
    cut[0].head = Some(Digest::sha256(b"x"));
    assert!(plan(&story.chain, &cut, request).is_err());
    let lone = RunChain::new(RunId("b".into()));
    assert!(plan(&lone, &story.journals[1..], request).is_err());
}
