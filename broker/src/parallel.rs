//! Processes many items at once, on as many threads as there are processors.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Maximum number of threads. For short work, more threads are not worth starting.
const THREADS_MAX: usize = 4;

/// Applies `work` to each item and returns the results in order. Blocks until all items are done.
pub(crate) fn side_by_side<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let processors = thread::available_parallelism().map_or(1, NonZero::get);
    let threads = processors.min(THREADS_MAX).min(items.len());
    let next = AtomicUsize::new(0);
    let some = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else {
                return done;
            };
            done.push((at, work(item)));
        }
    };
    let mut done = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(some)).collect();
        let mut done = some();
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        done
    });
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, it)| it).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parallel_map_processes_each_item_once_in_order() {
        for count in [0, 1, 2, 1_000] {
            let items: Vec<usize> = (0..count).collect();
            let worked = AtomicUsize::new(0);
            let done = side_by_side(&items, |item| {
                worked.fetch_add(1, Ordering::Relaxed);
                item * 2
            });
            let expected: Vec<usize> = items.iter().map(|item| item * 2).collect();
            assert_eq!(done, expected);
            assert_eq!(worked.into_inner(), count);
        }
    }
}
