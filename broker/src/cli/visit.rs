//! For commands that look at what servers offer and run nothing: connect, tell of
//! what cannot be used, look, and leave.

use airlock_core::problem::Problem;

use super::run::build_problem;
use super::runtime;
use super::screen::Screen;
use crate::broker::{Broker, Builder};

/// What `look` answers of a broker that has connected, and that is closed behind it.
pub(super) fn visit<T>(
    builder: Builder,
    screen: &Screen,
    look: impl AsyncFnOnce(&Broker) -> T,
) -> Result<T, Problem> {
    runtime()?.block_on(async {
        let broker = builder.build().await.map_err(build_problem)?;
        let mut problems = broker.problems();
        problems.extend(broker.unusable_tools());
        let told = problems.iter().filter(|it| !is_about_runs(it));
        told.for_each(|it| screen.warning(it));
        let seen = look(&broker).await;
        broker.close().await;
        Ok(seen)
    })
}

/// Only runs have to do with rules that fit no tool, and with the names that scripts have for
/// tools.
pub(super) fn is_about_runs(problem: &Problem) -> bool {
    matches!(&*problem.code, "rule-unmatched" | "tool-renamed")
}
