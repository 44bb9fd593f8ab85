//! `airlock completions` and `airlock man`: texts for shells and for `man`, made from the same
//! definition of commands and flags that `--help` shows.

use airlock_core::problem::Problem;
use clap::{Args, Command, CommandFactory as _};
use clap_complete::Shell;
use clap_mangen::Man;

use super::{Cli, Outcome, exit, print};

#[derive(Debug, Args)]
pub(super) struct CompletionsOptions {
    /// The shell that reads the completions
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

#[derive(Debug, Args)]
pub(super) struct ManOptions {
    /// Print the page of this command, such as `run` or `policy check` [default: airlock itself]
    #[arg(value_name = "COMMAND")]
    command: Vec<String>,
}

pub(super) fn completions(options: &CompletionsOptions) -> Outcome {
    let mut text = Vec::new();
    clap_complete::generate(options.shell, &mut Cli::command(), "airlock", &mut text);
    print(&String::from_utf8_lossy(&text))?;
    Ok(exit::DONE)
}

pub(super) fn man(options: &ManOptions) -> Outcome {
    let mut command = Cli::command();
    command.build();
    let mut page = command;
    let mut title = String::from("airlock");
    for name in &options.command {
        page = find(&page, name, &title)?;
        title.push_str(&format!("-{name}"));
    }
    let mut text = Vec::new();
    Man::new(page).render(&mut text).map_err(|error| {
        let what = "cannot write the manual page";
        Problem::new("internal", what, error.to_string(), "")
    })?;
    print(&String::from_utf8_lossy(&text))?;
    Ok(exit::DONE)
}

fn find(command: &Command, name: &str, title: &str) -> Result<Command, Problem> {
    let found = command.get_subcommands().find(|it| it.get_name() == name);
    found.cloned().ok_or_else(|| {
        let names: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
        super::command_line::unknown_command(name, &title.replace('-', " "), &names)
    })
}
