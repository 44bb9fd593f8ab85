//! Interleaving: each round asks every engine once for every line, so that a
//! busy moment of the machine hits all of them alike.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;

use super::engine::Engine;
use super::rows::{Line, Row, Way};
use super::samples::Figure;

const ROUNDS: u32 = 5;
const ROUNDS_QUICK: u32 = 1;

/// The figure of an engine for a row in a way.
#[derive(Default)]
pub(super) struct Figures(BTreeMap<(&'static str, Row, Way), Figure>);

impl Figures {
    pub(super) fn of(&self, engine: &Engine, row: Row, way: Way) -> Option<Figure> {
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
    let mut heard: BTreeMap<(&'static str, Row, Way), Vec<Figure>> = BTreeMap::new();
    for round in 1..=rounds {
        for &(engine, row, way) in &asked {
            eprintln!("round {round} of {rounds}: {} {}", row.word(), engine.name);
            let samples = engine.samples(row, way, work, row.count(quick))?;
            let figure = Figure::of(samples, row.stand());
            heard
                .entry((engine.name, row, way))
                .or_default()
                .push(figure);
        }
    }
    let medians = heard
        .into_iter()
        .map(|(key, rounds)| (key, Figure::median(&rounds)));
    Ok(Figures(medians.collect()))
}

/// Every engine's rows, row by row, so that those who are compared follow each other closely.
fn questions<'a>(engines: &'a [Engine], lines: &[&Line]) -> Vec<(&'a Engine, Row, Way)> {
    let mut asked = Vec::new();
    for row in Row::ALL {
        let of_row = lines.iter().filter(|line| line.row == row);
        let ways: Vec<Way> = of_row.map(|line| line.way).collect();
        for engine in engines {
            if engine.is_ours {
                asked.extend(ways.iter().map(|&way| (engine, row, way)));
            } else if !ways.is_empty() {
                asked.push((engine, row, Way::Process));
                if engine.note.is_some() && row == Row::Calls {
                    asked.push((engine, row, Way::Pump));
                }
            }
        }
    }
    asked
}
