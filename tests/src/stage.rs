//! Runs hostile scripts with a broker in this process and tools that record their calls. Returns
//! the report and the journal, and measures the memory, files and threads that a run leaves behind.

mod person;
mod scene;
mod tools;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use airlock::core::flow::SessionFlow;
use airlock::core::id::RunId;
use airlock::core::labels::Label;
use airlock::core::limits::Limits;
use airlock::core::report::Report;
use airlock::core::run::Fsync;
use airlock::secrets::Secrets;
use airlock::{Broker, Builder, CheckPolicy, RunHandle, Script};
use anyhow::{Context, Result};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::binary::workspace;
use crate::case_file::{Attack, CaseFile};
use crate::engine::engine;
use crate::vitals::{Vitals, settled_back};
use scene::Scene;

/// Part of every planted credential. No part may ever appear in output.
pub const CANARY: &str = "airlock-canary";

/// Maximum memory that a run may leave behind in its process.
pub const KEPT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// A call that reached a tool.
#[derive(Debug, Clone)]
pub struct ReachedCall {
    pub tool: &'static str,
    pub args: Value,
    /// Whether the journal contained the decision when the call arrived; `None` if this was not
    /// checked.
    pub was_recorded: Option<bool>,
}

/// All results of one run.
#[derive(Debug)]
pub struct RunOutcome {
    pub report: Value,
    /// The journal file's text.
    pub journal: String,
    pub wall: Duration,
    /// An error if the process kept resources that it did not have before the run.
    pub kept: Result<(), String>,
    /// The questions shown to the approver, including questions of earlier runs.
    pub shown: Vec<String>,
}

/// Calls that the tools record and the checks read.
#[derive(Debug, Default)]
pub struct Log {
    reached: Mutex<Vec<ReachedCall>>,
    in_flight: AtomicU64,
    /// The folder of the only run's journal, if there is exactly one run.
    look_into: Mutex<Option<PathBuf>>,
}

impl Log {
    pub fn take(&self) -> Vec<ReachedCall> {
        std::mem::take(&mut self.reached.lock().expect("the lock of the log"))
    }

    #[must_use]
    pub fn count(&self) -> usize {
        self.reached.lock().expect("the lock of the log").len()
    }

    fn look_into(&self, folder: Option<PathBuf>) {
        *self.look_into.lock().expect("the lock of the log") = folder;
    }

    fn note(&self, tool: &'static str, args: &Value) {
        /// Number of calls after which the journal is no longer read at each call. Reading it at
        /// ten thousand calls would take too long.
        const LOOKS_MAX: usize = 100;
        let mut reached = self.reached.lock().expect("the lock of the log");
        let folder = self.look_into.lock().expect("the lock of the log").clone();
        let was_recorded = folder.filter(|_| reached.len() < LOOKS_MAX).map(|folder| {
            let text = newest_journal(&folder)
                .and_then(|path| std::fs::read_to_string(path).ok())
                .unwrap_or_default();
            decided_calls(&text, tool, args)
                > reached
                    .iter()
                    .filter(|it| it.tool == tool && it.args == *args)
                    .count()
        });
        reached.push(ReachedCall {
            tool,
            args: args.clone(),
            was_recorded,
        });
    }
}

/// Counts the allowed calls of this tool with these arguments in a journal.
fn decided_calls(journal: &str, tool: &str, args: &Value) -> usize {
    let lines = journal
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let decided = lines.filter(|line| line["kind"] == "decided" && line["decision"] == "allow");
    decided
        .filter(|line| tool_name(line) == tool && &line["args"] == args)
        .count()
}

/// Returns `server.tool` of a journal line.
#[must_use]
pub fn tool_name(line: &Value) -> String {
    match &line["tool"] {
        Value::String(name) => name.clone(),
        parts => format!(
            "{}.{}",
            parts["server"].as_str().unwrap_or_default(),
            parts["tool"].as_str().unwrap_or_default()
        ),
    }
}

fn newest_journal(folder: &Path) -> Option<PathBuf> {
    std::fs::read_dir(folder)
        .ok()?
        .flatten()
        .map(|entry| entry.path())
        .max()
}

