//! From samples to figures.

use super::rows::Stand;

/// What one round of samples comes to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Figure {
    pub(super) stands: f64,
    pub(super) p99: f64,
}

impl Figure {
    pub(super) fn of(mut samples: Vec<f64>, stand: Stand) -> Self {
        samples.sort_by(f64::total_cmp);
        let stands = match stand {
            Stand::Median => at(&samples, 0.5),
            Stand::Mean => samples.iter().sum::<f64>() / samples.len() as f64,
        };
        Self {
            stands,
            p99: at(&samples, 0.99),
        }
    }

    /// The median of the rounds, number by number.
    pub(super) fn median(rounds: &[Figure]) -> Self {
        let middle = |number: fn(&Figure) -> f64| {
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

/// The sample at this share of the sorted samples; not a number when there is none.
fn at(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    let index = (last as f64 * share).round() as usize;
    sorted.get(index).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_the_middle_sample_and_the_p99_is_near_the_end() {
        let samples: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        let figure = Figure::of(samples, Stand::Median);
        assert_eq!(
            figure,
            Figure {
                stands: 50.0,
                p99: 99.0
            }
        );
    }

    #[test]
    fn a_mean_counts_the_tail() {
        let figure = Figure::of(vec![1.0, 1.0, 1.0, 97.0], Stand::Mean);
        assert_eq!(figure.stands, 25.0);
    }

    #[test]
    fn one_bad_round_does_not_move_the_median_of_rounds() {
        let round = |stands| Figure {
            stands,
            p99: stands * 2.0,
        };
        let figure = Figure::median(&[round(10.0), round(900.0), round(11.0)]);
        assert_eq!(
            figure,
            Figure {
                stands: 11.0,
                p99: 22.0
            }
        );
    }
}
