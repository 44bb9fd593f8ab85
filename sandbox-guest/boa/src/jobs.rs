//! The queue of promise jobs. It runs one job at a time, and only on request, so that the order of
//! all jobs follows the order of the host's messages.

use std::rc::Rc;
use std::task::{Context as TaskContext, Poll, Waker};
use std::{cell::RefCell, future::Future, pin::pin};

use boa_engine::job::{Job, JobExecutor};
use boa_engine::{Context, JsNativeError, JsResult};

use crate::gc_budget;
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

/// Runs jobs until the queue is empty. If the host stops the guest, this loop stops too.
pub(crate) fn drain(run: &Run, context: &mut Context) -> JsResult<()> {
    loop {
        let Some(job) = run.jobs.borrow_mut().pop_front() else {
            return Ok(());
        };
        gc_budget::sweep_when_full();
        perform(job, context)?;
    }
}

fn perform(job: Job, context: &mut Context) -> JsResult<()> {
    match job {
        Job::PromiseJob(job) => job.call(context).map(drop),
        Job::GenericJob(job) => job.call(context).map(drop),
        Job::AsyncJob(job) => {
            // Only the refusal of an import is such a job, and it completes at once.
            let context = RefCell::new(context);
            let future = pin!(job.call(&context));
            match future.poll(&mut TaskContext::from_waker(Waker::noop())) {
                Poll::Ready(done) => done.map(drop),
                Poll::Pending => Err(JsNativeError::error()
                    .with_message("an engine job never ends")
                    .into()),
            }
        }
        // The guest has its own timers, and finalisation callbacks never run.
        _ => Ok(()),
    }
}
