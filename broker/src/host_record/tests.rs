//! Tests of records: what survives restarts, kills, losses and time, and random sequences of all of
//! these.

use airlock_core::labels::Label;

use super::*;
use crate::journal_file::JournalFile;
use crate::tempdir::TempDir;

const START_MS: u64 = 1_000_000;
const IDLE_MS: u64 = 10_000;

fn labels(words: &[&str]) -> Labels {
    let labels = words.iter().map(|word| Label::parse(word).unwrap());
    labels.collect()
}

/// Every label that the configuration of these tests knows.
fn worst() -> Labels {
    labels(&["untrusted", "private:mail", "private:notes"])
}

fn flow(labels: &Labels) -> SessionFlow {
    SessionFlow {
        labels: labels.clone(),
        ..SessionFlow::default()
    }
}

fn change(words: &[&str]) -> SessionChange {
    SessionChange {
        labels: labels(words),
        ..SessionChange::default()
    }
}

struct Place {
    scratch: TempDir,
    records: HostRecords,
}

impl Place {
    fn new() -> Self {
        Self::keeping(IDLE_MS)
    }

    fn keeping(keep_ms: u64) -> Self {
        let scratch = TempDir::new();
        let records = HostRecords::new(
            StateDir::open(scratch.path().to_owned()).unwrap(),
            times(keep_ms),
        );
        Self { scratch, records }
    }

    fn session(&self, caller: &str, name: &str) -> HostRecord {
        let id = HostSessionId::new(CallerKey::of_client(caller), name);
        self.records.record(id)
    }

    fn opened(&self, record: &HostRecord, now_ms: u64) -> Labels {
        let state = self.records.open(record, now_ms).unwrap();
        state.flow(&worst()).labels
    }

    fn reopened(&self, record: &HostRecord, now_ms: u64) -> Labels {
        let state = self.records.reopen(record, false, now_ms).unwrap();
        state.unwrap().flow(&worst()).labels
    }

    /// Begins a run whose process is alive until the journal is dropped.
    fn run(&self, record: &HostRecord, run: &str, now_ms: u64) -> JournalFile {
        let run = RunId(run.into());
        let journal = StateDir::open(self.scratch.path().to_owned()).unwrap();
        let journal = journal.create(&run).unwrap();
        record.begin_run(&run, now_ms).unwrap();
        journal
    }
}

fn times(keep_ms: u64) -> RecordTimes {
    RecordTimes {
        idle: Duration::from_millis(IDLE_MS),
        labels_keep: Duration::from_millis(keep_ms),
    }
}

fn lose(file: &SharedFile) {
    let _ = std::fs::remove_file(file.path());
}

/// Writes the records of many sessions of many clients, of which each has its most sessions.
pub(crate) fn write_sessions(state: &StateDir, count: usize, now_ms: u64) {
    let write = |file: &SharedFile, state: &SharedState| {
        make_private(file.folder()).unwrap();
        std::fs::write(file.path(), state.to_text().unwrap()).unwrap();
    };
    for first in (0..count).step_by(SESSIONS_OF_ONE_MAX) {
        let caller = CallerKey::of_client(&format!("other {first}"));
        let mut of_caller = SharedState::new(Scope::Session, caller.to_string());
        of_caller.used_at_ms = now_ms;
        of_caller.carried = flow(&worst());
        for number in first..count.min(first + SESSIONS_OF_ONE_MAX) {
            let name = format!("s{number}");
            of_caller.sessions.insert(name.clone(), now_ms);
            let record = HostRecord::new(state, HostSessionId::new(caller.clone(), &name));
            let mut session = SharedState::new(Scope::Session, record.id.to_string());
            session.carried = flow(&worst());
            write(&record.session, &session);
        }
        let record = HostRecord::new(state, HostSessionId::shared(caller));
        write(&record.caller, &of_caller);
    }
}

