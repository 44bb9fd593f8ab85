//! Parses `airlock.toml`, airlock's own configuration file. Unknown keys are errors, and every rule
//! keeps its line number.

use std::collections::BTreeMap;
use std::path::PathBuf;

use airlock_core::level::Level;
use airlock_core::problem::Problem;
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, Deserializer};

use super::extract::FileExtract;
use super::invalid;
use super::labels::{self, FileFlow, LabelTables};
use super::located::{LineIndex, LocatedText, unreadable, unreadable_at};
use super::oauth::FileOauth;
use super::policies::PolicyPath;
use super::server::DeclaredServer;
use super::server_table::ServerTable;
use super::settings::Settings;

/// The content of one file. Placeholders are not resolved yet.
#[derive(Debug, Default)]
pub(crate) struct FileConfig {
    pub(crate) settings: Settings,
    pub(crate) labels_keep: Option<LocatedText>,
    pub(crate) suspend_after: Option<LocatedText>,
    pub(crate) journals_keep: Option<LocatedText>,
    pub(crate) approver: Option<LocatedText>,
    pub(crate) anchor: Option<LocatedText>,
    pub(crate) extract: Option<(FileExtract, String)>,
    pub(crate) oauth: Option<(FileOauth, String)>,
    pub(crate) limits: Vec<(String, LocatedText)>,
    pub(crate) servers: Vec<DeclaredServer>,
    pub(crate) rules: Vec<(Level, LocatedText)>,
    pub(crate) flow: FileFlow,
    pub(crate) policies: Vec<PolicyPath>,
    pub(crate) groups: Vec<(String, Vec<LocatedText>)>,
    pub(crate) pass: Option<Vec<LocatedText>>,
    pub(crate) offer: Vec<LocatedText>,
}

