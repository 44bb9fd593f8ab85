//! The loop of a run: performs effects and waits for events. A run has one thread. The guest's
//! steps and the in-process tools run on this thread, and everything else is awaited.

mod effect_runner;
mod events;
mod inquiries;
mod journal_writer;
mod redact;

use airlock_core::report::Report;
use airlock_core::run::{Run, RunSpec};

pub(crate) use effect_runner::EffectRunner;
pub(crate) use journal_writer::JournalWriter;

/// Drives a run to its end. The journal is returned still open, so that it counts as being written
/// until its end is signed.
pub(crate) async fn drive(spec: RunSpec, mut runner: EffectRunner<'_>) -> (Report, JournalWriter) {
    let (mut run, mut effects) = Run::start(spec, runner.now_ms());
    loop {
        runner.note_reached(&run);
        if let Some(report) = runner.perform(effects, &run).await {
            return (report, runner.into_journal());
        }
        let events = runner.wait().await;
        effects = run.handle_all(runner.now_ms(), events);
    }
}