#[test]
fn id_of_session_parses_back_and_others_are_refused() {
    for caller in [
        CallerKey::of_client("a host"),
        CallerKey::of_token(),
        CallerKey::of_subject("ada"),
        CallerKey::of_other_clients(),
    ] {
        let id = HostSessionId::new(caller, "0a1b");
        assert_eq!(HostSessionId::parse(&id.to_string()), Some(id));
    }
    let key = CallerKey::of_token().key;
    for bad in [
        "",
        "-",
        "t-a",
        &format!("{key}-"),
        &format!("{key}-caller"),
        &format!("{key}-../x"),
        &format!("x{}-a", &key[1..]),
    ] {
        assert_eq!(HostSessionId::parse(bad), None, "{bad}");
    }
    assert_ne!(CallerKey::of_client("a"), CallerKey::of_subject("a"));
}

#[test]
fn session_continues_with_labels_counts_and_grants() {
    let place = Place::new();
    let record = place.session("a", "1");
    assert_eq!(place.opened(&record, START_MS), Labels::default());
    let _journal = place.run(&record, "r", START_MS);
    let carried = SessionFlow {
        bytes: 7,
        ..flow(&labels(&["private:mail"]))
    };
    record
        .end_run(&RunId("r".into()), &carried, START_MS)
        .unwrap();
    let again = HostRecords::new(
        StateDir::open(place.scratch.path().to_owned()).unwrap(),
        times(IDLE_MS),
    );
    let state = again.reopen(&record, true, START_MS + 1).unwrap().unwrap();
    assert_eq!(state.carried, carried);
    let other = place.session("a", "2");
    let state = again.open(&other, START_MS + 1).unwrap();
    assert_eq!(state.carried, flow(&labels(&["private:mail"])));
    let stranger = place.session("b", "1");
    assert_eq!(place.opened(&stranger, START_MS), Labels::default());
}

#[test]
fn counts_outlive_sessions_like_labels() {
    let place = Place::new();
    let tool = ToolId::parse("mail.send").unwrap();
    let carried = SessionFlow {
        calls: BTreeMap::from([(tool.clone(), 2)]),
        bytes: 7,
        ..SessionFlow::default()
    };
    let counts = |record: &HostRecord, run: &str, now_ms: u64| {
        let journal = place.run(record, run, now_ms);
        let run = RunId(run.into());
        let state = record.begin_run(&run, now_ms).unwrap().carried;
        record.end_run(&run, &carried, now_ms).unwrap();
        drop(journal);
        let calls = state.calls.get(&tool).copied().unwrap_or_default();
        (calls, state.bytes, state.counts_unknown)
    };
    let first = place.session("a", "1");
    place.opened(&first, START_MS);
    assert_eq!(counts(&first, "r1", START_MS), (0, 0, false));
    // A session that is open already, one after a reconnect, and one after an idle time.
    let second = place.session("a", "2");
    place.opened(&second, START_MS);
    assert_eq!(counts(&second, "r2", START_MS), (2, 7, false));
    assert_eq!(counts(&first, "r3", START_MS), (4, 14, false));
    place.records.end(&first, START_MS).unwrap();
    place.opened(&place.session("a", "3"), START_MS);
    assert_eq!(
        counts(&place.session("a", "3"), "r4", START_MS),
        (6, 21, false)
    );
    place.reopened(&second, START_MS + 2 * IDLE_MS - 1);
    assert_eq!(
        counts(&second, "r5", START_MS + 2 * IDLE_MS - 1),
        (8, 28, false)
    );
    let stranger = place.session("b", "1");
    place.opened(&stranger, START_MS);
    assert_eq!(counts(&stranger, "r6", START_MS), (0, 0, false));
    // A killed run may have made any number of calls, and a lost file had any number.
    drop(place.run(&stranger, "r7", START_MS));
    assert!(counts(&stranger, "r8", START_MS).2);
    lose(&second.caller);
    let now_ms = START_MS + 2 * IDLE_MS;
    assert!(counts(&second, "r9", now_ms).2);
    // They are forgotten with the labels.
    let late = place.session("b", "9");
    let late_ms = now_ms + 10 * IDLE_MS;
    place.opened(&late, late_ms);
    assert_eq!(counts(&late, "r10", late_ms), (0, 0, false));
}

