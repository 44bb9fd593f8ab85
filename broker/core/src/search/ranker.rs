//! Rankers order documents for a query; several rankings can be combined into one.

use std::fmt;

/// Ranks documents for a query. Results are positions in the order in which the documents were
/// given, best first; documents that do not match at all are omitted.
pub trait Ranker: fmt::Debug + Send + Sync {
    fn ranked(&self, query: &str) -> Vec<usize>;
}

/// The usual constant of reciprocal-rank fusion. With a larger value, the weight decreases more
/// slowly from rank to rank.
const RANK_WEIGHT: f64 = 60.0;

/// Combines rankings by reciprocal-rank fusion: documents near the top of several rankings come
/// first. Only ranks count, so the scores of the rankers need not be comparable.
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
    fn combined_ranker_prefers_common_top_results() {
        check(&[&[3, 1, 2]], &[3, 1, 2]);
        check(&[&[3, 1, 2], &[]], &[3, 1, 2]);
        check(&[&[3, 1, 2], &[1, 4]], &[1, 3, 4, 2]);
        check(&[&[0, 1], &[1, 0]], &[0, 1]);
        check(&[], &[]);
    }
}
