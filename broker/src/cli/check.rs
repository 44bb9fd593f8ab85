//! `airlock check`: finds errors in a script without running it.

use std::path::PathBuf;

use airlock_core::problem::Problem;
use clap::Args;
use codegen::check::Surface;
use serde_json::json;

use super::connect::visit;
use super::options::{ServerOptions, StateOptions};
use super::screen::Screen;
use super::servers::how_to_add_a_server;
use super::types::saved;
use super::{Outcome, exit, input, print, print_json, runtime};
use crate::broker::{Broker, CheckReport, Script};
use crate::config::{CompilerSettings, Config, EngineSettings, Environment};
use crate::render;
use crate::tsc::Compiler;
use airlock_sandbox::CheckLimits;

#[derive(Debug, Args)]
pub(super) struct CheckOptions {
    /// Script file, or `-` for stdin
    #[arg(value_name = "SCRIPT")]
    script: Option<PathBuf>,
    /// Script text
    #[arg(short = 'e', value_name = "CODE", allow_hyphen_values = true)]
    code: Option<String>,
    #[command(flatten, next_help_heading = "Servers")]
    servers: ServerOptions,
    /// Read tools from a saved tools/list result instead of connecting to servers
    #[arg(long, value_name = "[NAME=]FILE", help_heading = "Servers")]
    from: Vec<String>,
    #[command(flatten)]
    engine: EngineSettings,
    #[command(flatten)]
    compiler: CompilerSettings,
    #[command(flatten)]
    state: StateOptions,
    /// Print one JSON object: ok, form, language, findings
    #[arg(long, help_heading = "Output")]
    pub(super) json: bool,
}

pub(super) fn run(options: CheckOptions, environment: &Environment) -> Outcome {
    let screen = Screen::of_process(environment, false);
    let mut flags = options.servers.clone().into_flags()?;
    flags.settings.state = options.state.clone();
    flags.settings.engine = options.engine.clone();
    flags.settings.compiler = options.compiler.clone();
    let config = Config::load(flags, environment)?;
    config
        .warnings
        .iter()
        .for_each(|warning| screen.warning(warning));
    let (name, text) = input::script(
        options.script.as_deref(),
        options.code.clone(),
        &config.limits,
    )?;
    let is_quotable = config.secrets.redact(&text).is_none();
    let has_servers = !config.servers.is_empty() || !options.from.is_empty();
    let mut report = if options.from.is_empty() {
        against_servers(&name, &text, config, &options, &screen)?
    } else {
        against_files(&name, &text, &config, &options, &screen)?
    };
    if !has_servers {
        for finding in &mut report.findings {
            if finding.message.starts_with("there is no server") {
                let next = how_to_add_a_server();
                finding.suggestion = Some(format!("No server is configured: {next}."));
            }
        }
    }
    let quoted = if is_quotable { text.as_str() } else { "" };
    show(&report, &name, quoted, &options, &screen)?;
    Ok(if report.has_error() {
        exit::SCRIPT_FAILED
    } else {
        exit::DONE
    })
}

fn against_servers(
    name: &str,
    text: &str,
    config: Config,
    options: &CheckOptions,
    screen: &Screen,
) -> Result<CheckReport, Problem> {
    let builder = Broker::builder()
        .servers_required(!options.servers.skip_unreachable)
        .discovery(true)
        .config(config);
    let script = Script::body(text).named(name);
    visit(builder, screen, async |broker: &Broker| {
        broker.check(&script).await
    })
}

fn against_files(
    name: &str,
    text: &str,
    config: &Config,
    options: &CheckOptions,
    screen: &Screen,
) -> Result<CheckReport, Problem> {
    saved::refuse_servers(&options.servers)?;
    let found = saved::for_config(&options.from, config)?;
    found.problems.iter().for_each(|it| screen.warning(it));
    let found = found.with_own(config.extract.is_some());
    let mentions = found.mentions();
    let surface = Surface::new(&found.stubs, &found.descriptions)
        .mentioning(&mentions)
        .lacking(config.settings.engine.engine.unwrap_or_default().lacks());
    let (tsc, env) = (config.settings.compiler.choice(), config.base_env.clone());
    let compiler = Compiler::new(tsc, env, &config.state_dir);
    let limits = CheckLimits::default();
    let report = CheckReport::new((name, text), surface, &config.secrets, &compiler, &limits);
    Ok(runtime()?.block_on(report))
}

fn show(
    report: &CheckReport,
    name: &str,
    text: &str,
    options: &CheckOptions,
    screen: &Screen,
) -> Result<(), Problem> {
    if options.json {
        let language = if report.is_typescript {
            "typescript"
        } else {
            "javascript"
        };
        return print_json(&json!({
            "ok": !report.has_error(),
            "form": report.form.map(|form| form.as_str()),
            "language": language,
            "findings": report.findings,
            "findings_dropped": report.findings_dropped,
        }));
    }
    for finding in &report.findings {
        print(&render::finding(finding, name, text, screen.style))?;
    }
    if report.findings_dropped > 0 {
        print(&format!("… and {} more\n", report.findings_dropped))?;
    }
    let summary = render::findings_summary(&report.findings);
    screen.remark(&format!("{name}: {summary}\n"));
    Ok(())
}