#[test]
fn declassified_labels_return_in_no_session_of_the_caller() {
    let label = |word: &str| Label::parse(word).unwrap();
    let declassification = |counts: bool| Declassification {
        labels: vec![label("private"), label("untrusted")],
        counts,
        by: "Ann".into(),
        at_ms: START_MS,
    };
    let place = Place::new();
    let (killed, lost, other) = (
        place.session("a", "1"),
        place.session("a", "2"),
        place.session("b", "1"),
    );
    for record in [&killed, &lost, &other] {
        place.opened(record, START_MS);
        drop(place.run(record, &record.id().to_string(), START_MS));
    }
    lose(&lost.session);
    // The session alone: its caller may have read the same data in another session.
    let (before, after) = killed
        .declassify_session(declassification(false), START_MS)
        .unwrap();
    assert_eq!(before.flow(&worst()).labels, worst());
    assert!(after.flow(&worst()).labels.is_empty());
    assert!(place.reopened(&killed, START_MS).is_empty());
    assert_eq!(place.opened(&place.session("a", "3"), START_MS), worst());
    // The caller and all its sessions.
    let (before, after) = killed
        .declassify_caller(&declassification(true), START_MS)
        .unwrap();
    assert!(before.carried.counts_unknown && !after.carried.counts_unknown);
    let again = HostRecords::new(
        StateDir::open(place.scratch.path().to_owned()).unwrap(),
        times(IDLE_MS),
    );
    for name in ["1", "2", "3"] {
        let record = place.session("a", name);
        let state = again.reopen(&record, true, START_MS).unwrap().unwrap();
        assert!(state.flow(&worst()).labels.is_empty(), "{name}");
        assert_eq!(
            state.carried.declassified.last(),
            Some(&declassification(true))
        );
    }
    let state = again.open(&place.session("a", "4"), START_MS).unwrap();
    assert!(state.flow(&worst()).labels.is_empty());
    assert_eq!(
        state.carried.declassified.last(),
        Some(&declassification(true))
    );
    assert_eq!(place.reopened(&other, START_MS), worst());
    // What is read later has labels again.
    again
        .save(&lost, &change(&["untrusted"]), START_MS)
        .unwrap();
    assert_eq!(place.reopened(&lost, START_MS), labels(&["untrusted"]));
}

#[test]
fn killed_run_counts_as_worst_at_once_for_session_and_caller() {
    let place = Place::new();
    let record = place.session("a", "1");
    place.opened(&record, START_MS);
    let journal = place.run(&record, "r", START_MS);
    let other = place.session("a", "2");
    assert_eq!(
        place.opened(&other, START_MS),
        Labels::default(),
        "it still runs"
    );
    drop(journal);
    assert_eq!(place.opened(&place.session("a", "3"), START_MS), worst());
    let state = record.begin_run(&RunId("next".into()), START_MS).unwrap();
    assert_eq!(state.flow(&worst()).labels, worst());
}

#[test]
fn killed_run_whose_caller_file_is_lost_leaves_worst_labels() {
    let place = Place::new();
    let record = place.session("a", "1");
    place.opened(&record, START_MS);
    drop(place.run(&record, "r", START_MS));
    lose(&record.caller);
    assert_eq!(place.reopened(&record, START_MS), worst());
    let stored = record.session.load().unwrap();
    assert_eq!(stored.flow(&worst()).labels, worst());
    assert_eq!(place.opened(&place.session("a", "2"), START_MS), worst());
}

#[test]
fn lost_file_counts_as_worst_whichever_request_comes_next() {
    type Next = fn(&Place, &HostRecord);
    let nexts: [(&str, Next); 5] = [
        ("reopen", |place, record| {
            place.reopened(record, START_MS);
        }),
        ("save", |place, record| {
            place.records.save(record, &change(&[]), START_MS).unwrap();
        }),
        ("run", |place, record| {
            let _journal = place.run(record, "next", START_MS);
            let run = RunId("next".into());
            record.end_run(&run, &flow(&labels(&[])), START_MS).unwrap();
        }),
        ("grant", |_, record| {
            record.change_session(|_| ()).unwrap();
        }),
        ("nothing", |_, _| {}),
    ];
    for (next, act) in nexts {
        for is_session in [true, false] {
            let place = Place::new();
            let record = place.session("a", "1");
            place.opened(&record, START_MS);
            let read = change(&["untrusted"]);
            place.records.save(&record, &read, START_MS).unwrap();
            lose(if is_session {
                &record.session
            } else {
                &record.caller
            });
            act(&place, &record);
            assert_eq!(
                place.reopened(&record, START_MS),
                worst(),
                "{next} {is_session}"
            );
            let anew = place.opened(&place.session("a", "2"), START_MS);
            assert!(read.labels.is_within(&anew), "{next} {is_session}");
        }
    }
}