/// A broker with the tools of the case files.
#[derive(Debug)]
pub struct Stage {
    pub log: Arc<Log>,
    broker: Broker,
    /// A broker with the same tools under the shipped policies; no question is answered.
    watched: Broker,
    runtime: Runtime,
    state: TempDir,
}

/// A run in progress.
#[derive(Debug)]
pub struct RunningScene {
    scene: Arc<Scene>,
    running: RunHandle,
    since: Instant,
}

impl RunningScene {
    /// Cancels the run from outside.
    pub fn cancel(&self) {
        self.running
            .cancel_handle()
            .cancel("the test cancels the run");
    }
}

impl Stage {
    pub fn new() -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            // Threads that wrote the use of a grant end soon, so that they do not count as threads
            // of the run.
            .thread_keep_alive(Duration::from_millis(20))
            .enable_all()
            .build()?;
        let log = Arc::new(Log::default());
        let state = TempDir::with_prefix("airlock-stage-")?;
        let plain = Broker::builder().allow("*.*")?.deny("box.forbidden")?;
        let policies = workspace().join("policies");
        let watched = Broker::builder().config(scene::watched_config(state.path(), &policies)?);
        let [broker, watched] = [plain, watched].map(|builder| {
            let builder = builder
                .engine(engine())
                .state_dir(state.path())
                .fsync(Fsync::Never)
                .secrets(secrets());
            let all = tools::all(&log, "").into_iter();
            runtime.block_on(all.fold(builder, Builder::tool).build())
        });
        Ok(Self {
            log,
            broker: broker?,
            watched: watched?,
            runtime,
            state,
        })
    }

    /// Returns the error for a policy folder with this fault.
    pub fn refusal(&self, attack: Attack) -> Result<String> {
        scene::refusal(self, attack)
    }

    /// Runs one case alone. Measures memory, files and threads before and after the run.
    pub fn play(&self, case: &CaseFile) -> Result<RunOutcome> {
        // If the case has its own broker, the broker exists during both measurements.
        let scene = Arc::new(Scene::new(self, case)?);
        let before = Vitals::now();
        self.log.look_into(Some(scene.runs_dir.clone()));
        let ended = self
            .begin_in(&scene, case)
            .map(|playing| self.wait(playing));
        self.log.look_into(None);
        let (report, wall) = ended?;
        // Measured before the journal is read, because that takes memory of the test.
        let kept_max = case.kept_mib_max.map_or(KEPT_BYTES_MAX, |mib| mib << 20);
        let kept = settled_back(before, kept_max);
        Ok(RunOutcome {
            kept,
            ..collect(&scene, report, wall)?
        })
    }

    pub fn begin(&self, case: &CaseFile) -> Result<RunningScene> {
        self.begin_in(&Arc::new(Scene::new(self, case)?), case)
    }

    fn begin_in(&self, scene: &Arc<Scene>, case: &CaseFile) -> Result<RunningScene> {
        let script = Script::body(scene.script.clone())
            .named(format!("{}.js", case.name))
            .with_input(&json!({"from": "the host"}))
            .with_limits(limits(case)?);
        let labels: Result<_, _> = case.session.iter().map(|it| Label::parse(it)).collect();
        let script = match case.policies && !case.asking.is_there() {
            true => script.carrying(SessionFlow {
                labels: labels?,
                ..SessionFlow::default()
            }),
            false => script,
        };
        let script = if case.check_warns {
            script.with_check(CheckPolicy::Warn)
        } else {
            script
        };
        let script = match case.seed {
            Some(seed) => script.with_seed(seed),
            None => script,
        };
        let since = Instant::now();
        Ok(RunningScene {
            running: scene.broker.run(script),
            scene: Arc::clone(scene),
            since,
        })
    }

    /// Returns the folder of the journals.
    #[must_use]
    pub fn runs_dir(&self) -> PathBuf {
        self.state.path().join("runs")
    }

    pub fn finish(&self, playing: RunningScene) -> Result<RunOutcome> {
        let scene = Arc::clone(&playing.scene);
        let (report, wall) = self.wait(playing);
        collect(&scene, report, wall)
    }

    fn wait(&self, playing: RunningScene) -> (Report, Duration) {
        let report = self.runtime.block_on(playing.running.report());
        (report, playing.since.elapsed())
    }

    /// Returns the same case with more time, for a machine that is slower by this factor.
    pub fn slower(&self, case: &CaseFile, times: u32) -> Result<CaseFile> {
        let (mut case, limits) = (case.clone(), limits(case)?);
        for (limit, ms) in [
            ("run_wall_ms_max", limits.run_wall_ms_max),
            ("guest_cpu_ms_max", limits.guest_cpu_ms_max),
        ] {
            let ms = ms.saturating_mul(u64::from(times));
            case.limits.insert(limit.into(), ms.into());
        }
        Ok(case)
    }

    pub fn deadline_ms(&self, case: &CaseFile) -> Result<u64> {
        Ok(limits(case)?.run_wall_ms_max)
    }

    /// Runs a script with a known result, which must not depend on earlier runs.
    pub fn reference(&self) -> Result<()> {
        let played = self
            .begin(&self.reference_case())
            .and_then(|playing| self.finish(playing))?;
        self.log.take();
        self.is_reference(&played)
    }

    /// Returns the script of [`Self::reference`] with enough time to run at the same time as other
    /// tests.
    #[must_use]
    pub fn reference_case(&self) -> CaseFile {
        let limits = ["run_wall_ms_max", "guest_cpu_ms_max"];
        CaseFile {
            name: "reference".into(),
            script: REFERENCE.into(),
            limits: limits
                .map(|it| (it.to_owned(), json!(600_000)))
                .into_iter()
                .collect(),
            ..CaseFile::default()
        }
    }

    pub fn is_reference(&self, played: &RunOutcome) -> Result<()> {
        let expected = json!({
            "echo": {"n": [1, "two", null, {"three": 3.5}]},
            "code": "tool-failed",
            "text": "1970-01-01T00:00:00.000Z a-b-c [1,2] 6",
            "order": ["sync", "micro", "timer"],
        });
        let report = &played.report;
        anyhow::ensure!(
            report["value"] == expected,
            "the reference run returned {} {}",
            report["value"],
            report["error"]
        );
        Ok(())
    }
}

