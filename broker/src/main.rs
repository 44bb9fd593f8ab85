//! The `airlock` program: parses the arguments, runs one command, and returns an exit code.

use std::process::ExitCode;

use airlock::cli;
use airlock::config::Environment;

fn main() -> ExitCode {
    cli::main(std::env::args_os(), Environment::of_process())
}