#[test]
fn sealed_id_without_any_record_counts_as_worst_and_ended_session_is_over() {
    let place = Place::new();
    let record = place.session("a", "1");
    let state = place.records.reopen(&record, true, START_MS).unwrap();
    assert_eq!(state.unwrap().flow(&worst()).labels, worst());
    place.records.end(&record, START_MS).unwrap();
    let over = place.records.reopen(&record, true, START_MS).unwrap();
    assert_eq!(over, None);
    // A host of the newer era continues: it may have the data of the ended session.
    assert_eq!(place.reopened(&record, START_MS), worst());
}

#[test]
fn labels_outlive_sessions_for_the_configured_time() {
    let place = Place::keeping(3 * IDLE_MS);
    let record = place.session("a", "1");
    place.opened(&record, START_MS);
    let read = change(&["untrusted"]);
    place.records.save(&record, &read, START_MS).unwrap();
    place.records.end(&record, START_MS).unwrap();
    for (later_ms, expected) in [(0, &read.labels), (3 * IDLE_MS, &read.labels)] {
        place.records.clean_up(START_MS + later_ms).unwrap();
        let anew = place.session("a", &format!("n{later_ms}"));
        assert_eq!(place.opened(&anew, START_MS + later_ms), *expected);
        place.records.end(&anew, START_MS + later_ms).unwrap();
    }
    let late_ms = START_MS + 10 * IDLE_MS;
    assert_eq!(
        place.opened(&place.session("a", "9"), late_ms),
        Labels::default()
    );
    place.records.clean_up(late_ms + 10 * IDLE_MS).unwrap();
    assert!(
        !record.caller.folder().exists(),
        "the folder of the caller is left"
    );
}

#[test]
fn session_that_was_idle_keeps_labels_and_loses_grants() {
    let place = Place::new();
    let record = place.session("a", "1");
    place.opened(&record, START_MS);
    let tool = ToolId::parse("a.b").unwrap();
    let read = SessionChange {
        disclosed: BTreeMap::from([(tool, Digest::sha256(b"d"))]),
        ..change(&["untrusted"])
    };
    place.records.save(&record, &read, START_MS).unwrap();
    let late_ms = START_MS + 2 * IDLE_MS;
    let state = place
        .records
        .reopen(&record, false, late_ms)
        .unwrap()
        .unwrap();
    assert_eq!(
        (state.carried.labels, state.disclosed.len()),
        (read.labels, 0)
    );
}

#[test]
fn surplus_sessions_and_clients_do_not_displace_others() {
    let place = Place::new();
    let victim = place.session("victim", "1");
    place.opened(&victim, START_MS);
    let read = change(&["untrusted"]);
    place.records.save(&victim, &read, START_MS).unwrap();
    for number in 0..SESSIONS_OF_ONE_MAX + 5 {
        place.opened(&place.session("flood", &format!("s{number}")), START_MS + 1);
    }
    let flood = place.session("flood", "s0");
    let listed = flood.caller.load().unwrap().sessions.len();
    assert_eq!(listed, SESSIONS_OF_ONE_MAX);
    let files = std::fs::read_dir(flood.caller.folder()).unwrap().count();
    assert_eq!(files, SESSIONS_OF_ONE_MAX + 1);
    assert_eq!(place.reopened(&victim, START_MS + 1), read.labels);
    let keys = (0..CLIENTS_MAX + 5).map(|it| CallerKey::of_client(&it.to_string()));
    let told_apart: HashSet<_> = keys.map(|key| place.records.admit(key)).collect();
    assert_eq!(told_apart.len(), CLIENTS_MAX + 1);
    assert!(told_apart.contains(&CallerKey::of_other_clients()));
}

