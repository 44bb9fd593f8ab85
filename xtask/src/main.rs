//! The project's own chores: goldens, tidy checks, benchmarks, the CI steps.
//! It imports none of the other crates and drives them through cargo.

mod alike;
mod bench;
mod bless;
mod ci;
mod engine;
mod engines;
mod paths;
mod tidy;

use std::process::ExitCode;

use anyhow::{Result, bail};

const USAGE: &str = "\
usage: cargo xtask COMMAND

  bench [--quick] [ROW…]         measure our own rows
  bench peers [--quick] [ROW…]   measure ours beside quickjs-emscripten and isolated-vm
  bench engine [--quick] [NAME…] run 14 workloads in the guest and in quickjs-emscripten
  bench search                   how well and how fast search finds labelled tools of a corpus
  bench serve                    how soon a thousand tools of twelve servers are found
  bench hostile [COUNT]          what COUNT (100,000) hostile scripts take, and a good session beside them
  bench outside-text             how soon hostile rules, files, schemas and streams are answered
  bench workbench                what a reviewer waits for, with 300 rules over 300 tools
  bench tokens [FILE…]           count the tokens of declarations beside those of the JSON
  bench replay                   play recorded tasks and attacks against the shipped policies
  bench policy                   what a decision costs with 10, 100 and 1,000 rules
  bench check                    what the check of a script costs before a run
  alike --minutes N [--seed S]   made-up programs in the guest and in the bare engine
  engines --minutes N [--seed S] made-up scripts in the cages of both engines
  engines --show S | --file F    one of them, or what each engine shows of a file
  engine quickjs [--accept]      make the image of the second guest; the next build carries it
  engine quickjs --twice         make it in two folders, which has to give the same bytes
  engine quickjs --find          which C compiler would make it
  bless [CARGO TEST ARGUMENT…]   rewrite the golden files from what the tests produce
  tidy                           check the text of the project
  ci                             the whole check, as `.ci/run` has it

with --engine quickjs, `bench`, `bench peers` and `bench engine` measure the second engine

rows: cold warm calls concurrent filter waiting";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("error: {problem:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(words: &[String]) -> Result<()> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["bench", "peers", rest @ ..] => bench::beside_peers(rest),
        ["bench", "engine", rest @ ..] => bench::workloads::run(rest),
        ["bench", "search"] => bench::search(),
        ["bench", "serve"] => bench::serve(),
        ["bench", "hostile", rest @ ..] => bench::hostile(rest),
        ["bench", "outside-text"] => bench::outside_text(),
        ["bench", "tokens", rest @ ..] => bench::tokens::run(rest),
        ["bench", "replay"] => bench::replay(),
        ["bench", "workbench"] => bench::workbench(),
        ["bench", "policy"] => bench::medians::POLICY.run(),
        ["bench", "check"] => bench::medians::CHECK.run(),
        ["bench", rest @ ..] => bench::ours_alone(rest),
        ["alike", rest @ ..] => alike::run(rest),
        ["engines", rest @ ..] => engines::run(rest),
        ["engine", rest @ ..] => engine::run(rest),
        ["bless", rest @ ..] => bless::run(rest),
        ["tidy"] => tidy::run(),
        ["ci"] => ci::run(),
        [] | ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        other => bail!("no such command: {}\n\n{USAGE}", other.join(" ")),
    }
}
