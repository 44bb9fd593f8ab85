//! Connects to servers for commands that only read tool descriptions: connects, reports unusable
//! tools, reads, and disconnects.

use airlock_core::problem::Problem;

use super::run::build_problem;
use super::runtime;
use super::screen::Screen;
use crate::broker::{Broker, Builder};

/// Connects, returns the result of `look`, and closes the broker.
pub(super) fn visit<T>(
    builder: Builder,
    screen: &Screen,
    look: impl AsyncFnOnce(&Broker) -> T,
) -> Result<T, Problem> {
    runtime()?.block_on(async {
        let broker = builder.build().await.map_err(build_problem)?;
        let mut problems = broker.problems();
        problems.extend(broker.unusable_tools());
        let of_servers = problems.iter().filter(|it| !is_about_runs(it));
        of_servers.for_each(|it| screen.warning(it));
        let seen = look(&broker).await;
        broker.close().await;
        Ok(seen)
    })
}

/// Whether a problem matters only for runs: a rule that decides no call, or a tool that has another
/// name in scripts.
pub(super) fn is_about_runs(problem: &Problem) -> bool {
    matches!(
        &*problem.code,
        "rule-unmatched" | "pattern-unmatched" | "pattern-overruled" | "tool-renamed"
    )
}
