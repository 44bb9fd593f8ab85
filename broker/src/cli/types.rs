//! `airlock types`: what a script may call, from servers or from a saved list.

pub(super) mod saved;

use airlock_core::id::{ServerName, ToolId, ToolName};
use airlock_core::problem::Problem;
use airlock_core::rules::Pattern;
use clap::{Args, ValueEnum};
use codegen::declare::{self, Declarations, DegradedTool, Level};
use codegen::description::Description;
use codegen::rust;
use codegen::shape::json as shapes;
use codegen::stub::{ServerStubs, StubTable, ToolStub};
use serde_json::{Value, json};

use super::options::{ServerOptions, StateOptions, usage};
use super::run::build_problem;
use super::screen::Screen;
use super::visit::is_about_runs;
use super::{Outcome, exit, print, print_json, runtime};
use crate::broker::Broker;
use crate::broker::own::{self, Own};
use crate::config::{Config, Environment};
use crate::render::escape;

#[derive(Debug, Args)]
pub(super) struct TypesOptions {
    /// Print only these tools, for example 'fs.read_*' [default: all]
    #[arg(value_name = "PATTERN")]
    patterns: Vec<String>,
    /// How much to print about each tool
    #[arg(long, value_enum, default_value_t = Detail::Full)]
    detail: Detail,
    /// Output format: TypeScript declarations, JSON, or Rust types for a program that embeds
    /// airlock
    #[arg(long, value_enum, default_value_t = Format::Ts)]
    format: Format,
    /// Read tools from a saved tools/list result ([NAME=]FILE) instead of connecting to servers
    #[arg(long, value_name = "FILE")]
    from: Vec<String>,
    #[command(flatten, next_help_heading = "Servers")]
    servers: ServerOptions,
    #[command(flatten)]
    state: StateOptions,
    /// Print one JSON object
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Detail {
    Names,
    Lines,
    Signatures,
    Full,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Ts,
    Json,
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

/// What there is to write about, wherever it came from.
pub(super) struct Found {
    pub(super) descriptions: Vec<Description>,
    pub(super) stubs: StubTable,
    pub(super) problems: Vec<Problem>,
}

impl Found {
    /// With airlock's own tools, as scripts find them.
    pub(super) fn with_own(self, extraction: bool) -> Self {
        let mut descriptions = self.descriptions;
        descriptions.extend(own::descriptions(Own {
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
        let why = "levels of detail are levels of the TypeScript declarations";
        return Err(usage("`--detail` has no effect here", why, "leave it out"));
    }
    let (format, detail, is_json) = (options.format, options.detail, options.json);
    let (found, extraction) = found(options, environment, &screen)?;
    let chosen = |server: &str, tool: &str| {
        let id = ToolId {
            server: ServerName(server.into()),
            tool: ToolName(tool.into()),
        };
        patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(&id))
    };
    // They are scripts' and nobody else's.
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
        let why = if patterns.is_empty() {
            "no server offers a tool"
        } else {
            "no tool fits the patterns"
        };
        screen.remark(&format!(
            "{why}; --server, --mcp-config, --demo and --from say which tools there are\n"
        ));
    }
    let is_unreachable = |problem: &Problem| problem.code == "server-unavailable";
    Ok(if found.problems.iter().any(is_unreachable) {
        exit::CONFIGURATION
    } else {
        exit::DONE
    })
}

/// The tools, and whether scripts have somebody who reads values.
fn found(
    options: TypesOptions,
    environment: &Environment,
    screen: &Screen,
) -> Result<(Found, bool), Problem> {
    if !options.from.is_empty() {
        if options.servers.names_any() {
            let why = "--from takes the tools from a file and connects to nothing";
            let next = "leave --from or the servers out";
            return Err(usage("two kinds of sources are named", why, next));
        }
        let found = saved::read(&options.from, options.servers.descriptions)?;
        return Ok((found, false));
    }
    let mut flags = options.servers.into_flags()?;
    flags.state_dir = options.state.state_dir;
    let config = Config::load(flags, environment)?;
    config
        .warnings
        .iter()
        .for_each(|warning| screen.warning(warning));
    let extraction = config.extract.is_some();
    runtime()?.block_on(async {
        let broker = Broker::builder()
            .config(config)
            .build()
            .await
            .map_err(build_problem)?;
        let descriptions = broker.descriptions().to_vec();
        let mut problems = broker.problems();
        problems.extend(broker.unusable_tools());
        let found = Found {
            stubs: StubTable::build(&descriptions),
            descriptions,
            problems,
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
        let shape = codegen::shape::of(tool);
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
    // What panics inside is caught and listed; nobody needs to read it on the way.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let types = rust::of_tools(&chosen);
    std::panic::set_hook(hook);
    Declarations {
        text: types.text,
        degraded: types.degraded,
    }
}

fn warn(screen: &Screen, problems: &[Problem], degraded: &[DegradedTool]) {
    let told = problems.iter().filter(|problem| !is_about_runs(problem));
    told.for_each(|problem| screen.warning(problem));
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

fn pattern(text: &str) -> Result<Pattern, Problem> {
    Pattern::parse(text).map_err(|bad| {
        let next = "write SERVER.TOOL, with * for any characters, such as 'fs.read_*'";
        usage(
            format!("the pattern '{text}' cannot be read"),
            bad.to_string(),
            next,
        )
    })
}
