//! A queue that is fair to callers: round robin over callers, first in first out within one caller.

use std::collections::VecDeque;
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct FairQueue<T> {
    /// The callers with waiting items. The first caller is next.
    callers: VecDeque<CallerQueue<T>>,
    latest: u64,
}

#[derive(Debug)]
struct CallerQueue<T> {
    caller: Arc<str>,
    waiting: VecDeque<(Ticket, T)>,
}

/// Identifies an item in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ticket(u64);

impl<T> Default for FairQueue<T> {
    fn default() -> Self {
        Self {
            callers: VecDeque::new(),
            latest: 0,
        }
    }
}

impl<T> FairQueue<T> {
    pub(super) fn push(&mut self, caller: &Arc<str>, item: T) -> Ticket {
        self.latest += 1;
        let ticket = Ticket(self.latest);
        match self.callers.iter_mut().find(|it| it.caller == *caller) {
            Some(known) => known.waiting.push_back((ticket, item)),
            None => self.callers.push_back(CallerQueue {
                caller: Arc::clone(caller),
                waiting: VecDeque::from([(ticket, item)]),
            }),
        }
        ticket
    }

    /// Returns the next item without removing it.
    pub(super) fn first(&self) -> Option<&T> {
        let (_, item) = self.callers.front()?.waiting.front()?;
        Some(item)
    }

    /// Removes the next item. Its caller then comes after all others.
    pub(super) fn pop(&mut self) -> Option<T> {
        let mut of_caller = self.callers.pop_front()?;
        let (_, item) = of_caller.waiting.pop_front()?;
        if !of_caller.waiting.is_empty() {
            self.callers.push_back(of_caller);
        }
        Some(item)
    }

    /// Removes an item from the middle. Returns `None` if the item was already removed.
    pub(super) fn remove(&mut self, ticket: Ticket) -> Option<T> {
        for (place, of_caller) in self.callers.iter_mut().enumerate() {
            let found = of_caller.waiting.iter().position(|it| it.0 == ticket);
            let Some(found) = found else { continue };
            let (_, item) = of_caller.waiting.remove(found)?;
            if of_caller.waiting.is_empty() {
                self.callers.remove(place);
            }
            return Some(item);
        }
        None
    }

    pub(super) fn len(&self) -> usize {
        self.callers.iter().map(|it| it.waiting.len()).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.callers.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(items: &[&'static str]) -> (FairQueue<&'static str>, Vec<Ticket>) {
        let mut queue = FairQueue::default();
        // The first letter of an item names its caller.
        let tickets = items.iter().map(|it| queue.push(&it[..1].into(), *it));
        let tickets = tickets.collect();
        (queue, tickets)
    }

    fn all(mut queue: FairQueue<&'static str>) -> Vec<&'static str> {
        std::iter::from_fn(|| queue.pop()).collect()
    }

    #[test]
    fn callers_take_turns_and_each_keeps_its_order() {
        let (queue, _) = queue(&["a1", "a2", "a3", "b1", "c1", "c2"]);
        assert_eq!(queue.len(), 6);
        assert_eq!(all(queue), ["a1", "b1", "c1", "a2", "c2", "a3"]);
    }

    #[test]
    fn a_caller_with_much_waiting_does_not_hold_up_one_that_comes_later() {
        let (mut queue, _) = queue(&["a1", "a2", "a3", "a4"]);
        assert_eq!(queue.pop(), Some("a1"));
        queue.push(&"b".into(), "b1");
        assert_eq!(all(queue), ["a2", "b1", "a3", "a4"]);
    }

    #[test]
    fn what_is_removed_is_gone_and_leaves_no_caller_behind() {
        let (mut queue, tickets) = queue(&["a1", "b1", "b2"]);
        assert_eq!(queue.remove(tickets[0]), Some("a1"));
        assert_eq!(queue.remove(tickets[0]), None);
        assert_eq!(queue.first(), Some(&"b1"));
        assert_eq!(queue.remove(tickets[2]), Some("b2"));
        assert_eq!(all(queue), ["b1"]);
        let (mut queue, tickets) = self::queue(&["a1"]);
        queue.remove(tickets[0]);
        assert!(queue.is_empty() && queue.pop().is_none());
    }
}
