//! The `airlock` program: parse the arguments, call one command, turn its
//! result into an exit code.

use std::process::ExitCode;

use airlock::cli;
use airlock::config::Environment;

fn main() -> ExitCode {
    cli::main(std::env::args_os(), Environment::of_process())
}