#[test]
fn new_session_uses_no_file_of_another_caller() {
    let place = Place::new();
    for number in 0..20 {
        let other = place.session(&format!("other {number}"), "1");
        place.opened(&other, START_MS);
        // airlock finds a damaged file when it reads the file, and replaces it.
        std::fs::write(other.caller.path(), "{").unwrap();
    }
    place.opened(&place.session("a", "1"), START_MS);
    for number in 0..20 {
        let other = place.session(&format!("other {number}"), "1");
        assert_eq!(std::fs::read(other.caller.path()).unwrap(), b"{");
    }
}

#[test]
fn damaged_file_counts_as_lost() {
    let place = Place::new();
    let record = place.session("a", "1");
    place.opened(&record, START_MS);
    for file in [&record.session, &record.caller] {
        std::fs::write(file.path(), "{").unwrap();
        assert_eq!(place.reopened(&record, START_MS), worst());
        assert!(file.load().is_ok());
    }
}

/// A sequence of random events, and the labels that were read in it.
struct Sequence {
    place: Place,
    /// The records as a second process sees them.
    second: HostRecords,
    keep_ms: u64,
    now_ms: u64,
    random: u64,
    callers: Vec<ModelCaller>,
    sessions: Vec<ModelSession>,
    running: Vec<ModelRun>,
    number: u64,
    log: Vec<String>,
}

#[derive(Default)]
struct ModelCaller {
    /// Labels that a new session of the caller must start with.
    read: Labels,
    /// Labels that may have been read, if nothing was lost.
    most: Labels,
    used_at_ms: u64,
    has_lost: bool,
}

struct ModelSession {
    record: HostRecord,
    caller: usize,
    is_legacy: bool,
    is_shared: bool,
    read: Labels,
    used_at_ms: u64,
    is_over: bool,
    /// Whether the host still has an id or a handle that airlock accepts.
    has_handle: bool,
}

struct ModelRun {
    session: usize,
    id: RunId,
    labels: Labels,
    /// Whether both files that list the run were lost together.
    is_lost: bool,
    _journal: JournalFile,
}

impl Sequence {
    fn new(seed: u64) -> Self {
        let keep_ms = [0, IDLE_MS, 4 * IDLE_MS][(seed % 3) as usize];
        let place = Place::keeping(keep_ms);
        let second = HostRecords::new(
            StateDir::open(place.scratch.path().to_owned()).unwrap(),
            times(keep_ms),
        );
        Self {
            place,
            second,
            keep_ms,
            now_ms: START_MS,
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            callers: vec![ModelCaller::default(), ModelCaller::default()],
            sessions: Vec::new(),
            running: Vec::new(),
            number: 0,
            log: Vec::new(),
        }
    }

