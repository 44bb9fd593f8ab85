//! The project's development tasks: goldens, tidy checks, benchmarks, the CI steps. This crate uses
//! no other crate of the workspace, and runs them through cargo.

mod bench;
mod bless;
mod ci;
mod differential;
mod dist;
mod engine;
mod engines;
mod paths;
mod tidy;

use std::process::ExitCode;

use anyhow::{Result, bail};

const USAGE: &str = "\
usage: cargo xtask COMMAND

  bench [--quick] [ROW…]         measure airlock
  bench peers [--quick] [ROW…]   measure airlock, quickjs-emscripten and isolated-vm
  bench engine [--quick] [NAME…] run 14 workloads in the guest and in quickjs-emscripten
  bench search                   measure how well and how fast search finds tools of a corpus
  bench serve                    measure the first search over a thousand tools of twelve servers
  bench sessions [COUNT]         measure a new session beside 10 and beside COUNT others (100,000)
  bench hostile [COUNT]          measure COUNT hostile scripts (100,000), and a good session beside them
  bench budget                   measure the memory of 24 runs of 256 MiB under a budget of 1 GiB
  bench resume                   measure how soon a resumed run makes its first new call
  bench outside-text             measure how fast hostile rules, files, schemas and streams are refused
  bench workbench                measure a reviewer's commands, with 300 rules over 300 tools
  bench tokens [FILE…]           count the tokens of declarations, and those of the servers' JSON
  bench proofs [PAIRS]           compare proofs about PAIRS random pairs of rules (1,000) with calls
  bench signing                  measure the signature at the end of a run
  bench replay                   replay recorded tasks and attacks under the shipped policies
  bench policy                   measure a decision with 10, 100 and 1,000 rules
  bench check                    measure the check of a script before a run
  differential --minutes N [--seed S]
                                 compare generated programs in the guest and in the bare engine
  engines --minutes N [--seed S] compare generated scripts in the sandboxes of both engines
  engines --show S | --file F    print the output of one script on both engines
  engine quickjs [--accept]      build the image of the second guest; the next build includes it
  engine quickjs --twice         build it in two folders and require the same bytes
  engine quickjs --find          print which C compiler would be used
  dist [--target T] [--program FILE] [--out FOLDER]
                                 build the program, and make the archive and all packages of it
  dist --list                    list the targets that have packages
  bless [CARGO TEST ARGUMENT…]   rewrite the golden files from the output of the tests
  tidy                           check headers, links, imports and unfinished work
  ci                             run all checks of `.ci/run`

With --engine quickjs, `bench`, `bench peers` and `bench engine` measure the second engine.

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
        ["bench", "sessions", rest @ ..] => bench::sessions(rest),
        ["bench", "hostile", rest @ ..] => bench::hostile(rest),
        ["bench", "budget"] => bench::budget(),
        ["bench", "resume"] => bench::resume(),
        ["bench", "outside-text"] => bench::outside_text(),
        ["bench", "tokens", rest @ ..] => bench::tokens::run(rest),
        ["bench", "proofs", words @ ..] => bench::proofs(words),
        ["bench", "signing"] => bench::signing(),
        ["bench", "replay"] => bench::replay(),
        ["bench", "workbench"] => bench::workbench(),
        ["bench", "policy"] => bench::medians::POLICY.run(),
        ["bench", "check"] => bench::medians::CHECK.run(),
        ["bench", rest @ ..] => bench::ours_alone(rest),
        ["differential", rest @ ..] => differential::run(rest),
        ["engines", rest @ ..] => engines::run(rest),
        ["engine", rest @ ..] => engine::run(rest),
        ["dist", rest @ ..] => dist::run(rest),
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
