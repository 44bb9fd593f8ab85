//! `airlock policy check`: checks rules against tools, and finds rules that probably do not do what
//! their author intended.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use airlock_core::catalog::OWN_SERVER;
use airlock_core::flow::LabelMisfit;
use airlock_core::id::ToolId;
use airlock_core::policy::{Finding, Kind, Place, Policies, Severity};
use airlock_core::problem::Problem;
use airlock_core::rules::{IdleReason, IdleRule};
use airlock_policy_analysis::advice;
use clap::Args;
use codegen::closest::closest;
use codegen::description::Description;
use serde_json::{Value, json};

use super::format::{Files, FormatOptions, PolicyFormat};
use super::proofs::{ProofOptions, Proofs};
use super::sources::{Folders, LoadError, RuleSources, SourceOptions};
use crate::broker::misfits;
use crate::broker::tool_discovery::{self, OwnTools};
use crate::cli::options::usage;
use crate::cli::screen::Screen;
use crate::cli::{Outcome, exit, print, print_json};
use crate::config::{Environment, UnmatchedPattern, grants, policies};
use crate::render::{self, Sarif, SarifLevel, SarifResult, Style, counted};
use airlock_sandbox::clock::Clock;

#[derive(Debug, Args)]
pub(in crate::cli) struct PolicyCheckOptions {
    /// Folders of rules, or single files. The folders of the configuration are then not checked
    /// [default: the folders of the configuration]
    #[arg(value_name = "FOLDER")]
    folders: Vec<PathBuf>,
    /// Ignore a warning, in all rules or in one rule; errors cannot be ignored
    #[arg(long, value_name = "CODE[:RULE]")]
    except: Vec<String>,
    /// Also check a file of grants, as passed to `airlock run --grant`
    #[arg(long = "grant", value_name = "FILE")]
    grants: Vec<PathBuf>,
    #[command(flatten)]
    proofs: ProofOptions,
    #[command(flatten)]
    sources: SourceOptions,
    #[command(flatten)]
    pub(super) format: FormatOptions,
}

pub(super) fn run(
    options: PolicyCheckOptions,
    environment: &Environment,
    screen: &Screen,
) -> Outcome {
    let exceptions = options.except.iter().map(|it| Exception::read(it));
    let exceptions: Vec<Exception> = exceptions.collect::<Result<_, _>>()?;
    let tightening = options.sources.tightening().to_vec();
    let folders = match options.folders.is_empty() {
        true => options.sources.configured_paths(environment)?,
        false => options.folders.clone(),
    };
    for folder in &folders {
        if policies::read(folder, false)?.is_empty() {
            return Err(no_rules(folder));
        }
    }
    let named = Folders::Only(options.folders);
    let guesses = options.sources.guesses();
    let mut checked = match options.sources.open(named, environment, screen) {
        Ok(opened) => {
            note_ignored(&opened.ignored, "check", screen);
            let policies = opened.rules.policies();
            let mut checked =
                policies.map_or_else(PolicyCheckReport::default, PolicyCheckReport::new);
            let is_empty = policies.is_none() && opened.rules.rules().is_empty();
            if is_empty && !opened.flow.is_configured && options.grants.is_empty() {
                return Err(nothing_to_check());
            }
            checked.patterns = opened.rules.rules().len();
            checked.findings.extend(configured(&opened));
            if let Some(policies) = policies.filter(|_| options.proofs.prove) {
                let around = (environment, screen);
                let about = (&opened, policies);
                checked.prove(&options.proofs, about, around, &folders)?;
            }
            checked
        }
        Err(LoadError::Rules(findings)) => PolicyCheckReport {
            findings,
            ..PolicyCheckReport::default()
        },
        Err(LoadError::Other(problem)) => return Err(problem),
    };
    checked.guesses = guesses;
    let mut files = Files::of_rules(folders.iter().chain(&tightening))?;
    let now_ms = Clock::start().now_ms();
    for path in &options.grants {
        let found = grants::check(path, now_ms)?;
        files = files.and(found.name, path, found.text);
        *checked.grants.get_or_insert(0) += found.count;
        checked.findings.extend(found.findings);
    }
    checked.leave_out(exceptions)?;
    checked.show(options.format.format(), &files, Style::default())
}

fn nothing_to_check() -> Problem {
    let why = "the command names no folder of rules and no configuration file";
    let next = "name a folder, or add `--config FILE` to check its rules, groups and labels";
    usage("there is nothing to check", why, next)
}

/// Returns the problem of a folder without rules.
fn no_rules(folder: &Path) -> Problem {
    let why = format!(
        "no file in the folder `{}` ends in `.cedar`",
        folder.display()
    );
    let next = "name a folder with rules; without rules, policies deny every call";
    usage("there are no rules to check", why, next)
}

