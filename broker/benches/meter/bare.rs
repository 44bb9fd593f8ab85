//! The mode `bare`: only the sandbox and a loop around it, without rules, validation, decisions or
//! a journal. It shows which part of every figure the guest causes. The peers, npm packages for the
//! same purpose, are compared with this mode because they have no rules or journal either.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::time::{Duration, Instant};

use airlock::core::effect::GuestStop;
use airlock::core::limits::Limits;
use airlock::sandbox::{Guest, GuestBounds, Sandbox, StopHandle};
use anyhow::{Context, Result, bail, ensure};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use sandbox_protocol::{
    CallOutcome, GuestLimits, OpenCall, Outcome, Resume, ServerStubs, Start, Step, StepState,
    ToolStub,
};

use crate::timing::{WARM_UPS, gaps, micros, millis, pss_kib, repeat};
use crate::work::{AT_ONCE, Work};

const TOOLS: [&str; 4] = ["lookup", "wait", "export", "hang"];
/// The guest gets the time as an argument, so a constant is enough.
const NOW_MS: u64 = 1_772_000_000_000;

type Reply<'a> = Pin<Box<dyn Future<Output = CallOutcome> + 'a>>;

pub(crate) fn measure(row: &str, work: &Work, count: usize) -> Result<Vec<f64>> {
    let sandbox = Sandbox::load_embedded(crate::engine()?).context("the guest cannot be loaded")?;
    let bare = Bare { sandbox, work };
    match row {
        "warm" => bare.warm(count),
        "calls" => bare.calls(count),
        "concurrent" => bare.concurrent(count),
        "filter" => bare.filter(count),
        "waiting" => bare.waiting(count),
        other => bail!("no such row: {other}"),
    }
}

struct Bare<'a> {
    sandbox: Sandbox,
    work: &'a Work,
}

impl Bare<'_> {
    fn warm(&self, count: usize) -> Result<Vec<f64>> {
        let start = start_of(&self.work.one, String::new(), Vec::new());
        let samples = repeat(WARM_UPS, count, || {
            let (_guest, step) = self.start(&start)?;
            ensure!(value_of(step)? == "2", "the script did not return 2");
            Ok(())
        })?;
        Ok(samples.into_iter().map(micros).collect())
    }

    fn calls(&self, count: usize) -> Result<Vec<f64>> {
        let arrivals = RefCell::new(Vec::with_capacity(WARM_UPS + count));
        let start = start_of(
            &self.work.calls,
            self.work.calls_input(count).to_string(),
            stubs(),
        );
        let tool = async |_args: Vec<u8>| {
            arrivals.borrow_mut().push(Instant::now());
            self.work.result.clone().into_bytes()
        };
        let value = self.run(&start, &tool)?;
        ensure!(
            value == self.work.calls_value(count),
            "not every call came back: {value}"
        );
        Ok(gaps(&arrivals.into_inner()))
    }

    fn concurrent(&self, count: usize) -> Result<Vec<f64>> {
        let input = serde_json::json!({ "count": AT_ONCE }).to_string();
        let start = start_of(&self.work.concurrent, input, stubs());
        let tool = async |args: Vec<u8>| {
            tokio::time::sleep(wait_of(&args)).await;
            br#"{"ok":true}"#.to_vec()
        };
        let samples = repeat(1, count, || {
            let value = self.run(&start, &tool)?;
            ensure!(
                value == AT_ONCE.to_string(),
                "not every call came back: {value}"
            );
            Ok(())
        })?;
        Ok(samples.into_iter().map(millis).collect())
    }

    fn filter(&self, count: usize) -> Result<Vec<f64>> {
        let start = start_of(&self.work.filter, "{}".to_owned(), stubs());
        let tool = async |_args: Vec<u8>| self.work.big.clone().into_bytes();
        let samples = repeat(1, count, || {
            let value = self.run(&start, &tool)?;
            ensure!(value == self.work.filtered, "wrong filter result: {value}");
            Ok(())
        })?;
        Ok(samples.into_iter().map(millis).collect())
    }

    fn waiting(&self, count: usize) -> Result<Vec<f64>> {
        let start = start_of(&self.work.waiting, "{}".to_owned(), stubs());
        let first = self.start(&start)?;
        let before = pss_kib()?;
        let mut held = vec![first];
        for _ in 0..count {
            let (guest, step) = self.start(&start)?;
            ensure!(step.calls.len() == 1, "the script does not wait in a call");
            held.push((guest, step));
        }
        let each = (pss_kib()? - before) / count as f64;
        drop(held);
        Ok(vec![each])
    }

    fn start(&self, start: &Start) -> Result<(Guest, Step)> {
        let mut guest = self.sandbox.guest(
            GuestBounds::from_limits(&Limits::default()),
            &StopHandle::default(),
        );
        let step = guest.start(start).map_err(stopped)?;
        Ok((guest, step))
    }

    /// Runs one script until it returns its value. Every tool is the same async function.
    fn run(&self, start: &Start, tool: &impl AsyncFn(Vec<u8>) -> Vec<u8>) -> Result<String> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()?;
        runtime.block_on(async {
            let (mut guest, mut step) = self.start(start)?;
            let mut open: FuturesUnordered<Reply<'_>> = FuturesUnordered::new();
            while matches!(step.state, StepState::Waiting { .. }) {
                open.extend(step.calls.into_iter().map(|call| reply(call, tool)));
                let outcomes = arrived(&mut open).await;
                step = guest
                    .resume(&Resume {
                        now_ms: NOW_MS,
                        outcomes,
                    })
                    .map_err(stopped)?;
            }
            value_of(step)
        })
    }
}

