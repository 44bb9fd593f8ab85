//! Whatever can put documents in an order for a query, and several of them as one.

use std::fmt;

/// Answers with places in the order in which the documents were given, best first; without
/// those that do not fit at all.
pub trait Ranker: fmt::Debug + Send + Sync {
    fn ranked(&self, query: &str) -> Vec<usize>;
}

/// How soon a later rank counts little: the value that is customary for this.
const RANK_WEIGHT: f64 = 60.0;

/// Reciprocal-rank fusion: what several rankers put in front comes first. Their scores need
/// not be comparable, for only ranks count.
#[must_use]
pub fn fused(rankings: &[Vec<usize>]) -> Vec<usize> {
    let places = rankings.iter().flatten().max().map_or(0, |most| most + 1);
    let mut scores = vec![0.0; places];
    for ranking in rankings {
        for (rank, place) in ranking.iter().enumerate() {
            if let Some(score) = scores.get_mut(*place) {
                *score += 1.0 / (RANK_WEIGHT + 1.0 + rank as f64);
            }
        }
    }
    let mut found: Vec<(usize, f64)> = scores.into_iter().enumerate().collect();
    found.retain(|(_, score)| *score > 0.0);
    found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    found.into_iter().map(|(place, _)| place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rankings: &[&[usize]], expected: &[usize]) {
        let rankings: Vec<_> = rankings.iter().map(|it| it.to_vec()).collect();
        assert_eq!(fused(&rankings), expected, "{rankings:?}");
    }

    #[test]
    fn what_several_put_in_front_comes_first() {
        check(&[&[3, 1, 2]], &[3, 1, 2]);
        check(&[&[3, 1, 2], &[]], &[3, 1, 2]);
        check(&[&[3, 1, 2], &[1, 4]], &[1, 3, 4, 2]);
        check(&[&[0, 1], &[1, 0]], &[0, 1]);
        check(&[], &[]);
    }
}
