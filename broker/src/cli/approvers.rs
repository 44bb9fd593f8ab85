//! Who is asked, and what was said yes to beforehand.

use std::io::{IsTerminal as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use airlock_core::problem::Problem;
use airlock_core::report::Report;
use clap::Args;

use super::asked::Asked;
use super::grants::session_name;
use super::options::usage;
use super::screen::Screen;
use crate::approver::{Command, Never, Terminal, Web};
use crate::broker::Builder;
use crate::clock::Clock;
use crate::config::{Config, Who, grants};
use crate::journal_file::make_private;
use crate::render;

#[derive(Debug, Clone, Default, Args)]
pub(super) struct ApprovalOptions {
    /// Who approves calls: terminal, web, command:CMD, or never [default: the configured approver,
    /// else the terminal if there is one]
    #[arg(long, value_name = "WHO")]
    approver: Option<String>,
    /// Ask no one: calls that no rule allows are denied
    #[arg(long, conflicts_with = "approver")]
    no_ask: bool,
    /// Use a file of approved grants; `--approver never` prints such a file
    #[arg(long = "grant", value_name = "FILE")]
    grants: Vec<PathBuf>,
    /// Name of a session; runs of one session share labels, disclosures and grants
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
}

impl ApprovalOptions {
    /// Call it inside the runtime.
    pub(super) fn equip(
        &self,
        mut builder: Builder,
        config: &Config,
        screen: &Screen,
    ) -> Result<Builder, Problem> {
        if let Some(name) = &self.session {
            builder = builder.session(session_name(name)?);
        }
        let now_ms = Clock::start().now_ms();
        for path in &self.grants {
            builder = builder.grants(grants::read(path, now_ms)?);
        }
        let builder = builder.carrier(Asked::new(self.person(config), screen));
        self.approver(builder, config, screen)
    }

    /// Whoever sits at the terminal answers servers too, unless nobody is to be asked anything.
    /// A script that comes through stdin has nobody there who types.
    fn person(&self, config: &Config) -> Option<Terminal> {
        let is_there = std::io::stdin().is_terminal() && !self.no_ask;
        if !is_there || self.nobody_answers(config) {
            return None;
        }
        Terminal::open().ok()
    }

    /// Whether a grant is all that can help.
    pub(super) fn nobody_answers(&self, config: &Config) -> bool {
        let never = match self.approver.as_deref() {
            Some(flag) => flag == "never",
            None => !self.no_ask && config.approver == Some(Who::Never),
        };
        never || !self.grants.is_empty()
    }

    fn approver(
        &self,
        builder: Builder,
        config: &Config,
        screen: &Screen,
    ) -> Result<Builder, Problem> {
        if self.no_ask {
            return Ok(builder);
        }
        let flag = self.approver.as_deref().map(Who::parse).transpose();
        let flag = flag.map_err(|(why, next)| usage("--approver cannot be used", why, next))?;
        match flag.or_else(|| config.approver.clone()) {
            Some(who) => asking(&who, builder, config, screen),
            None => Ok(match Terminal::open() {
                Ok(terminal) => builder.approver(terminal),
                // Whoever brings a grant wants to be asked, if only there were somebody.
                Err(_) if !self.grants.is_empty() => builder.approver(Never),
                Err(_) => builder,
            }),
        }
    }
}

/// Who answers for hosts that cannot ask anybody themselves. Whoever serves them has no
/// terminal to ask at: it is the hosts'.
pub(super) fn elsewhere(
    builder: Builder,
    config: &Config,
    screen: &Screen,
) -> Result<Builder, Problem> {
    match &config.approver {
        None | Some(Who::Terminal) => Ok(builder.approver(Never)),
        Some(who) => asking(who, builder, config, screen),
    }
}

fn asking(
    who: &Who,
    builder: Builder,
    config: &Config,
    screen: &Screen,
) -> Result<Builder, Problem> {
    match who {
        Who::Terminal => match Terminal::open() {
            Ok(terminal) => Ok(builder.approver(terminal)),
            Err(error) => {
                let why = format!("there is no terminal to ask on: {error}");
                let next = "run it in the foreground of a terminal, or choose another approver";
                Err(usage("--approver cannot be used", why, next))
            }
        },
        Who::Never => Ok(builder.approver(Never)),
        Who::Web => web(builder, config, screen),
        Who::Command(program, args) => {
            let env = config.base_env.clone();
            Ok(builder.approver(Command::new(program.clone(), args.clone(), env)))
        }
    }
}

/// The link lets in whoever has it. What this process prints may be read by a model or kept in
/// a log, so it goes into a file that only its owner can read, and to their terminal.
fn web(builder: Builder, config: &Config, screen: &Screen) -> Result<Builder, Problem> {
    let failed = |what: &str, why: String| {
        Problem::new("internal", what.to_owned(), why, "choose another approver")
    };
    let folder = config.state_dir.join("approvals");
    let path = folder.join(format!("{}.link", std::process::id()));
    make_private(&folder)
        .map_err(|error| failed("there is no folder for the page's link", error.to_string()))?;
    let screen = screen.clone();
    let file = LinkFile(path);
    let told = move |link: &str| {
        if let Err(error) = file.write(link) {
            screen.warning(&Problem::new(
                "internal",
                "the page's link is lost",
                error.to_string(),
                "",
            ));
        }
        let shown = crate::render::escape::line(&file.0.to_string_lossy()).into_owned();
        screen.show(&format!(
            "approval needed: open the link in {shown}; it works once, within ten minutes\n"
        ));
        if let Ok(mut terminal) = std::fs::OpenOptions::new().write(true).open("/dev/tty") {
            let _ = terminal.write_all(format!("  {link}\n").as_bytes());
        }
    };
    let web = Web::start(Box::new(told))
        .map_err(|error| failed("the approver's page cannot be served", error.to_string()))?;
    Ok(builder.approver(web))
}

/// Gone with the run.
struct LinkFile(PathBuf);

impl LinkFile {
    fn write(&self, link: &str) -> std::io::Result<()> {
        let _ = std::fs::remove_file(&self.0);
        let mut options = std::fs::OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&self.0)?;
        file.write_all(format!("{link}\n").as_bytes())
    }
}

impl Drop for LinkFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(Path::new(&self.0));
    }
}

/// The grants that would have been enough, as the file that somebody may sign.
pub(super) fn sufficient(report: &Report) -> String {
    if report.grants_needed.is_empty() {
        return String::new();
    }
    let file = render::grant_file(&report.grants_needed);
    format!(
        "no one could be asked; this would have been enough, once a person has checked it, written \
         their name into it, and given it to --grant FILE:\n\n{file}\n"
    )
}
