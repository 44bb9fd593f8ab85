//! Runs a command in a session of its own, so that it has no terminal to ask
//! on even when the tests were started from one.

use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1);
    let Some(program) = args.next() else {
        return ExitCode::from(2);
    };
    // Fails only for a process that leads a group already, and then there is no terminal to lose.
    let _ = rustix::process::setsid();
    let error = Command::new(&program).args(args).exec();
    eprintln!("{}: {error}", program.display());
    ExitCode::from(127)
}