/// Says which folders of the configuration do not count, because the command names others.
pub(super) fn note_ignored(ignored: &[PathBuf], command: &str, screen: &Screen) {
    if ignored.is_empty() {
        return;
    }
    let paths = ignored.iter().map(|it| format!("`{}`", it.display()));
    let paths = paths.collect::<Vec<_>>().join(", ");
    screen.warning(&Problem::new(
        "policies-ignored",
        format!("the configured rules in {paths} do not count here"),
        format!("`airlock policy {command}` uses only the folders that the command names"),
        "name these folders too if they matter",
    ));
}

/// Returns the findings about the configuration's patterns and labels.
fn configured(opened: &RuleSources) -> Vec<Finding> {
    let own = OwnTools {
        discovery: true,
        extraction: true,
    };
    let own = tool_discovery::descriptions(own);
    let id = |it: &Description| ToolId::parse(&format!("{}.{}", it.server, it.name)).ok();
    let of_servers: Vec<ToolId> = opened.descriptions.iter().filter_map(id).collect();
    let tools = of_servers.iter().cloned().chain(own.iter().filter_map(id));
    let tools: Vec<ToolId> = tools.collect();
    let tools: Vec<&ToolId> = tools.iter().collect();
    let pattern = |IdleRule { rule, why }: IdleRule<'_>| {
        let place = place(rule.origin.as_deref().unwrap_or_default());
        let id = rule.id();
        match why {
            IdleReason::Overruled(other) => Finding::new(
                Kind::PatternOverruled,
                place,
                format!("the rule {id} never takes effect"),
                format!("the rule {other} wins wherever both match"),
                "remove one of the two rules, or change its pattern",
            ),
            IdleReason::Unmatched { closest } => Finding::new(
                Kind::PatternUnmatched,
                place,
                format!("the rule {id} matches no tool"),
                "",
                closest.map_or_else(
                    || "`airlock types --detail names` lists all tools".to_owned(),
                    |tool| format!("did you mean `{tool}`?"),
                ),
            ),
        }
    };
    let label = |misfit: LabelMisfit| {
        let (place, what) = (place(&misfit.origin), misfit.to_string());
        let (why, next) = (LabelMisfit::WHY, LabelMisfit::NEXT);
        Finding::new(Kind::LabelUnfitting, place, what, why, next)
    };
    let configured = &opened.flow.label_config;
    let labels = misfits(configured, &opened.descriptions);
    let unmatched = configured.unmatched(&of_servers);
    let unmatched = unmatched.into_iter();
    // A server whose tools are not known here is not misspelt.
    let unmatched: Vec<_> = unmatched
        .filter(|it| !it.is_server || !opened.servers.contains(&it.server))
        .collect();
    let meant: Vec<_> = unmatched.iter().filter(|it| it.is_server).collect();
    let is_meant = |tool: &ToolId| {
        let mut meant = meant.iter().filter_map(|it| it.closest.as_deref());
        meant.any(|server| server == &*tool.server.0)
    };
    let missing: Vec<Finding> = configured
        .missing(&of_servers)
        .into_iter()
        // Tables with a misspelt server are meant for these tools, and are a finding themselves.
        // airlock's own tools have no labels of their own.
        .filter(|(tool, _)| *tool.server.0 != *OWN_SERVER && !is_meant(tool))
        .map(|(tool, origin)| {
            Finding::new(
                Kind::LabelMissing,
                place(origin),
                format!("no label describes `{tool}`"),
                "a tool without labels counts as able to read and write everything",
                format!(
                    "write a table [labels.{}.tools.\"{}\"]",
                    tool.server.0, tool.tool.0
                ),
            )
        })
        .collect();
    let unmatched = unmatched.into_iter().map(|it| {
        let next = it.closest.map_or_else(
            || "correct the name, or remove the table".to_owned(),
            |meant| format!("did you mean `{meant}`?"),
        );
        let what = "these labels match no tool";
        Finding::new(Kind::LabelUnmatched, place(&it.origin), what, it.what, next)
    });
    let misspelt = opened.unmatched.iter().map(|it| {
        let (place, why) = (place(&it.origin), UnmatchedPattern::WHY);
        Finding::new(Kind::PatternUnmatched, place, it.what(), why, it.next())
    });
    let missing_roots = opened.flow.missing_roots.iter().map(|(name, origin)| {
        let what = format!("the root `{name}` is not an existing folder");
        let why = "a run does not start, and no path lies in the root";
        let next = "create the folder, or correct the path in [roots]";
        Finding::new(Kind::RootMissing, place(origin), what, why, next)
    });
    // If no tools are known, a pattern that matches none is not a finding.
    let tools = (!opened.descriptions.is_empty()).then_some(tools.as_slice());
    let patterns = opened.rules.idle(tools).into_iter().map(pattern);
    let labels = labels.into_iter().map(label);
    patterns
        .chain(labels)
        .chain(unmatched)
        .chain(missing)
        .chain(misspelt)
        .chain(missing_roots)
        .collect()
}

