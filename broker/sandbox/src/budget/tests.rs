//! Tests of runs that wait for each other, on real threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use futures_util::future::select_all;

use super::*;
use crate::stop_handle::StopHandle;

const MIB: u64 = 1024 * 1024;
/// Longer than any test takes on any machine.
const PATIENT_MS: u64 = 600_000;

fn budget(runs: u32, memory: u64, queue_wall_ms: u64) -> Budget {
    let limits = BudgetLimits {
        runs_max: runs,
        memory_bytes_max: Some(memory),
        computing_max: Some(1),
        queue_wall_ms_max: queue_wall_ms,
    };
    Budget::new(&limits, 256 * MIB)
}

fn caller(name: &str) -> Arc<str> {
    name.into()
}

fn wait(stop: &StopHandle) -> Wait<'_> {
    Wait {
        stop,
        at_most: Duration::from_millis(PATIENT_MS),
    }
}

fn until(is_so: impl Fn() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < Duration::from_millis(PATIENT_MS));
        thread::yield_now();
    }
}

#[tokio::test]
async fn callers_are_let_in_in_turn() {
    let budget = budget(1, 1024 * MIB, PATIENT_MS);
    let first = budget.try_share(&caller("a"), MIB).unwrap();
    let budget = &budget;
    let enter = |name: &'static str| async move {
        let share = budget.share(&caller(&name[..1]), MIB).await;
        (name, share.unwrap())
    };
    let mut waiting: Vec<_> = ["a1", "a2", "a3", "b1"].map(enter).map(Box::pin).into();
    for share in &mut waiting {
        assert!(share.as_mut().now_or_never().is_none());
    }
    assert_eq!(budget.usage().waiting, 4);
    let mut order = Vec::new();
    let mut share = Some(first);
    while !waiting.is_empty() {
        drop(share.take());
        let ((name, came), _, left) = select_all(waiting).await;
        share = Some(came);
        order.push(name);
        waiting = left;
    }
    assert_eq!(order, ["a1", "b1", "a2", "a3"]);
    drop(share);
    assert_eq!(budget.usage().runs, 0);
}

#[tokio::test(start_paused = true)]
async fn a_run_for_which_no_room_comes_is_refused_and_told_when_to_come_again() {
    let budget = budget(1, 1024 * MIB, 5_000);
    let _held = budget.try_share(&caller("a"), MIB).unwrap();
    assert!(budget.try_share(&caller("b"), MIB).is_none());
    let since = tokio::time::Instant::now();
    let busy = budget.share(&caller("b"), MIB).await.unwrap_err();
    assert_eq!(since.elapsed().as_secs(), 5);
    assert!(busy.retry_after_ms() >= 1_000);
    assert_eq!(
        busy.to_string(),
        "1 runs are in progress, which is the limit `runs`, and no room became free within 5s"
    );
    let usage = budget.usage();
    assert_eq!((usage.runs, usage.waiting, usage.refused), (1, 0, 1));
}

#[tokio::test]
async fn who_gives_up_waiting_holds_up_nobody() {
    let budget = budget(1, 1024 * MIB, PATIENT_MS);
    let held = budget.try_share(&caller("a"), MIB).unwrap();
    let (b, c) = (caller("b"), caller("c"));
    let mut given_up = Box::pin(budget.share(&b, MIB));
    assert!(given_up.as_mut().now_or_never().is_none());
    let mut waits = Box::pin(budget.share(&c, MIB));
    assert!(waits.as_mut().now_or_never().is_none());
    drop(given_up);
    assert_eq!(budget.usage().waiting, 1);
    drop(held);
    waits.await.unwrap();
    assert_eq!(budget.usage().runs, 0);
}

/// The first waiter gets the place but gives up before it takes it.
#[tokio::test]
async fn a_place_that_nobody_takes_any_more_goes_to_the_next() {
    let budget = budget(1, 1024 * MIB, PATIENT_MS);
    let held = budget.try_share(&caller("a"), MIB).unwrap();
    let (b, c) = (caller("b"), caller("c"));
    let mut gone = Box::pin(budget.share(&b, MIB));
    assert!(gone.as_mut().now_or_never().is_none());
    let mut waits = Box::pin(budget.share(&c, MIB));
    assert!(waits.as_mut().now_or_never().is_none());
    drop(held);
    drop(gone);
    waits.await.unwrap();
    assert_eq!((budget.usage().runs, budget.usage().waiting), (0, 0));
}

#[test]
fn a_run_that_ends_or_panics_gives_everything_back() {
    let budget = budget(10, 1024 * MIB, PATIENT_MS);
    for panics in [false, true] {
        let share = budget.try_share(&caller("a"), 256 * MIB).unwrap();
        let ran = thread::spawn(move || {
            let stop = StopHandle::default();
            let charge = share.charge();
            assert_eq!(charge.grow_to(100 * MIB, None), GrowResult::Yes);
            share.begin_turn(&(Arc::new(|| {}) as Interrupt), &wait(&stop));
            assert!(!panics, "on purpose");
        });
        assert_eq!(ran.join().is_err(), panics);
        let usage = budget.usage();
        assert_eq!((usage.runs, usage.memory_bytes), (0, 0));
        assert_eq!(usage.computing, 0);
    }
}