    /// Returns a random number below `end`.
    fn below(&mut self, end: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random % end.max(1) as u64) as usize
    }

    fn label(&mut self) -> Labels {
        let words = ["untrusted", "private", "private:mail", "private:notes"];
        labels(&[words[self.below(words.len())]])
    }

    fn records(&mut self) -> &HostRecords {
        match self.below(2) {
            0 => &self.place.records,
            _ => &self.second,
        }
    }

    /// Forgets labels whose time has passed.
    fn forget(&mut self) {
        let now_ms = self.now_ms;
        for (number, caller) in self.callers.iter_mut().enumerate() {
            let mut own = self.sessions.iter().filter(|it| it.caller == number);
            let is_live = |it: &ModelSession| !it.is_over && now_ms - it.used_at_ms <= IDLE_MS;
            let known = self.running.iter().filter(|run| !run.is_lost);
            let runs = known.map(|run| &self.sessions[run.session]);
            let is_kept = now_ms - caller.used_at_ms <= self.keep_ms
                || own.any(is_live)
                || runs.into_iter().any(|it| it.caller == number);
            if !is_kept {
                caller.read = Labels::default();
            }
        }
        let forgotten: Vec<_> = self.callers.iter().map(|it| it.read.is_empty()).collect();
        let shared = self.sessions.iter_mut().filter(|it| it.is_shared);
        for session in shared.filter(|it| now_ms - it.used_at_ms > IDLE_MS) {
            if forgotten[session.caller] {
                session.read = Labels::default();
            }
        }
    }

    fn use_session(&mut self, session: usize) {
        let session = &mut self.sessions[session];
        session.used_at_ms = self.now_ms;
        self.callers[session.caller].used_at_ms = self.now_ms;
    }

    fn read(&mut self, session: usize, labels: &Labels) {
        self.sessions[session].read.join(labels);
        let caller = &mut self.callers[self.sessions[session].caller];
        caller.read.join(labels);
        caller.most.join(labels);
    }

    fn check(&self, what: &str, caller: usize, expected: &Labels, state: &SharedState) {
        let found = state.flow(&worst()).labels;
        assert!(
            expected.is_within(&found),
            "{what}: read {expected:?}, found {found:?}\n{}",
            self.log.join("\n")
        );
        let caller = &self.callers[caller];
        assert!(
            caller.has_lost || found.is_within(&caller.most),
            "{what}: labels of another caller: {found:?}\n{}",
            self.log.join("\n")
        );
    }

    fn begin_session(&mut self) {
        let caller = self.below(self.callers.len());
        self.number += 1;
        let name = self.number.to_string();
        let record = self.place.session(&caller.to_string(), &name);
        let is_legacy = self.below(2) == 0;
        let (now_ms, expected) = (self.now_ms, self.callers[caller].read.clone());
        let state = self.records().open(&record, now_ms).unwrap();
        self.check("new session", caller, &expected, &state);
        self.sessions.push(ModelSession {
            record,
            caller,
            is_legacy,
            is_shared: false,
            read: expected,
            used_at_ms: now_ms,
            is_over: false,
            has_handle: true,
        });
        self.use_session(self.sessions.len() - 1);
    }

    /// A request of the newer era without a handle.
    fn open_shared(&mut self) {
        let caller = self.below(self.callers.len());
        let known = |it: &ModelSession| it.is_shared && it.caller == caller;
        let at = self.sessions.iter().position(known);
        let record = self.place.session(&caller.to_string(), "shared");
        let expected = match at {
            Some(at) => self.sessions[at].read.clone(),
            None => self.callers[caller].read.clone(),
        };
        let now_ms = self.now_ms;
        let state = self.records().open(&record, now_ms).unwrap();
        self.check("shared session", caller, &expected, &state);
        let at = at.unwrap_or_else(|| {
            self.sessions.push(ModelSession {
                record,
                caller,
                is_legacy: false,
                is_shared: true,
                read: expected,
                used_at_ms: now_ms,
                is_over: false,
                has_handle: true,
            });
            self.sessions.len() - 1
        });
        self.use_session(at);
    }

    /// Returns a session that a host can still use, after a request that opened it.
    fn reopened(&mut self) -> Option<usize> {
        if self.sessions.is_empty() {
            return None;
        }
        let at = self.below(self.sessions.len());
        let session = &self.sessions[at];
        if session.is_over || !session.has_handle {
            return None;
        }
        let (record, is_legacy) = (session.record.clone(), session.is_legacy);
        let (caller, expected) = (session.caller, session.read.clone());
        let now_ms = self.now_ms;
        match self.records().reopen(&record, is_legacy, now_ms).unwrap() {
            Some(state) => {
                if state.read_unknown {
                    self.callers[caller].has_lost = true;
                }
                self.check("session", caller, &expected, &state);
                self.use_session(at);
                Some(at)
            }
            None => {
                assert!(is_legacy);
                self.sessions[at].is_over = true;
                None
            }
        }
    }

    fn begin_run(&mut self) {
        let Some(session) = self.reopened() else {
            return;
        };
        self.number += 1;
        let id = RunId(format!("r{}", self.number).into());
        let record = self.sessions[session].record.clone();
        let journal = StateDir::open(self.place.scratch.path().to_owned()).unwrap();
        let journal = journal.create(&id).unwrap();
        let state = record.begin_run(&id, self.now_ms).unwrap();
        let expected = self.sessions[session].read.clone();
        let caller = self.sessions[session].caller;
        self.check("run", caller, &expected, &state);
        let labels = state.flow(&worst()).labels.joined(&self.label());
        self.running.push(ModelRun {
            session,
            id,
            labels,
            is_lost: false,
            _journal: journal,
        });
    }

    fn end_run(&mut self) {
        if self.running.is_empty() {
            return;
        }
        let at = self.below(self.running.len());
        let run = self.running.remove(at);
        let record = self.sessions[run.session].record.clone();
        record
            .end_run(&run.id, &flow(&run.labels), self.now_ms)
            .unwrap();
        self.callers[self.sessions[run.session].caller].used_at_ms = self.now_ms;
        self.read(run.session, &run.labels);
    }

    /// The process is killed. What its runs have read may be in the model's context.
    fn kill(&mut self) {
        for run in std::mem::take(&mut self.running) {
            let caller = self.sessions[run.session].caller;
            self.callers[caller].has_lost = true;
            if !run.is_lost {
                self.callers[caller].used_at_ms = self.now_ms;
                self.read(run.session, &run.labels);
            }
            let id = run.id.clone();
            drop(run);
            // A process that another test is just starting has a copy of the journal's lock.
            let state = StateDir::open(self.place.scratch.path().to_owned()).unwrap();
            while state.is_running(&id) {
                std::thread::yield_now();
            }
        }
    }

    fn lose(&mut self, is_session: bool, is_damage: bool) {
        if self.sessions.is_empty() {
            return;
        }
        let at = self.below(self.sessions.len());
        let session = &self.sessions[at];
        let record = &session.record;
        let file = if is_session {
            &record.session
        } else {
            &record.caller
        };
        self.callers[session.caller].has_lost = true;
        if is_damage && file.path().exists() {
            std::fs::write(file.path(), "{\"digest\"").unwrap();
        } else {
            lose(file);
        }
        for run in &mut self.running {
            let record = &self.sessions[run.session].record;
            let is_lost = |file: &SharedFile| file.load_intact().unwrap().is_none();
            run.is_lost |= is_lost(&record.session) && is_lost(&record.caller);
        }
    }

    fn step(&mut self) {
        self.forget();
        let event = self.below(17);
        self.log
            .push(format!("{event} at {}", self.now_ms - START_MS));
        match event {
            0 | 1 => self.begin_session(),
            2 | 3 => self.open_shared(),
            4..=6 => self.begin_run(),
            7 | 8 => self.end_run(),
            9 => {
                if let Some(session) = self.reopened() {
                    let read = self.label();
                    let change = SessionChange {
                        labels: read.clone(),
                        ..SessionChange::default()
                    };
                    let (record, now_ms) = (self.sessions[session].record.clone(), self.now_ms);
                    self.records().save(&record, &change, now_ms).unwrap();
                    self.read(session, &read);
                }
            }
            10 => self.kill(),
            11 => {
                let state = StateDir::open(self.place.scratch.path().to_owned()).unwrap();
                self.place.records = HostRecords::new(state, times(self.keep_ms));
            }
            12 => {
                if let Some(session) = self.reopened().filter(|it| self.sessions[*it].is_legacy) {
                    let (record, now_ms) = (self.sessions[session].record.clone(), self.now_ms);
                    self.records().end(&record, now_ms).unwrap();
                    self.sessions[session].is_over = true;
                }
            }
            13 => self.now_ms += self.below(3 * IDLE_MS as usize) as u64,
            14 => {
                let now_ms = self.now_ms;
                self.records().clean_up(now_ms).unwrap();
            }
            15 => {
                let (is_session, is_damage) = (self.below(2) == 0, self.below(3) == 0);
                self.lose(is_session, is_damage);
            }
            // The key is lost, so airlock accepts no handle.
            _ => {
                for session in self.sessions.iter_mut().filter(|it| !it.is_shared) {
                    session.has_handle = false;
                }
            }
        }
    }
}

/// Plays random sequences: `AIRLOCK_SEQUENCES` of them, or 150.
#[test]
fn no_sequence_ends_with_fewer_labels_than_were_read() {
    let count = std::env::var("AIRLOCK_SEQUENCES").ok();
    let count = count.map_or(150, |it| it.parse().unwrap());
    for seed in 0..count {
        let mut sequence = Sequence::new(seed);
        sequence.log.push(format!("seed {seed}"));
        for _ in 0..24 {
            sequence.step();
        }
        // At the end, all sessions are opened once more.
        sequence.forget();
        for _ in 0..4 {
            sequence.begin_session();
            sequence.open_shared();
            sequence.reopened();
        }
    }
}
