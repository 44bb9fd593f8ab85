//! The loop: perform effects, wait for events. A run has one thread; the guest's
//! steps and the in-process tools run on it, everything else is waited for.

mod hands;
mod hear;
mod inquiries;
mod record;
mod strike;

use airlock_core::report::Report;
use airlock_core::run::{Run, RunSpec};

pub(crate) use hands::Hands;
pub(crate) use record::Record;

pub(crate) async fn drive(spec: RunSpec, mut hands: Hands<'_>) -> Report {
    let (mut run, mut effects) = Run::start(spec, hands.now_ms());
    loop {
        hands.note_reached(&run);
        if let Some(report) = hands.perform(effects, &run).await {
            return report;
        }
        let events = hands.wait().await;
        effects = run.handle_all(hands.now_ms(), events);
    }
}