/// The keys that are not [`Settings`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    labels_keep: Option<Spanned<String>>,
    /// How long a run of a host waits for people, before it is suspended.
    suspend_after: Option<Spanned<String>>,
    /// How long the journals of a run chain are kept.
    journals_keep: Option<Spanned<String>>,
    approver: Option<Spanned<String>>,
    anchor: Option<Spanned<String>>,
    extract: Option<Spanned<FileExtract>>,
    /// How airlock logs in to servers.
    oauth: Option<Spanned<FileOauth>>,
    /// What servers may request from hosts, and whether hosts receive the servers' log messages.
    pass: Option<Vec<Spanned<String>>>,
    /// The servers whose prompts and resources hosts can use.
    #[serde(default)]
    offer: Vec<Spanned<String>>,
    #[serde(default)]
    limits: BTreeMap<String, Spanned<Amount>>,
    #[serde(default)]
    servers: BTreeMap<String, Spanned<ServerTable>>,
    #[serde(default)]
    rules: RuleTable,
    /// Folders of rules, relative to this file.
    #[serde(default)]
    policies: Vec<PathBuf>,
    #[serde(default)]
    tighten: Vec<PathBuf>,
    #[serde(default)]
    groups: BTreeMap<String, Vec<Spanned<String>>>,
    #[serde(default)]
    labels: BTreeMap<String, Spanned<labels::ServerLabelTable>>,
    #[serde(default)]
    roots: BTreeMap<String, Spanned<PathBuf>>,
    #[serde(default)]
    known_destinations: Vec<Spanned<String>>,
    #[serde(default)]
    input_reads: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Amount {
    Count(u64),
    Text(String),
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleTable {
    #[serde(default)]
    allow: Vec<Spanned<String>>,
    #[serde(default)]
    ask: Vec<Spanned<String>>,
    #[serde(default)]
    deny: Vec<Spanned<String>>,
}

/// Maximum number of limits in a file, larger than the number of known names.
const LIMITS_MAX: usize = 100;

/// Parses a file. `name` is its name in messages and origins.
pub(crate) fn parse(name: &str, text: &str) -> Result<FileConfig, Problem> {
    let help = "correct the file; docs/configuration.md lists all keys";
    let failed = |error: toml::de::Error| unreadable(name, text, &error, help);
    let mut table = DeTable::parse(text).map_err(failed)?;
    let settings = Settings::take(table.get_mut()).map_err(failed)?;
    let keys: Vec<_> = table.get_ref().keys().map(Spanned::span).collect();
    let document = Document::deserialize(Deserializer::from(table)).map_err(|error| {
        let mut why = error.message().to_owned();
        if error.span().is_some_and(|span| keys.contains(&span)) {
            let flags = Settings::flags();
            let settings = flags.get_arguments().filter(|it| it.get_id() != "no_tsc");
            settings.for_each(|it| why.push_str(&format!(", `{}`", it.get_id())));
        }
        unreadable_at(name, text, error.span(), why, help)
    })?;
    let limits = document.limits.len();
    if limits > LIMITS_MAX {
        let why = format!("the file has {limits} limits; the maximum is {LIMITS_MAX}");
        let what = format!("{name} has too many limits");
        return Err(invalid(what, why, "remove entries"));
    }
    let tables = LabelTables {
        labels: document.labels,
        roots: document.roots,
        known_destinations: document.known_destinations,
        input_reads: document.input_reads,
    };
    let lines = LineIndex::new(text);
    let place = |offset| format!("{name}:{}", lines.line(offset));
    let flow = labels::read(name, &lines, tables)?;
    let located = |spanned: Spanned<String>| {
        let origin = place(spanned.span().start);
        LocatedText {
            text: spanned.into_inner(),
            origin,
        }
    };
    let policy = |path, tightens| PolicyPath { path, tightens };
    let permitting = document.policies.into_iter().map(|it| policy(it, false));
    let tightening = document.tighten.into_iter().map(|it| policy(it, true));
    let groups = document.groups.into_iter();
    let groups = groups.map(|(group, all)| (group, all.into_iter().map(located).collect()));
    let groups: Vec<(String, Vec<LocatedText>)> = groups.collect();
    if let Some((group, _)) = groups.iter().find(|(group, _)| !is_group_name(group)) {
        let what = format!("invalid group name `{group}` ({name})");
        let why = "expected a letter, then letters, digits, `_` or `-`";
        return Err(invalid(what, why, "rename the group"));
    }
    let levels = [
        (Level::Allow, document.rules.allow),
        (Level::AskRun, document.rules.ask),
        (Level::Deny, document.rules.deny),
    ];
    let limits = document.limits.into_iter().map(|(key, amount)| {
        let origin = place(amount.span().start);
        let text = match amount.into_inner() {
            Amount::Count(number) => number.to_string(),
            Amount::Text(text) => text,
        };
        (key.replace('_', "-"), LocatedText { text, origin })
    });
    let servers = document.servers.into_iter().map(|(server, table)| {
        let origin = place(table.span().start);
        table.into_inner().declare(server, origin)
    });
    Ok(FileConfig {
        settings,
        labels_keep: document.labels_keep.map(located),
        suspend_after: document.suspend_after.map(located),
        journals_keep: document.journals_keep.map(located),
        pass: document
            .pass
            .map(|it| it.into_iter().map(located).collect()),
        offer: document.offer.into_iter().map(located).collect(),
        approver: document.approver.map(located),
        anchor: document.anchor.map(located),
        extract: document.extract.map(|table| {
            let origin = place(table.span().start);
            (table.into_inner(), origin)
        }),
        oauth: document.oauth.map(|table| {
            let origin = place(table.span().start);
            (table.into_inner(), origin)
        }),
        limits: limits.collect(),
        servers: servers.collect::<Result<_, _>>()?,
        rules: levels
            .into_iter()
            .flat_map(|(level, patterns)| patterns.into_iter().map(move |pattern| (level, pattern)))
            .map(|(level, pattern)| (level, located(pattern)))
            .collect(),
        flow,
        policies: permitting.chain(tightening).collect(),
        groups,
    })
}

fn is_group_name(name: &str) -> bool {
    airlock_core::id::ServerName::parse(name).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::server::{ServerTarget, ToolTrust};
    use crate::upstream::{Era, EraChoice};

    #[test]
    fn parse_refuses_more_limits_than_the_maximum() {
        let limits: String = (0..=LIMITS_MAX).map(|it| format!("a{it} = 1\n")).collect();
        let refused = parse("a.toml", &format!("[limits]\n{limits}")).unwrap_err();
        assert_eq!(refused.why, "the file has 101 limits; the maximum is 100");
    }

    const WHOLE: &str = r#"
state_dir = "/var/lib/airlock"
fsync = "always"

[limits]
timeout = "5s"
calls = 3

[servers.fs]
command = "npx -y 'a b'"
env = { TOKEN = "${env:TOKEN}" }
read_only = ["read_*"]
destructive = ["delete_*"]

[servers.docs]
url = "https://example.com/mcp"
headers = { Authorization = "Bearer ${env:T}" }
era = "2025-11-25"
in_flight = 2

[rules]
allow = ["fs.read_*",
         "docs.*"]
deny = ["fs.delete*"]
"#;

    #[test]
    fn file_parses_and_rules_know_their_lines() {
        let file = parse("airlock.toml", WHOLE).unwrap();
        let rules: Vec<_> = file
            .rules
            .iter()
            .map(|(level, at)| (*level, at.text.as_str(), at.origin.as_str()))
            .collect();
        assert_eq!(
            rules,
            [
                (Level::Allow, "fs.read_*", "airlock.toml:22"),
                (Level::Allow, "docs.*", "airlock.toml:23"),
                (Level::Deny, "fs.delete*", "airlock.toml:24"),
            ]
        );
        assert_eq!(
            file.limits
                .iter()
                .map(|(key, at)| (key.as_str(), at.text.as_str()))
                .collect::<Vec<_>>(),
            [("calls", "3"), ("timeout", "5s")]
        );
        let [docs, fs] = &file.servers[..] else {
            panic!("{:?}", file.servers)
        };
        assert!(
            matches!(&docs.target, ServerTarget::Http { url, .. } if url == "https://example.com/mcp")
        );
        assert_eq!(
            (docs.tuning.era, docs.tuning.in_flight_max),
            (Some(EraChoice::Pinned(Era::Legacy)), Some(2))
        );
        assert!(
            matches!(&fs.target, ServerTarget::Stdio { command, args, .. } if command == "npx" && args[1] == "a b")
        );
        assert_eq!(
            fs.trust,
            ToolTrust {
                read_only: vec!["read_*".into()],
                destructive: vec!["delete_*".into()],
                origin: "airlock.toml:9".into(),
                ..ToolTrust::default()
            }
        );
    }

    #[test]
    fn file_errors_name_line_without_quoting_file() {
        for (text, what, why) in [
            (
                "\n[serverz]",
                "a.toml, line 2 is invalid",
                "unknown field `serverz`",
            ),
            (
                "[rules]\nalow = []",
                "a.toml, line 2 is invalid",
                "unknown field `alow`",
            ),
            ("[servers.x]\n", "invalid server `x` (a.toml:1)", "neither"),
            (
                "[servers.x]\ncommand='a'\nurl='http://b'",
                "invalid server `x` (a.toml:1)",
                "cannot be combined",
            ),
            (
                "[servers.x]\nurl='http://b'\nera='2024'",
                "invalid server `x` (a.toml:1)",
                "invalid `era` value `2024`",
            ),
            ("[servers.x]\nenv = { T = \"hush\" ", "a.toml, line", ""),
        ] {
            let problem = parse("a.toml", text).unwrap_err();
            assert!(
                problem.what.starts_with(what) && problem.why.contains(why),
                "{problem}"
            );
            assert!(!problem.to_string().contains("hush"));
        }
    }
}