fn collect(scene: &Scene, report: Report, wall: Duration) -> Result<RunOutcome> {
    let path = scene
        .broker
        .journal_path(&RunId(report.run.as_str().into()));
    let journal = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    // Thousands of journals would fill the disk.
    std::fs::remove_file(&path)?;
    Ok(RunOutcome {
        report: serde_json::to_value(report)?,
        journal,
        wall,
        kept: Ok(()),
        shown: scene
            .person
            .iter()
            .flat_map(|person| person.shown())
            .collect(),
    })
}

fn secrets() -> Secrets {
    Secrets::new([format!("{CANARY}-configured")])
}

const REFERENCE: &str = r#"
const echo = await box.echo({ n: [1, "two", null, { three: 3.5 }] });
const code = await box.fail({}).catch((e) => e.code);
const order = ["sync"];
setTimeout(() => order.push("timer"), 1);
queueMicrotask(() => order.push("micro"));
await new Promise((wake) => setTimeout(wake, 2));
const text = [new Date(0).toISOString(), "a b c".replace(/ /g, "-"), JSON.stringify([1, 2]), [1, 2, 3].reduce((a, b) => a + b)].join(" ");
return { echo, code, text, order };
"#;

/// Returns the limits of a case: small unless its header overrides them, so that a few hundred
/// cases are quick.
fn limits(case: &CaseFile) -> Result<Limits> {
    let small = Limits {
        run_wall_ms_max: 2_000,
        guest_cpu_ms_max: 1_000,
        guest_memory_bytes_max: 64 * 1024 * 1024,
        ..Limits::default()
    };
    let mut fields: Map<String, Value> = serde_json::from_value(serde_json::to_value(small)?)?;
    fields.extend(case.limits.clone());
    serde_json::from_value(fields.into()).with_context(|| format!("limits of {}", case.name))
}
