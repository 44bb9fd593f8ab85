//! `airlock types`: what a script may call.

use airlock_core::problem::Problem;
use airlock_core::rules::Pattern;
use clap::{Args, ValueEnum};
use codegen::declare::Level;

use super::options::{ServerOptions, StateOptions, usage};
use super::run::build_problem;
use super::screen::Screen;
use super::{Outcome, exit, print, print_json, runtime};
use crate::broker::Broker;
use crate::config::{Config, Environment};

#[derive(Debug, Args)]
pub(super) struct TypesOptions {
    /// Only these tools, such as 'fs.read_*' [default: all]
    #[arg(value_name = "PATTERN")]
    patterns: Vec<String>,
    /// How much is said about each tool
    #[arg(long, value_enum, default_value_t = Detail::Full)]
    detail: Detail,
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

pub(super) fn run(options: TypesOptions, environment: &Environment) -> Outcome {
    let screen = Screen::of_process(environment, false);
    let patterns = options
        .patterns
        .iter()
        .map(|text| pattern(text))
        .collect::<Result<Vec<_>, _>>()?;
    let mut flags = options.servers.into_flags()?;
    flags.state_dir = options.state.state_dir;
    let config = Config::load(flags, environment)?;
    config
        .warnings
        .iter()
        .for_each(|warning| screen.warning(warning));

    let (text, tools, problems) = runtime()?.block_on(async {
        let broker = Broker::builder()
            .config(config)
            .build()
            .await
            .map_err(build_problem)?;
        let text = broker.declarations(options.detail.into(), &patterns);
        let chosen = broker
            .catalog()
            .tools()
            .filter(|tool| patterns.is_empty() || patterns.iter().any(|it| it.matches(&tool.id)));
        let tools: Vec<_> = chosen.map(|tool| tool.id.to_string()).collect();
        let problems = broker.problems().to_vec();
        broker.close().await;
        Ok::<_, Problem>((text, tools, problems))
    })?;
    let relevant =
        |problem: &&Problem| !matches!(&*problem.code, "rule-unmatched" | "tool-renamed");
    problems
        .iter()
        .filter(relevant)
        .for_each(|problem| screen.warning(problem));
    if options.json {
        print_json(
            &serde_json::json!({ "tools": tools, "declarations": text, "problems": problems }),
        )?;
    } else {
        print(&text)?;
    }
    if tools.is_empty() && !options.json {
        let why = if patterns.is_empty() {
            "no server offers a tool"
        } else {
            "no tool fits the patterns"
        };
        screen.remark(&format!(
            "{why}; --server, --mcp-config and --demo say which servers there are\n"
        ));
    }
    let unreachable = problems
        .iter()
        .any(|problem| problem.code == "server-unavailable");
    Ok(if unreachable {
        exit::CONFIGURATION
    } else {
        exit::DONE
    })
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
