//! Explains an invalid command line: what is wrong, which commands, flags and values exist, and
//! what to type instead.

use std::any::TypeId;
use std::ffi::OsString;
use std::net::SocketAddr;

use airlock_core::problem::Problem;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory as _};
use codegen::closest::closest;

use super::Cli;
use super::options::usage;
use crate::config::choice;

const WHAT: &str = "invalid command line";

/// Returns the problem of arguments that clap refused.
pub(super) fn problem(error: &clap::Error, arguments: &[OsString]) -> Problem {
    let mut root = Cli::command();
    root.build();
    let (command, path) = named(&root, arguments);
    let why = why(error);
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = text(error, ContextKind::InvalidSubcommand);
            let flags = flags(command);
            let flag = format!("--{word}");
            match flags.contains(&flag) {
                true => usage(WHAT, why, format!("did you mean `{flag}`?")),
                false => unknown_command(&word, &path, &names(command)),
            }
        }
        ErrorKind::UnknownArgument => {
            let word = text(error, ContextKind::InvalidArg);
            let next = unknown_argument(error, command, &path, &word);
            usage(WHAT, why, next)
        }
        ErrorKind::InvalidValue => {
            let word = text(error, ContextKind::InvalidValue);
            let valid = list(error, ContextKind::ValidValue);
            let argument = text(error, ContextKind::InvalidArg);
            let flag = argument.split(' ').next().unwrap_or_default();
            let flag = flag.trim_matches(['<', '>', '[', ']']);
            let words: Vec<&str> = valid.iter().map(String::as_str).collect();
            let expected = choice::list(&words);
            let why = match (words.is_empty(), word.is_empty()) {
                (true, _) => why,
                (false, true) => format!("missing value for `{flag}`; expected {expected}"),
                (false, false) => {
                    format!("invalid value `{word}` for `{flag}`; expected {expected}")
                }
            };
            usage(WHAT, why, value(&word, &words, &path))
        }
        ErrorKind::ValueValidation => {
            let flag = text(error, ContextKind::InvalidArg);
            usage(WHAT, why, valid_value(command, &path, &flag))
        }
        ErrorKind::MissingRequiredArgument => {
            let missing = list(error, ContextKind::InvalidArg);
            let missing: Vec<String> = missing.iter().map(|it| with_values(command, it)).collect();
            let missing = missing.join(" and ");
            let next = format!("add {missing}; `{path} --help` describes it");
            usage(WHAT, why, next)
        }
        ErrorKind::ArgumentConflict => {
            let one = text(error, ContextKind::InvalidArg);
            let one = one.split(' ').next().unwrap_or_default();
            usage(WHAT, why, format!("remove `{one}`, or the other one"))
        }
        _ => usage(WHAT, why, format!("`{path} --help` lists the flags")),
    }
}

/// Returns the problem of a command that does not exist below `path`.
pub(super) fn unknown_command(word: &str, path: &str, names: &[&str]) -> Problem {
    let what = format!("there is no command `{path} {word}`");
    let why = format!("the commands are {}", names.join(", "));
    let swapped = names
        .iter()
        .copied()
        .find(|name| sorted(name) == sorted(word));
    let next = match swapped.or_else(|| closest(word, names.iter().copied())) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("`{path} --help` describes them"),
    };
    usage(what, why, next)
}

/// Returns the letters of a word in order, which are equal if letters were swapped.
fn sorted(word: &str) -> Vec<char> {
    let mut letters: Vec<char> = word.chars().collect();
    letters.sort_unstable();
    letters
}

/// Returns a missing argument, such as `<OUTCOME>` or `--by <PERSON>`, with the values that it can
/// have.
fn with_values(command: &Command, missing: &str) -> String {
    let is_it = |it: &&clap::Arg| {
        let mut names = it.get_value_names().into_iter().flatten();
        it.get_long().is_none() && names.any(|name| missing.contains(&format!("<{name}>")))
    };
    let argument = command.get_arguments().find(is_it);
    let values = argument.map(clap::Arg::get_possible_values);
    let values: Vec<String> = values
        .into_iter()
        .flatten()
        .map(|it| format!("`{}`", it.get_name()))
        .collect();
    match &values[..] {
        [] => missing.to_owned(),
        [others @ .., last] if !others.is_empty() => {
            format!("{missing}, which is {} or {last}", others.join(", "))
        }
        [only, ..] => format!("{missing}, which is {only}"),
    }
}

fn flags(command: &Command) -> Vec<String> {
    let longs = command.get_arguments().filter_map(clap::Arg::get_long);
    longs.map(|long| format!("--{long}")).collect()
}

/// Describes the values of a flag. `flag` is the flag with its value, such as `--seed <N>`.
fn valid_value(command: &Command, path: &str, flag: &str) -> String {
    let name = flag.split(' ').next().unwrap_or_default();
    let long = name.trim_start_matches('-');
    let argument = command
        .get_arguments()
        .find(|it| it.get_long() == Some(long));
    let numbers = [
        TypeId::of::<u64>(),
        TypeId::of::<usize>(),
        TypeId::of::<u32>(),
    ];
    let kind = argument.map(|it| it.get_value_parser().type_id());
    if kind.is_some_and(|kind| numbers.iter().any(|it| kind == *it)) {
        return "write a whole number, such as `20`".to_owned();
    }
    if kind.is_some_and(|kind| kind == TypeId::of::<SocketAddr>()) {
        return "write an address and a port, such as `127.0.0.1:8080`".to_owned();
    }
    format!("`{path} --help` describes `{name}`")
}

fn unknown_argument(error: &clap::Error, command: &Command, path: &str, word: &str) -> String {
    if !word.starts_with('-') {
        let next = format!("remove `{word}`, or put quotes around a value that has spaces");
        return next;
    }
    let similar = text(error, ContextKind::SuggestedArg);
    let known = flags(command);
    let similar = match similar.is_empty() {
        true => closest(word, known.iter().map(String::as_str)).map(str::to_owned),
        false => Some(similar),
    };
    match similar {
        Some(similar) => format!("did you mean `{similar}`?"),
        None => format!("remove `{word}`; `{path} --help` lists the flags"),
    }
}

fn value(word: &str, valid: &[&str], path: &str) -> String {
    match valid.is_empty() {
        true => format!("`{path} --help` describes the flag"),
        false => choice::one_of(word, valid),
    }
}

/// Returns the command that the arguments name, and the words that name it.
fn named<'a>(root: &'a Command, arguments: &[OsString]) -> (&'a Command, String) {
    let (mut command, mut path) = (root, String::from("airlock"));
    for argument in arguments.iter().skip(1) {
        let Some(name) = argument.to_str() else { break };
        let Some(inner) = command.find_subcommand(name) else {
            break;
        };
        path.push_str(&format!(" {name}"));
        command = inner;
    }
    (command, path)
}

fn names(command: &Command) -> Vec<&str> {
    command.get_subcommands().map(Command::get_name).collect()
}

/// Returns the first paragraph of clap's own message.
fn why(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let first = text.split("\n\n").next().unwrap_or_default().trim();
    let first = first.trim_start_matches("error: ");
    first.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn text(error: &clap::Error, kind: ContextKind) -> String {
    list(error, kind).into_iter().next().unwrap_or_default()
}

fn list(error: &clap::Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    }
}
