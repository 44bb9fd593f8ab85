//! `airlock types`: prints the tools that a script can call, from servers or from a saved list.

pub(super) mod saved;

use std::collections::HashSet;

use airlock_core::id::{ServerName, ToolId, ToolName};
use airlock_core::problem::Problem;
use airlock_core::tool_pattern::ToolPattern;
use clap::{Args, ValueEnum};
use codegen::check::ToolMention;
use codegen::closest::closest_tool;
use codegen::declare::{self, Declarations, DegradedTool, Level};
use codegen::description::Description;
use codegen::rust;
use codegen::shape::json as shapes;
use codegen::stub::{ServerStubs, StubTable, ToolStub};
use serde_json::{Value, json};

use super::connect::is_about_runs;
use super::options::{ServerView, usage};
use super::run::build_problem;
use super::screen::Screen;
use super::{Outcome, exit, print, print_json, runtime};
use crate::broker::Broker;
use crate::broker::tool_discovery::{self, OwnTools};
use crate::config::Environment;
use crate::render::escape;

#[derive(Debug, Args)]
pub(super) struct TypesOptions {
    /// Print only these tools, for example 'fs.read_*' [default: all]
    #[arg(value_name = "PATTERN")]
    patterns: Vec<String>,
    /// How much to print about each tool
    #[arg(long, value_enum, default_value_t = Detail::Full)]
    detail: Detail,
    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Ts)]
    format: Format,
    /// Read tools from a saved tools/list result ([NAME=]FILE) instead of connecting to servers
    #[arg(long, value_name = "FILE")]
    from: Vec<String>,
    #[command(flatten)]
    pub(super) view: ServerView,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Detail {
    /// The names of the tools
    Names,
    /// The names, and the first sentence of each description
    Lines,
    /// The types, without descriptions
    Signatures,
    /// The types and the complete descriptions
    Full,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// TypeScript declarations
    Ts,
    /// The structure of all arguments and results, as JSON
    Json,
    /// Rust types, for a program that embeds airlock
    Rust,
}

impl From<Detail> for Level {
    fn from(detail: Detail) -> Self {
        match detail {
            Detail::Names => Self::Names,
            Detail::Lines => Self::Lines,
            Detail::Signatures => Self::Signatures,
            Detail::Full => Self::Full,
        }
    }
}

/// The tools to describe, from servers, saved lists or a lock file.
pub(super) struct TypeSource {
    pub(super) descriptions: Vec<Description>,
    pub(super) stubs: StubTable,
    pub(super) problems: Vec<Problem>,
    /// The tools whose calls a rule always denies. They are not declared.
    pub(super) denied: HashSet<ToolId>,
}

impl TypeSource {
    /// Returns for each description, in order, what findings may contain about its tool.
    pub(super) fn mentions(&self) -> Vec<ToolMention> {
        let denied = |it: &Description| {
            let of = |id: &ToolId| *id.server.0 == *it.server && *id.tool.0 == *it.name;
            self.denied.iter().any(of)
        };
        let mention = |it: &Description| match denied(it) {
            true => ToolMention::Nothing,
            false => ToolMention::Everything,
        };
        self.descriptions.iter().map(mention).collect()
    }

    /// Adds airlock's own tools, which scripts can call too.
    pub(super) fn with_own(self, extraction: bool) -> Self {
        let mut descriptions = self.descriptions;
        descriptions.extend(tool_discovery::descriptions(OwnTools {
            discovery: true,
            extraction,
        }));
        Self {
            stubs: StubTable::build(&descriptions),
            descriptions,
            ..self
        }
    }
}

pub(super) fn run(options: TypesOptions, environment: &Environment) -> Outcome {
    let screen = Screen::of_process(environment, false);
    let patterns = options
        .patterns
        .iter()
        .map(|text| pattern(text))
        .collect::<Result<Vec<_>, _>>()?;
    if options.format != Format::Ts && options.detail != Detail::Full {
        let what = "`--detail` works only with `--format ts`";
        let why = "levels of detail exist only for TypeScript declarations";
        return Err(usage(what, why, "remove `--detail` or `--format`"));
    }
    let (format, detail, is_json) = (options.format, options.detail, options.view.json);
    let wanted = options.patterns.clone();
    let may_miss = options.view.servers.skip_unreachable;
    let (mut found, extraction) = found(options, environment, &screen)?;
    let denied = std::mem::take(&mut found.denied);
    let chosen = |server: &str, tool: &str| {
        let id = ToolId {
            server: ServerName(server.into()),
            tool: ToolName(tool.into()),
        };
        let is_chosen = patterns.is_empty() || patterns.iter().any(|it| it.matches(&id));
        is_chosen && !denied.contains(&id)
    };
    // airlock's own tools can be called only from scripts, so only the declarations contain them.
    let found = match format {
        Format::Ts if !found.descriptions.is_empty() => found.with_own(extraction),
        _ => found,
    };
    let stubs = found.stubs.servers.iter();
    let tools: Vec<String> = stubs
        .flat_map(|server| server.tools.iter().map(move |tool| (server, tool)))
        .filter(|(server, tool)| chosen(&server.server, &tool.wire_name))
        .map(|(server, tool)| format!("{}.{}", server.server, tool.wire_name))
        .collect();
    let Declarations { text, degraded } = match format {
        Format::Ts => {
            let only =
                |server: &ServerStubs, tool: &ToolStub| chosen(&server.server, &tool.wire_name);
            declare::declare(&found.stubs, &found.descriptions, detail.into(), &only)
        }
        Format::Json => as_json(&found.descriptions, &chosen),
        Format::Rust => as_rust(&found.descriptions, &chosen),
    };
    warn(&screen, &found.problems, &degraded);
    if is_json {
        let degraded: Vec<Value> = degraded.iter().map(degraded_json).collect();
        print_json(&json!({
            "tools": tools, "declarations": text, "degraded": degraded, "problems": found.problems,
        }))?;
    } else {
        print(&text)?;
    }
    if tools.is_empty() && !is_json {
        screen.remark(&nothing(&wanted, &found, &denied));
    }
    let is_unreachable = |problem: &Problem| problem.code == "server-unavailable";
    if may_miss || !found.problems.iter().any(is_unreachable) {
        return Ok(exit::DONE);
    }
    screen.show(" next: add `--skip-unreachable` to continue without this server\n");
    Ok(exit::CONFIGURATION)
}

