//! Checks the tables of the reference: limits, configuration keys, exit codes.

use airlock::cli::exit;
use airlock::config::{LimitSet, limit_settings};
use tests::command::Home;

use crate::pages;

#[test]
fn reference_and_help_list_every_limit() {
    let reference = pages::read("docs/limits.md").text;
    let help = Home::new().run(["run", "--help"]).expect_code(0).stdout;
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let defaults = LimitSet::default();
    for limit in limit_settings() {
        let flag = limit.flag.map(|it| format!("`{it}`")).unwrap_or_default();
        let (name, value, what) = (limit.name, limit.show(&defaults), limit.what);
        let row = format!("| `{name}` | {value} | {flag} | {what} |");
        assert!(reference.contains(&row), "{row}");
        if let Some(flag) = limit.flag {
            let (_, told) = help.split_once(&format!("{flag} ")).unwrap();
            let (_, default) = told.split_once("[default: ").unwrap();
            assert!(default.starts_with(&format!("{value}]")), "{flag}: {value}");
        }
    }
}

/// The keys come from the error for an unknown key, which lists all keys.
#[test]
fn every_configuration_key_is_documented() {
    let home = Home::new();
    let document = pages::read("docs/configuration.md").text;
    let mut keys = 0;
    for tables in [
        "",
        "[servers.a]",
        "[rules]",
        "[oauth]",
        "[extract]\ncommand = 'a'",
        "[labels.a]",
        "[labels.a.tools.b]",
    ] {
        home.write("airlock.toml", format!("{tables}\nno_such_key = 1\n"));
        let ended = home
            .run(["run", "-e", "return 1", "--config", "airlock.toml"])
            .expect_code(30)
            .expect_stderr("unknown field `no_such_key`, expected");
        let known = ended.stderr.split("expected").nth(1).unwrap();
        let known = known.lines().next().unwrap();
        for key in known.split('`').skip(1).step_by(2) {
            let is_there = [
                format!("`{key}`"),
                format!("[{key}]"),
                format!("[{key}."),
                format!(".{key}."),
            ];
            let is_there = is_there.iter().any(|it| document.contains(it));
            assert!(
                is_there,
                "docs/configuration.md lacks `{key}` of `{tables}`"
            );
            keys += 1;
        }
    }
    assert!(keys > 40, "{keys} keys");
}

#[test]
fn every_exit_code_is_documented() {
    let reference = pages::read("docs/exit-codes.md").text;
    for code in [
        exit::DONE,
        exit::INTERNAL,
        exit::USAGE,
        exit::SCRIPT_FAILED,
        exit::LIMIT,
        exit::DENIED,
        exit::WAITING,
        exit::CANNOT_RESUME,
        exit::BUSY,
        exit::CONFIGURATION,
        exit::JOURNAL,
        exit::POLICY,
        exit::LOCK,
        exit::CANCELLED,
    ] {
        let row = format!("\n| {code} | ");
        assert!(reference.contains(&row), "docs/exit-codes.md lacks{row}");
    }
}

/// Each row of "Where to look" names a file, and an item that the file defines.
#[test]
fn architecture_names_files_and_items_that_exist() {
    let page = pages::read("ARCHITECTURE.md").text;
    let (_, table) = page.split_once("## Where to look").unwrap();
    let (table, _) = table.split_once("## ").unwrap();
    let mut rows = 0;
    for row in table.lines().filter(|line| line.contains(".rs` | `")) {
        let cells: Vec<&str> = row
            .split('|')
            .map(|it| it.trim().trim_matches('`'))
            .collect();
        let (file, item) = (cells[2], cells[3]);
        let code = pages::read(file).text;
        let kinds = ["fn", "struct", "enum", "trait", "const", "static"];
        let is_defined = kinds.iter().any(|kind| {
            let start = format!("{kind} {item}");
            let after = code.match_indices(&start).map(|(at, _)| at + start.len());
            after
                .filter_map(|at| code[at..].chars().next())
                .any(|next| !next.is_alphanumeric() && next != '_')
        });
        assert!(is_defined, "{file} defines no `{item}`");
        rows += 1;
    }
    assert!(rows > 20, "{rows} rows");
}
