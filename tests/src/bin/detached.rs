//! Runs a command in a new session without a terminal, even if the tests were started from a
//! terminal.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    let Some(program) = args.next() else {
        return ExitCode::from(2);
    };
    // Fails only for the leader of a process group, which has no terminal anyway.
    let _ = rustix::process::setsid();
    let error = Command::new(&program).args(args).exec();
    eprintln!("{}: {error}", program.display());
    ExitCode::from(127)
}
