//! Interleaves the measurements: each round measures every line once on every engine, so that a
//! busy moment of the machine affects all engines alike.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;

use super::engine::Engine;
use super::rows::{Line, Mode, Row};
use super::samples::SampleFigure;

const ROUNDS: u32 = 5;
const ROUNDS_QUICK: u32 = 1;

/// The figures of each engine, by row and mode.
#[derive(Default)]
pub(super) struct Figures(BTreeMap<(&'static str, Row, Mode), SampleFigure>);

impl Figures {
    pub(super) fn of(&self, engine: &Engine, row: Row, way: Mode) -> Option<SampleFigure> {
        self.0.get(&(engine.name, row, way)).copied()
    }
}

pub(super) fn run(
    engines: &[Engine],
    lines: &[&Line],
    work: &Path,
    quick: bool,
) -> Result<Figures> {
    let rounds = if quick { ROUNDS_QUICK } else { ROUNDS };
    let asked = questions(engines, lines);
    let mut heard: BTreeMap<(&'static str, Row, Mode), Vec<SampleFigure>> = BTreeMap::new();
    for round in 1..=rounds {
        for &(engine, row, way) in &asked {
            eprintln!("round {round} of {rounds}: {} {}", row.word(), engine.name);
            let samples = engine.samples(row, way, work, row.count(quick))?;
            let figure = SampleFigure::new(samples, row.stand());
            heard
                .entry((engine.name, row, way))
                .or_default()
                .push(figure);
        }
    }
    let medians = heard
        .into_iter()
        .map(|(key, rounds)| (key, SampleFigure::median(&rounds)));
    Ok(Figures(medians.collect()))
}

/// Returns the measurements of one round, sorted by row, so that compared measurements follow each
/// other closely.
fn questions<'a>(engines: &'a [Engine], lines: &[&Line]) -> Vec<(&'a Engine, Row, Mode)> {
    let mut asked = Vec::new();
    for row in Row::ALL {
        let of_row = lines.iter().filter(|line| line.row == row);
        let ways: Vec<Mode> = of_row.map(|line| line.way).collect();
        for engine in engines {
            if engine.is_ours {
                asked.extend(ways.iter().map(|&way| (engine, row, way)));
            } else if !ways.is_empty() {
                asked.push((engine, row, Mode::Process));
                if engine.note.is_some() && row == Row::Calls {
                    asked.push((engine, row, Mode::Pump));
                }
            }
        }
    }
    asked
}