/// Returns the place that an origin such as `airlock.toml:12` names.
fn place(origin: &str) -> Place {
    let (file, line) = origin.rsplit_once(':').unwrap_or((origin, ""));
    Place {
        file: file.into(),
        line: line.parse().unwrap_or(1),
        column: 1,
    }
}

/// Prints the findings about invalid rules, for commands that need valid rules.
pub(super) fn show_findings(
    findings: Vec<Finding>,
    format: PolicyFormat,
    files: &Files,
) -> Outcome {
    let checked = PolicyCheckReport {
        findings,
        ..PolicyCheckReport::default()
    };
    checked.show(format, files, Style::default())
}

/// The SARIF kind for questions that `--prove` could not answer.
const OPEN: &str = "not-proved";

/// A warning to ignore.
struct Exception {
    kind: Kind,
    /// The id of a rule; `None` ignores the warning in all rules.
    rule: Option<String>,
}

impl Exception {
    fn read(text: &str) -> Result<Self, Problem> {
        let (word, rule) = match text.split_once(':') {
            Some((word, rule)) => (word, Some(rule.to_owned())),
            None => (text, None),
        };
        let what = format!("invalid `--except {text}`");
        let Some(kind) = Kind::ALL.iter().find(|kind| kind.as_str() == word) else {
            let meant = closest(word, Kind::ALL.iter().map(|kind| kind.as_str()));
            let next = meant.map_or_else(
                || "docs/policy-check.md lists the codes".to_owned(),
                |meant| format!("did you mean `{meant}`?"),
            );
            return Err(usage(what, format!("there is no code `{word}`"), next));
        };
        if kind.severity() == Severity::Error {
            let why = format!("`{word}` is an error, and no run starts with such rules");
            return Err(usage(what, why, "correct the rule instead"));
        }
        Ok(Self { kind: *kind, rule })
    }

    fn is_about(&self, finding: &Finding) -> bool {
        let is_own = |rule: &String| finding.rule.as_deref() == Some(rule);
        self.kind == finding.kind && self.rule.as_ref().is_none_or(is_own)
    }
}

/// The result of the check.
#[derive(Default)]
struct PolicyCheckReport {
    findings: Vec<Finding>,
    excepted: usize,
    rules: Vec<String>,
    /// Number of patterns (`[rules]`).
    patterns: usize,
    places: BTreeMap<String, Place>,
    idle: Vec<String>,
    digest: String,
    proofs: Option<Proofs>,
    /// Number of grants in the named files.
    grants: Option<usize>,
    /// Number of guesses that are left in the configuration file, and its name.
    guesses: Option<(usize, String)>,
}

impl PolicyCheckReport {
    fn new(policies: &Policies) -> Self {
        let id = |rule: &airlock_core::policy::Rule| rule.id.to_string();
        Self {
            findings: advice(policies),
            excepted: 0,
            patterns: 0,
            rules: policies.rules().iter().map(id).collect(),
            places: policies
                .rules()
                .iter()
                .map(|rule| (id(rule), rule.place.clone()))
                .collect(),
            idle: policies.idle().map(id).collect(),
            digest: policies.digest().to_string(),
            proofs: None,
            grants: None,
            guesses: None,
        }
    }

    fn prove(
        &mut self,
        options: &ProofOptions,
        (opened, policies): (&RuleSources, &Policies),
        around: (&Environment, &Screen),
        folders: &[PathBuf],
    ) -> Result<(), Problem> {
        let about = (opened, policies);
        let proofs = Proofs::prove(options, about, &self.findings, around, folders)?;
        let proved = proofs.findings(policies);
        // The proof shows that the rule can be removed, so its finding replaces the earlier one.
        let is_again = |it: &Finding| {
            let same = |one: &Finding| one.rule == it.rule && one.kind == it.kind;
            proved.iter().any(same)
        };
        self.findings.retain(|it| !is_again(it));
        self.findings.extend(proved);
        self.findings.sort();
        self.proofs = Some(proofs);
        Ok(())
    }

    /// Applies exceptions. An exception that matches nothing is an error, because it would hide a
    /// later mistake of its kind.
    fn leave_out(&mut self, exceptions: Vec<Exception>) -> Result<(), Problem> {
        let could_be_there = !self.digest.is_empty() || self.patterns > 0;
        for exception in exceptions {
            let before = self.findings.len();
            self.findings.retain(|finding| !exception.is_about(finding));
            let left_out = before - self.findings.len();
            self.excepted += left_out;
            if left_out == 0 && could_be_there {
                let rule = exception
                    .rule
                    .map(|rule| format!(":{rule}"))
                    .unwrap_or_default();
                let what = format!(
                    "`--except {}{rule}` matches no warning",
                    exception.kind.as_str()
                );
                let why = "the rules have no such warning, or the option is given twice";
                return Err(usage(what, why, "remove the option"));
            }
        }
        Ok(())
    }

