//! The queue of promise jobs. It runs one job at a time, and only when asked,
//! so that the order of everything is the order of the host's words.

use std::rc::Rc;
use std::task::{Context as TaskContext, Poll, Waker};
use std::{cell::RefCell, future::Future, pin::pin};

use boa_engine::job::{Job, JobExecutor};
use boa_engine::{Context, JsNativeError, JsResult};

use crate::room;
use crate::run::Run;

pub(crate) struct Jobs(pub(crate) Rc<Run>);

impl JobExecutor for Jobs {
    fn enqueue_job(self: Rc<Self>, job: Job, _context: &mut Context) {
        self.0.jobs.borrow_mut().push_back(job);
    }

    fn run_jobs(self: Rc<Self>, context: &mut Context) -> JsResult<()> {
        drain(&self.0, context)
    }
}

/// Runs jobs until none is left. Whoever stops the guest from outside stops
/// this loop as well.
pub(crate) fn drain(run: &Run, context: &mut Context) -> JsResult<()> {
    loop {
        let Some(job) = run.jobs.borrow_mut().pop_front() else {
            return Ok(());
        };
        room::sweep_when_full();
        perform(job, context)?;
    }
}

fn perform(job: Job, context: &mut Context) -> JsResult<()> {
    match job {
        Job::PromiseJob(job) => job.call(context).map(drop),
        Job::GenericJob(job) => job.call(context).map(drop),
        Job::AsyncJob(job) => {
            // Only the refusal of an import comes this way, and that is ready at once.
            let context = RefCell::new(context);
            let future = pin!(job.call(&context));
            match future.poll(&mut TaskContext::from_waker(Waker::noop())) {
                Poll::Ready(done) => done.map(drop),
                Poll::Pending => Err(JsNativeError::error()
                    .with_message("an engine job waits for something that never comes")
                    .into()),
            }
        }
        // Timers are our own, and what became unreachable is nobody's business.
        _ => Ok(()),
    }
}
