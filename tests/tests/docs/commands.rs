//! Checks every command that a document mentions, in a block or in prose: all its flags must be in
//! its help.

use std::collections::{BTreeMap, BTreeSet};

use tests::command::Home;

use crate::pages;

#[test]
fn documented_flags_exist() {
    let helps = Helps::new();
    let mut checked = 0;
    for page in pages::all() {
        for line in page.text.lines() {
            checked += helps.check(&page.path, line);
        }
    }
    assert!(checked > 80, "{checked} flags");
}

/// The section of a command, with the flag groups to which it links, contains the flags of the
/// command's help, except those that the tables of settings and limits describe.
#[test]
fn reference_lists_every_command_and_flag() {
    let elsewhere: BTreeSet<String> = ["docs/configuration.md", "docs/limits.md"]
        .into_iter()
        .flat_map(|page| flag_column(&pages::read(page).text))
        .flat_map(|cell| flags(&cell.replace('`', "")))
        .collect();
    let reference = pages::read("docs/cli.md").text;
    let sections = sections(&reference);
    for (command, help) in &Helps::new().of_commands {
        let title = format!("airlock {command}");
        let section = sections.get(&*title);
        let section = section.unwrap_or_else(|| panic!("docs/cli.md has no section `{title}`"));
        let mut shown = table_flags(section);
        for (name, group) in &sections {
            if section.contains(&format!("(#{})", name.to_lowercase().replace(' ', "-"))) {
                shown.extend(table_flags(group));
            }
        }
        let of_help = help_flags(help);
        assert!(shown.is_subset(&of_help), "{title}: {shown:?}, {of_help:?}");
        let lacking: Vec<_> = of_help.difference(&shown).collect();
        let lacking: Vec<_> = lacking
            .into_iter()
            .filter(|it| !elsewhere.contains(*it))
            .collect();
        assert!(lacking.is_empty(), "docs/cli.md, `{title}`: {lacking:?}");
    }
}

/// A setting that names commands beside its flag, such as `--fsync` (`run`, `serve`), names exactly
/// the commands that have the flag, or says that all commands with `--server` have it.
#[test]
fn settings_name_the_commands_that_take_them() {
    let mut checked = 0;
    let helps = Helps::new();
    for cell in flag_column(&pages::read("docs/configuration.md").text) {
        let Some((shown, named)) = cell.split_once(" (") else {
            continue;
        };
        let named = named.trim_end_matches(')').replace('`', "");
        let named: BTreeSet<&str> = named.split(", ").collect();
        for flag in flags(&shown.replace('`', "")) {
            let takes = |help: &String| help_flags(help).contains(&flag);
            if named.contains("all commands with servers") {
                let has_servers = |help: &String| help_flags(help).contains("--server");
                let mut with_servers = helps.of_commands.iter().filter(|it| has_servers(it.1));
                assert!(with_servers.all(|it| takes(it.1)), "{flag}");
                checked += 1;
                continue;
            }
            let commands = helps.of_commands.iter().filter(|it| takes(it.1));
            let commands: BTreeSet<&str> = commands.map(|(name, _)| name.as_str()).collect();
            assert_eq!(named, commands, "{flag}");
            checked += 1;
        }
    }
    assert!(checked >= 9, "{checked} flags");
}

/// Returns the cells of the column `Flag` of all tables that have one.
fn flag_column(text: &str) -> Vec<String> {
    let mut column = None;
    let mut cells = Vec::new();
    for line in text.lines() {
        let row: Vec<&str> = line.split('|').map(str::trim).collect();
        match column {
            _ if !line.starts_with('|') => column = None,
            None => column = row.iter().position(|cell| *cell == "Flag").or(Some(0)),
            Some(at) => cells.extend(
                row.get(at)
                    .filter(|it| it.starts_with("`-"))
                    .map(|it| (*it).to_owned()),
            ),
        }
    }
    cells
}

/// Returns the text below each second-level heading.
fn sections(text: &str) -> BTreeMap<&str, &str> {
    let sections = text.split("\n## ").skip(1);
    sections.filter_map(|it| it.split_once('\n')).collect()
}

/// Returns the flags in the first column of a table.
fn table_flags(section: &str) -> BTreeSet<String> {
    let rows = section.lines().filter(|line| line.starts_with("| `-"));
    let cells = rows.filter_map(|line| line.strip_prefix("| "));
    let cells = cells.filter_map(|line| line.split(" | ").next());
    cells
        .flat_map(|cell| flags(&cell.replace('`', "")))
        .collect()
}

/// Returns the flags that a help text lists, except `--help`.
fn help_flags(help: &str) -> BTreeSet<String> {
    let lines = help.lines().map(str::trim_start);
    let lines = lines.filter(|line| line.starts_with('-') && !line.starts_with("- "));
    let columns = lines.filter_map(|line| line.split("  ").next());
    let mut all: BTreeSet<String> = columns.flat_map(flags).collect();
    all.retain(|flag| flag != "-h" && flag != "--help");
    all
}

fn flags(text: &str) -> Vec<String> {
    let words = text.split([' ', ',']).filter(|word| word.starts_with('-'));
    words.map(str::to_owned).collect()
}

struct Helps {
    of_commands: BTreeMap<String, String>,
}

impl Helps {
    fn new() -> Self {
        let home = Home::new();
        let help = |command: &[&str]| {
            home.run([command, &["--help"]].concat())
                .expect_code(0)
                .stdout
        };
        let mut of_commands = BTreeMap::new();
        for command in named(&help(&[])) {
            let text = help(&[&command]);
            let inner = named(&text);
            for inner in &inner {
                of_commands.insert(format!("{command} {inner}"), help(&[&command, inner]));
            }
            if inner.is_empty() {
                of_commands.insert(command, text);
            }
        }
        assert!(of_commands.len() > 15, "{:?}", of_commands.keys());
        Self { of_commands }
    }

    /// Checks the flags of each command in a line, and returns the number of commands.
    fn check(&self, document: &str, line: &str) -> usize {
        let line = line.replace("cargo run --quiet -- ", "airlock ");
        let shown = line.split("airlock ").skip(1);
        shown.map(|shown| self.check_one(document, shown)).sum()
    }

    fn check_one(&self, document: &str, shown: &str) -> usize {
        // Text after the command in prose, or in a comment, is not part of it.
        let shown = shown.split(['`', '#', '|', '"']).next().unwrap_or_default();
        let words: Vec<&str> = shown.split_whitespace().collect();
        let name = |count: usize| words.get(..count).map(|it| it.join(" "));
        let named = [name(2), name(1)].into_iter().flatten();
        let Some(help) = named.filter_map(|it| self.of_commands.get(&it)).next() else {
            return 0;
        };
        let flags = words
            .iter()
            .filter(|word| word.len() > 2 && word.starts_with("--"));
        let flags = flags.map(|word| word.split(['=', ',']).next().unwrap());
        flags.fold(0, |count, flag| {
            let is_there = help.split_whitespace().any(|it| it == flag);
            assert!(
                is_there,
                "{document} shows `{flag}` in `airlock {shown}`\n{help}"
            );
            count + 1
        })
    }
}

/// Returns the commands that a help text lists.
fn named(help: &str) -> Vec<String> {
    let Some((_, list)) = help.split_once("Commands:\n") else {
        return Vec::new();
    };
    let lines = list.lines().take_while(|line| !line.is_empty());
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}