fn reply<'a>(call: OpenCall, tool: &'a impl AsyncFn(Vec<u8>) -> Vec<u8>) -> Reply<'a> {
    Box::pin(async move {
        let value = tool(call.args).await;
        CallOutcome {
            ticket: call.ticket,
            outcome: Outcome::Value(value),
        }
    })
}

/// Waits for one reply, and returns it with all other replies that are already there.
async fn arrived(open: &mut FuturesUnordered<Reply<'_>>) -> Vec<CallOutcome> {
    let mut outcomes: Vec<CallOutcome> = open.next().await.into_iter().collect();
    while let Some(Some(outcome)) = futures_util::FutureExt::now_or_never(open.next()) {
        outcomes.push(outcome);
    }
    outcomes
}

fn stopped(stop: GuestStop) -> anyhow::Error {
    anyhow::anyhow!("the guest stopped: {stop:?}")
}

fn value_of(step: Step) -> Result<String> {
    match step.state {
        StepState::Done { value } => Ok(String::from_utf8(value)?),
        other => bail!("the script did not return: {other:?}"),
    }
}

fn wait_of(args: &[u8]) -> Duration {
    let args: serde_json::Value = serde_json::from_slice(args).unwrap_or_default();
    Duration::from_millis(
        args.get("ms")
            .and_then(serde_json::Value::as_u64)
            .unwrap_or_default(),
    )
}

fn stubs() -> Vec<ServerStubs> {
    let stub = |tool: &str| ToolStub {
        member: tool.to_owned(),
        flat: format!("bench_{tool}"),
        short: String::new(),
        order: Vec::new(),
        hidden: false,
    };
    vec![ServerStubs {
        name: "bench".to_owned(),
        tools: TOOLS.map(stub).to_vec(),
    }]
}

fn start_of(script: &str, input: String, stubs: Vec<ServerStubs>) -> Start {
    let limits = Limits::default();
    Start {
        script: script.to_owned(),
        script_name: "bench.js".to_owned(),
        stubs,
        input: input.into_bytes(),
        seed: 1,
        now_ms: NOW_MS,
        limits: GuestLimits {
            console_bytes_max: limits.console_bytes_max,
            console_flood_bytes_max: limits.console_flood_bytes_max,
            args_bytes_max: limits.args_bytes_max,
            value_bytes_max: limits.value_bytes_max,
            json_depth_max: limits.json_depth_max,
            recursion_max: limits.recursion_max,
        },
    }
}