/// Returns the tools, and whether scripts can extract values.
fn found(
    options: TypesOptions,
    environment: &Environment,
    screen: &Screen,
) -> Result<(TypeSource, bool), Problem> {
    if !options.from.is_empty() {
        saved::refuse_servers(&options.view.servers)?;
    }
    let config = options.view.load(environment, screen)?;
    let extraction = config.extract.is_some();
    if !options.from.is_empty() {
        return Ok((saved::for_config(&options.from, &config)?, extraction));
    }
    runtime()?.block_on(async {
        let broker = Broker::builder()
            .config(config)
            .build()
            .await
            .map_err(build_problem)?;
        let descriptions = broker.descriptions().to_vec();
        let mut problems = broker.problems();
        problems.extend(broker.unusable_tools());
        let catalog = broker.catalog();
        let denied = catalog.tools().filter(|tool| tool.denied);
        let found = TypeSource {
            stubs: StubTable::build(&descriptions),
            descriptions,
            problems,
            denied: denied.map(|tool| tool.id.clone()).collect(),
        };
        broker.close().await;
        Ok((found, extraction))
    })
}

fn as_json(descriptions: &[Description], chosen: &dyn Fn(&str, &str) -> bool) -> Declarations {
    let mut sorted: Vec<&Description> = descriptions
        .iter()
        .filter(|it| chosen(&it.server, &it.name))
        .collect();
    sorted.sort_by(|a, b| (&a.server, &a.name).cmp(&(&b.server, &b.name)));
    let mut degraded = Vec::new();
    let mut tools = serde_json::Map::new();
    for tool in sorted {
        let shape = codegen::shape::tool_shape(tool);
        let mut value = shapes::tool(&shape);
        if let Some(members) = value.as_object_mut() {
            members.insert("description".into(), tool.digest.to_string().into());
        }
        tools.insert(format!("{}.{}", tool.server, tool.name), value);
        if !shape.degraded.is_empty() {
            degraded.push(DegradedTool {
                server: tool.server.clone(),
                wire_name: tool.name.clone(),
                found: shape.degraded,
            });
        }
    }
    let text = serde_json::to_string_pretty(&Value::Object(tools)).unwrap_or_default();
    Declarations {
        text: text + "\n",
        degraded,
    }
}

fn as_rust(descriptions: &[Description], chosen: &dyn Fn(&str, &str) -> bool) -> Declarations {
    let chosen: Vec<Description> = descriptions
        .iter()
        .filter(|it| chosen(&it.server, &it.name))
        .cloned()
        .collect();
    // Panics in the generator are caught and reported as problems, so their messages are not
    // printed.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let types = rust::of_tools(&chosen);
    std::panic::set_hook(hook);
    Declarations {
        text: types.text,
        degraded: types.degraded,
    }
}

/// Explains why no tool is printed, and what exists.
fn nothing(wanted: &[String], found: &TypeSource, denied: &HashSet<ToolId>) -> String {
    let denied: HashSet<String> = denied.iter().map(ToString::to_string).collect();
    let all = found.descriptions.iter();
    let all = all.map(|it| format!("{}.{}", it.server, it.name));
    let all: Vec<String> = all.filter(|name| !denied.contains(name)).collect();
    let Some(first) = wanted.first().filter(|_| !all.is_empty()) else {
        let next = super::servers::how_to_add_a_server();
        return format!("no server offers a tool; {next}, or read a file with --from\n");
    };
    let next = match closest_tool(first, all.iter().map(String::as_str)) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => "`airlock types --detail names` with the same server flags lists all tools".into(),
    };
    format!(
        "no tool matches {}; {next}\n",
        escape::line(&wanted.join(", "))
    )
}

fn warn(screen: &Screen, problems: &[Problem], degraded: &[DegradedTool]) {
    let of_servers = problems.iter().filter(|problem| !is_about_runs(problem));
    of_servers.for_each(|problem| screen.warning(problem));
    for tool in degraded {
        for what in &tool.found {
            let line = format!(
                "degraded: {}.{} {}: {}",
                tool.server, tool.wire_name, what.path, what.reason
            );
            screen.remark(&format!("{}\n", escape::line(&line)));
        }
    }
}

fn degraded_json(tool: &DegradedTool) -> Value {
    let found = tool.found.iter();
    let found: Vec<Value> = found
        .map(|it| json!({"path": it.path, "reason": it.reason}))
        .collect();
    json!({"tool": format!("{}.{}", tool.server, tool.wire_name), "found": found})
}

fn pattern(text: &str) -> Result<ToolPattern, Problem> {
    ToolPattern::parse(text).map_err(|bad| {
        let next = "write SERVER.TOOL, with * for any characters, such as 'fs.read_*'";
        usage(format!("invalid pattern '{text}'"), bad.to_string(), next)
    })
}