#[test]
fn a_run_that_must_wait_for_memory_goes_on_when_another_ends() {
    let budget = budget(10, 280 * MIB, PATIENT_MS);
    let large = budget.try_share(&caller("a"), 256 * MIB).unwrap();
    let held = large.charge();
    assert_eq!(held.grow_to(250 * MIB, None), GrowResult::Yes);
    let share = budget.try_share(&caller("b"), 256 * MIB).unwrap();
    share.on_own_thread();
    let waits = thread::spawn(move || {
        let stop = StopHandle::default();
        let charge = share.charge();
        assert_eq!(charge.grow_to(100 * MIB, None), GrowResult::No);
        charge.grow_to(100 * MIB, Some(&wait(&stop)))
    });
    until(|| budget.usage().growing == 1);
    drop((held, large));
    assert_eq!(waits.join().unwrap(), GrowResult::Yes);
    assert_eq!(budget.usage().memory_bytes, 0);
}

#[test]
fn waiting_for_memory_ends_with_its_time_or_when_the_run_is_stopped() {
    for (queue_wall_ms, stops, expected) in [
        (20, false, GrowResult::No),
        (PATIENT_MS, true, GrowResult::Stopped),
    ] {
        let budget = budget(10, 280 * MIB, queue_wall_ms);
        let large = budget.try_share(&caller("a"), 256 * MIB).unwrap();
        let held = large.charge();
        assert_eq!(held.grow_to(250 * MIB, None), GrowResult::Yes);
        let share = budget.try_share(&caller("b"), 256 * MIB).unwrap();
        share.on_own_thread();
        let stop = StopHandle::default();
        let theirs = stop.clone();
        let waits = thread::spawn(move || share.charge().grow_to(100 * MIB, Some(&wait(&theirs))));
        if stops {
            until(|| budget.usage().growing == 1);
            stop.stop();
        }
        assert_eq!(waits.join().unwrap(), expected);
        assert_eq!(budget.usage().growing, 0);
    }
}

/// A loop that computes in slices, like a guest that calls the host once per millisecond.
struct Loop {
    share: RunShare,
    stop: StopHandle,
    interrupted: Arc<AtomicBool>,
}

impl Loop {
    fn new(budget: &Budget, name: &str) -> Self {
        let share = budget.try_share(&caller(name), MIB).unwrap();
        share.on_own_thread();
        Self {
            share,
            stop: StopHandle::default(),
            interrupted: Arc::default(),
        }
    }

    /// Computes this number of slices, each of which counts as `slice_us`.
    fn run(&self, (slices, slice_us): (usize, u64), each: impl Fn()) {
        let interrupted = Arc::clone(&self.interrupted);
        let interrupt: Interrupt = Arc::new(move || interrupted.store(true, Ordering::Relaxed));
        self.share.begin_turn(&interrupt, &wait(&self.stop));
        for _ in 0..slices {
            if self.stop.is_stopped() {
                break;
            }
            each();
            self.share.go_on(slice_us, &wait(&self.stop));
        }
        self.share.end_turn(0);
    }
}

#[test]
fn only_so_many_compute_at_the_same_time() {
    let budget = budget(100, 4096 * MIB, PATIENT_MS);
    let (computing, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for name in ["a", "b", "c", "d"] {
            let looped = Loop::new(&budget, name);
            let (computing, most) = (&computing, &most);
            scope.spawn(move || {
                looped.run((50, 1_000), || {
                    most.fetch_max(
                        computing.fetch_add(1, Ordering::SeqCst) + 1,
                        Ordering::SeqCst,
                    );
                    thread::yield_now();
                    computing.fetch_sub(1, Ordering::SeqCst);
                });
            });
        }
    });
    assert_eq!(most.into_inner(), 1);
    let usage = budget.usage();
    assert_eq!((usage.computing, usage.computing_later), (0, 0));
}

#[test]
fn a_short_run_passes_endless_ones() {
    const LOOPS: usize = 8;
    let budget = budget(100, 4096 * MIB, PATIENT_MS);
    let loops: Vec<_> = (0..LOOPS).map(|_| Loop::new(&budget, "hostile")).collect();
    let (slices, before_short) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for looped in &loops {
            let (budget, slices, before_short) = (&budget, &slices, &before_short);
            scope.spawn(move || {
                looped.run((usize::MAX, 100_000), || {
                    slices.fetch_add(1, Ordering::SeqCst);
                    // One loop computes and all others wait. While the short run computes, that
                    // loop waits too.
                    if budget.usage().computing_later == LOOPS {
                        before_short.fetch_add(1, Ordering::SeqCst);
                    }
                });
            });
        }
        // Each of the loops has computed for a long time.
        until(|| slices.load(Ordering::SeqCst) > LOOPS * 12);
        for _ in 0..20 {
            let short = Loop::new(&budget, "good");
            short.run((3, 1_000), || {});
        }
        let passed = before_short.load(Ordering::SeqCst);
        assert!(
            passed <= 20 * 3,
            "{passed} slices came before 20 short runs"
        );
        assert!(
            loops
                .iter()
                .any(|it| it.interrupted.load(Ordering::Relaxed))
        );
        loops.iter().for_each(|it| it.stop.stop());
    });
    drop(loops);
    assert_eq!(budget.usage().runs, 0);
}

#[test]
fn a_run_that_is_stopped_while_it_waits_for_the_processor_stops_waiting() {
    let budget = budget(10, 1024 * MIB, PATIENT_MS);
    let busy = Loop::new(&budget, "a");
    busy.share
        .begin_turn(&(Arc::new(|| {}) as Interrupt), &wait(&busy.stop));
    let waits = Loop::new(&budget, "b");
    let stop = waits.stop.clone();
    let waiting = thread::spawn(move || waits.run((1, 1_000), || {}));
    until(|| budget.usage().computing_later == 1);
    stop.stop();
    waiting.join().unwrap();
    assert_eq!(budget.usage().computing_later, 0);
    assert_eq!(budget.usage().computing, 1);
}
