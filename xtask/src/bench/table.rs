//! Writes the table of results as Markdown that is also readable in a terminal.

use super::engine::Engine;
use super::engine_name::EngineName;
use super::rounds::Figures;
use super::rows::{Line, Mode, Row, Statistic};
use super::samples::SampleFigure;

pub(super) fn render(
    engines: &[Engine],
    lines: &[&Line],
    figures: &Figures,
    which: EngineName,
) -> String {
    let peers: Vec<&Engine> = engines.iter().filter(|engine| !engine.is_ours).collect();
    let mut rows = vec![head(&peers)];
    for line in lines {
        rows.extend(
            engines
                .iter()
                .filter(|engine| engine.is_ours)
                .map(|ours| row((ours, which), &peers, line, figures)),
        );
    }
    let mut text = layout(&rows);
    text.extend(peers.iter().filter_map(|peer| note(peer, figures)));
    text
}

fn head(peers: &[&Engine]) -> Vec<String> {
    let mut cells = vec![
        "work".to_owned(),
        "unit".to_owned(),
        "airlock (p99)".to_owned(),
    ];
    cells.extend(peers.iter().map(|peer| format!("{} (p99)", peer.name)));
    if !peers.is_empty() {
        cells.extend(["ratio", "at most", "met"].map(str::to_owned));
    }
    cells
}

fn row(
    (ours, which): (&Engine, EngineName),
    peers: &[&Engine],
    line: &Line,
    figures: &Figures,
) -> Vec<String> {
    let own = figures.of(ours, line.row, line.way);
    let theirs: Vec<Option<SampleFigure>> = peers
        .iter()
        .map(|peer| figures.of(peer, line.row, Mode::Process))
        .collect();
    let mut cells = vec![line.title.to_owned(), unit(line.row), cell(own, line.row)];
    cells.extend(theirs.iter().map(|figure| cell(*figure, line.row)));
    if !peers.is_empty() {
        let better = theirs
            .iter()
            .flatten()
            .map(|figure| figure.stands)
            .min_by(f64::total_cmp);
        let ratio = own.zip(better).map(|(own, better)| own.stands / better);
        cells.extend(verdict(ratio, line.ratio_max(which)));
    }
    cells
}

fn unit(row: Row) -> String {
    match row.stand() {
        Statistic::Median => row.unit().to_owned(),
        Statistic::Mean => format!("{} (mean)", row.unit()),
    }
}

fn verdict(ratio: Option<f64>, ratio_max: Option<f64>) -> [String; 3] {
    let dash = || "–".to_owned();
    let met = ratio
        .zip(ratio_max)
        .map(|(ratio, max)| if ratio <= max { "yes" } else { "NO" });
    [
        ratio.map_or_else(dash, |ratio| format!("{ratio:.2}")),
        ratio_max.map_or_else(dash, |max| format!("{max}")),
        met.map_or_else(dash, str::to_owned),
    ]
}

fn cell(figure: Option<SampleFigure>, row: Row) -> String {
    let Some(figure) = figure else {
        return "–".to_owned();
    };
    match row {
        Row::Waiting | Row::Concurrent | Row::Filter => number(figure.stands),
        Row::Cold | Row::Warm | Row::Calls => {
            format!("{} ({})", number(figure.stands), number(figure.p99))
        }
    }
}

fn number(value: f64) -> String {
    if value < 100.0 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

fn note(peer: &Engine, figures: &Figures) -> Option<String> {
    let figure = figures.of(peer, Row::Calls, Mode::Pump)?;
    let what = peer.note?;
    Some(format!(
        "\nFor information: {} {what}: {} µs a call.\n",
        peer.name,
        number(figure.stands)
    ))
}

/// Pads the cells so that the columns line up.
fn layout(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            rows.iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
        })
        .map(Option::unwrap_or_default)
        .collect();
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, &width)| format!("{cell:width$}"));
        text.push_str(&format!("| {} |\n", cells.collect::<Vec<_>>().join(" | ")));
        if index == 0 {
            let rules = widths.iter().map(|&width| "-".repeat(width));
            text.push_str(&format!("| {} |\n", rules.collect::<Vec<_>>().join(" | ")));
        }
    }
    text
}