    fn show(&self, format: PolicyFormat, files: &Files, style: Style) -> Outcome {
        match format {
            PolicyFormat::Text => print(&self.text(files, style))?,
            PolicyFormat::Json => print_json(&self.json())?,
            PolicyFormat::Sarif => files.print_sarif(&self.sarif())?,
        }
        let is_whole = self.proofs.as_ref().is_none_or(Proofs::is_whole);
        let passed = self.findings.is_empty() && is_whole;
        Ok(if passed { exit::DONE } else { exit::POLICY })
    }

    fn text(&self, files: &Files, style: Style) -> String {
        let mut text = String::new();
        for finding in &self.findings {
            let file = files.text(&finding.place.file);
            text.push_str(&render::policy_finding(finding, file, style));
            text.push('\n');
        }
        for id in &self.idle {
            text.push_str(&format!(
                "note: the rule `{id}` applies to no tool of these servers\n"
            ));
        }
        if let Some((count, file)) = &self.guesses {
            let guesses = counted(*count, "mark");
            text.push_str(&format!(
                "note: {file} has {guesses} `# GUESS`: confirm or correct each guess, and remove \
                 its mark\n"
            ));
        }
        let proofs = self.proofs.as_ref();
        text.push_str(&proofs.map(Proofs::text).unwrap_or_default());
        let summary = render::policy_summary(&self.findings);
        let excepted = match self.excepted {
            0 => String::new(),
            1 => ", 1 warning excepted".to_owned(),
            many => format!(", {many} warnings excepted"),
        };
        let grants = match self.grants {
            None => String::new(),
            Some(1) => "1 grant, ".to_owned(),
            Some(many) => format!("{many} grants, "),
        };
        let patterns = match self.patterns {
            0 => String::new(),
            count => format!("{}, ", counted(count, "pattern")),
        };
        text.push_str(&match self.digest.is_empty() {
            true => format!("{patterns}{grants}{summary}{excepted}\n"),
            false => format!(
                "{} rules, {grants}{summary}{excepted} ({})\n",
                self.rules.len(),
                self.digest
            ),
        });
        text.push_str(&proofs.map(Proofs::rests).unwrap_or_default());
        text
    }

    fn json(&self) -> Value {
        let finding = |finding: &Finding| {
            let mut shown = json!(finding);
            if let Some(members) = shown.as_object_mut() {
                members.insert("severity".into(), word(finding).into());
            }
            shown
        };
        let mut shown = json!({
            "findings": self.findings.iter().map(finding).collect::<Vec<_>>(),
            "excepted": self.excepted,
            "grants": self.grants,
            "rules": self.rules,
            "idle": self.idle,
            "digest": self.digest,
            "guesses": self.guesses.as_ref().map_or(0, |(count, _)| *count),
        });
        if let (Some(proofs), Some(members)) = (&self.proofs, shown.as_object_mut()) {
            members.insert("proofs".into(), proofs.json());
        }
        shown
    }

    fn sarif(&self) -> Sarif {
        let result = |finding: &Finding| SarifResult {
            rule: finding.kind.as_str(),
            level: match finding.kind.severity() {
                Severity::Error => SarifLevel::Error,
                Severity::Warning => SarifLevel::Warning,
            },
            message: describe(finding),
            place: Some(finding.place.clone()),
            fix: finding.fix.clone(),
        };
        let rules = Kind::ALL.iter().map(|kind| (kind.as_str(), kind.about()));
        let mut log = Sarif {
            rules: rules.collect(),
            results: self.findings.iter().map(result).collect(),
        };
        if let Some(proofs) = &self.proofs {
            log.rules
                .push((OPEN, "It is not proved whether a rule has an effect."));
            let open = |(rule, why): &(std::sync::Arc<str>, String)| SarifResult {
                rule: OPEN,
                level: SarifLevel::Warning,
                message: format!("not proved whether the rule `{rule}` has an effect: {why}"),
                place: self.places.get(&**rule).cloned(),
                fix: None,
            };
            log.results.extend(proofs.open().iter().map(open));
        }
        log
    }
}

fn word(finding: &Finding) -> &'static str {
    match finding.kind.severity() {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

/// Joins what, why and next into one text.
fn describe(finding: &Finding) -> String {
    let mut said = finding.what.clone();
    for (sign, part) in [(": ", &finding.why), ("; ", &finding.next)] {
        if !part.is_empty() {
            said.push_str(sign);
            said.push_str(part);
        }
    }
    said
}
