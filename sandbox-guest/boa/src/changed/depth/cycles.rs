//! Which nodes of a graph lead back to themselves, in time that goes with its size (Tarjan's
//! strongly connected components, without recursion).

/// For each node whether there is a way from it to itself of one step or more.
pub(super) fn on_a_cycle(ways: &[Vec<usize>]) -> Vec<bool> {
    let mut search = Search {
        ways,
        found: vec![None; ways.len()],
        lowest: vec![0; ways.len()],
        open: Vec::new(),
        is_open: vec![false; ways.len()],
        on_a_cycle: vec![false; ways.len()],
        count: 0,
    };
    for node in 0..ways.len() {
        search.from(node);
    }
    search.on_a_cycle
}

struct Search<'a> {
    ways: &'a [Vec<usize>],
    /// In which order the nodes were found.
    found: Vec<Option<usize>>,
    /// The first found that is reached from each.
    lowest: Vec<usize>,
    open: Vec<usize>,
    is_open: Vec<bool>,
    on_a_cycle: Vec<bool>,
    count: usize,
}

#[expect(
    clippy::indexing_slicing,
    reason = "every list has an entry for each node, and nodes are numbers of entries"
)]
impl Search<'_> {
    fn from(&mut self, first: usize) {
        if self.found[first].is_some() {
            return;
        }
        self.enter(first);
        // The nodes on the way here, each with how many of its ways were gone.
        let mut path = vec![(first, 0)];
        while let Some((node, gone)) = path.last_mut() {
            let node = *node;
            let Some(next) = self.ways[node].get(*gone).copied() else {
                path.pop();
                if let Some((before, _)) = path.last() {
                    self.lowest[*before] = self.lowest[*before].min(self.lowest[node]);
                }
                self.leave(node);
                continue;
            };
            *gone += 1;
            match self.found[next] {
                None => {
                    self.enter(next);
                    path.push((next, 0));
                }
                Some(found) if self.is_open[next] => {
                    self.lowest[node] = self.lowest[node].min(found);
                }
                Some(_) => {}
            }
        }
    }

    fn enter(&mut self, node: usize) {
        self.found[node] = Some(self.count);
        self.lowest[node] = self.count;
        self.count += 1;
        self.open.push(node);
        self.is_open[node] = true;
    }

    fn leave(&mut self, node: usize) {
        if Some(self.lowest[node]) != self.found[node] {
            return;
        }
        let is_this = |other: &usize| *other == node;
        let start = self.open.iter().rposition(is_this).unwrap_or_default();
        let part = self.open.split_off(start);
        let is_cycle = part.len() > 1 || self.ways[node].contains(&node);
        for other in part {
            self.is_open[other] = false;
            self.on_a_cycle[other] = is_cycle;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leads_back_is_on_a_cycle() {
        let ways = [
            vec![1],
            vec![2, 3],
            vec![1],
            vec![4, 5],
            vec![],
            vec![5],
            vec![3],
        ];
        let expected = [false, true, true, false, false, true, false];
        assert_eq!(on_a_cycle(&ways), expected);
    }

    #[test]
    fn a_long_way_back_is_found() {
        let last = 100_000;
        let mut ways: Vec<_> = (0..=last).map(|node| vec![node + 1]).collect();
        ways[last] = vec![0];
        assert!(on_a_cycle(&ways).iter().all(|is_on| *is_on));
        ways[last] = vec![];
        assert!(on_a_cycle(&ways).iter().all(|is_on| !is_on));
    }
}
