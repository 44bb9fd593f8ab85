//! Summarises samples as figures.

use super::rows::Statistic;

/// The figures of one round of samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SampleFigure {
    pub(super) stands: f64,
    pub(super) p99: f64,
}

impl SampleFigure {
    pub(super) fn new(mut samples: Vec<f64>, stand: Statistic) -> Self {
        samples.sort_by(f64::total_cmp);
        let stands = match stand {
            Statistic::Median => at(&samples, 0.5),
            Statistic::Mean => samples.iter().sum::<f64>() / samples.len() as f64,
        };
        Self {
            stands,
            p99: at(&samples, 0.99),
        }
    }

    /// Returns the median of each figure over the rounds.
    pub(super) fn median(rounds: &[SampleFigure]) -> Self {
        let middle = |number: fn(&SampleFigure) -> f64| {
            let mut numbers: Vec<f64> = rounds.iter().map(number).collect();
            numbers.sort_by(f64::total_cmp);
            at(&numbers, 0.5)
        };
        Self {
            stands: middle(|figure| figure.stands),
            p99: middle(|figure| figure.p99),
        }
    }
}

/// Returns the sample at this fraction of the sorted samples, or NaN if there are no samples.
fn at(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    let index = (last as f64 * share).round() as usize;
    sorted.get(index).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_is_middle_and_p99_near_end() {
        let samples: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        let figure = SampleFigure::new(samples, Statistic::Median);
        assert_eq!(
            figure,
            SampleFigure {
                stands: 50.0,
                p99: 99.0
            }
        );
    }

    #[test]
    fn mean_counts_the_tail() {
        let figure = SampleFigure::new(vec![1.0, 1.0, 1.0, 97.0], Statistic::Mean);
        assert_eq!(figure.stands, 25.0);
    }

    #[test]
    fn one_bad_round_does_not_move_median() {
        let round = |stands| SampleFigure {
            stands,
            p99: stands * 2.0,
        };
        let figure = SampleFigure::median(&[round(10.0), round(900.0), round(11.0)]);
        assert_eq!(
            figure,
            SampleFigure {
                stands: 11.0,
                p99: 22.0
            }
        );
    }
}
