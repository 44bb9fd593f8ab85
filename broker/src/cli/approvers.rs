//! Flags for approvers and for grants that were given in advance.

use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};

use airlock_core::code::Code;
use airlock_core::problem::Problem;
use airlock_core::report::{Report, ReportedCall, Status};
use clap::Args;

use super::grants::session_name;
use super::options::usage;
use super::resume::Resumed;
use super::screen::Screen;
use super::terminal_bridge::TerminalBridge;
use crate::approver::{ApproverCommand, NeverApprover, SuspendingApprover, Terminal, Web};
use crate::broker::Builder;
use crate::config::{ApproverChoice, Config, grants};
use crate::private_file::{StateDir, make_private, open_to_write};
use crate::render;
use airlock_sandbox::clock::Clock;

#[derive(Debug, Clone, Default, Args)]
pub(super) struct ApprovalOptions {
    /// Who approves calls: terminal, web, command:CMD (a program), later, or never. With later,
    /// a run that waits only for people is suspended; answer with `airlock runs answer RUN:CALL allow`.
    /// With never, airlock refuses calls that need approval, and prints the grants that the run would
    /// have needed
    /// [default: the configured approver, else the terminal; without a terminal, calls that need
    /// approval are denied]
    #[arg(long, value_name = "WHO")]
    approver: Option<String>,
    /// Never ask: deny calls that no rule allows
    #[arg(long, conflicts_with = "approver")]
    no_ask: bool,
    /// Read a file of grants. A grant is an approval of several calls. A run with `--approver never`
    /// prints such a file on stderr; `--grant` also takes its `--json` output, after a person has
    /// filled in each `by`
    #[arg(long = "grant", value_name = "FILE")]
    grants: Vec<PathBuf>,
    /// Name of a session. Runs with the same session share their labels, the tool descriptions
    /// shown so far, call counts and grants
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
}

impl ApprovalOptions {
    /// Adds the approver and the grants to a builder. Must be called inside the runtime.
    pub(super) fn equip(
        &self,
        mut builder: Builder,
        config: &Config,
        screen: &Screen,
        suspends: bool,
    ) -> Result<Builder, Problem> {
        if let Some(name) = &self.session {
            builder = builder.session(session_name(name)?);
        }
        let builder = add_grants(builder, &self.grants)?;
        let builder = builder.client_bridge(TerminalBridge::new(self.person(config), screen));
        if suspends {
            return Ok(builder.approver(SuspendingApprover));
        }
        self.approver(builder, config, screen)
    }

    /// Returns the terminal on which servers may ask the person for input. Returns `None` if
    /// questions are turned off, or if stdin is not a terminal, because nobody could type there.
    fn person(&self, config: &Config) -> Option<Terminal> {
        let is_there = std::io::stdin().is_terminal() && !self.no_ask;
        if !is_there || self.nobody_answers(config) {
            return None;
        }
        Terminal::open().ok()
    }

    /// Whether calls that need approval can only be allowed by a grant.
    pub(super) fn nobody_answers(&self, config: &Config) -> bool {
        self.is_never(config) && !self.no_ask || self.has_grants()
    }

    /// Whether nobody is asked, and nobody can answer later.
    pub(super) fn is_never(&self, config: &Config) -> bool {
        match self.approver.as_deref() {
            Some(flag) => flag == "never",
            None => self.no_ask || config.approver == Some(ApproverChoice::Never),
        }
    }

    pub(super) fn has_grants(&self) -> bool {
        !self.grants.is_empty()
    }

    /// Whether a run that waits only for people is suspended at once. If nothing says whom to ask
    /// and there is no terminal, this holds for a run that resumes a suspended one: answers that
    /// people gave meanwhile count, and other questions wait for `airlock runs answer` too.
    pub(super) fn suspends(&self, config: &Config, resumed: Option<&Resumed>) -> bool {
        match (self.approver.as_deref(), &config.approver) {
            _ if self.no_ask => false,
            (Some(flag), _) => flag == "later",
            (None, Some(choice)) => *choice == ApproverChoice::Later,
            (None, None) => {
                let was_suspended = resumed.is_some_and(Resumed::is_suspended);
                was_suspended && self.grants.is_empty() && Terminal::open().is_err()
            }
        }
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
        let flag = self
            .approver
            .as_deref()
            .map(ApproverChoice::parse)
            .transpose();
        let flag =
            flag.map_err(|(why, next)| usage("invalid value for `--approver`", why, next))?;
        match flag.or_else(|| config.approver.clone()) {
            Some(who) => add_approver(&who, builder, config, screen),
            None => Ok(match Terminal::open() {
                Ok(terminal) => builder.approver(terminal),
                // A grant implies that calls may need approval, so a missing terminal counts as an
                // approver that never answers.
                Err(_) if !self.grants.is_empty() => builder.approver(NeverApprover),
                Err(_) => builder,
            }),
        }
    }
}

/// Adds the grants of these files to a builder.
pub(super) fn add_grants(mut builder: Builder, paths: &[PathBuf]) -> Result<Builder, Problem> {
    let now_ms = Clock::start().now_ms();
    for path in paths {
        builder = builder.grants(grants::read(path, now_ms)?);
    }
    Ok(builder)
}

/// Adds the approver for hosts that cannot ask their user. `airlock serve` never asks at the
/// terminal, because the terminal belongs to the host.
pub(super) fn add_fallback_approver(
    builder: Builder,
    config: &Config,
    screen: &Screen,
) -> Result<Builder, Problem> {
    match &config.approver {
        None | Some(ApproverChoice::Terminal) => Ok(builder.approver(NeverApprover)),
        Some(who) => add_approver(who, builder, config, screen),
    }
}

fn add_approver(
    who: &ApproverChoice,
    builder: Builder,
    config: &Config,
    screen: &Screen,
) -> Result<Builder, Problem> {
    match who {
        ApproverChoice::Terminal => match Terminal::open() {
            Ok(terminal) => Ok(builder.approver(terminal)),
            Err(error) => {
                let why = format!("cannot open the terminal: {error}");
                let next = "run airlock in a terminal's foreground, or choose another approver";
                Err(usage("the approver `terminal` is not available", why, next))
            }
        },
        ApproverChoice::Later => Ok(builder.approver(SuspendingApprover)),
        ApproverChoice::Never => Ok(builder.approver(NeverApprover)),
        ApproverChoice::Web => web(builder, config, screen),
        ApproverChoice::Command(program, args) => {
            let env = config.base_env.clone();
            Ok(builder.approver(ApproverCommand::new(program.clone(), args.clone(), env)))
        }
    }
}

/// Adds the web page as approver. Its link gives access to anyone who has it. A model may read this
/// process's output, or a log may keep it, so the link is written only to a file that its owner
/// alone can read, and to the owner's terminal.
fn web(builder: Builder, config: &Config, screen: &Screen) -> Result<Builder, Problem> {
    let failed = |what: &str, why: String| {
        Problem::new("internal", what.to_owned(), why, "choose another approver")
    };
    let state = StateDir::open(config.state_dir.clone())?;
    let folder = state.path().join("approvals");
    let path = folder.join(format!("{}.link", std::process::id()));
    make_private(&folder)
        .map_err(|error| failed("cannot create the folder for the link", error.to_string()))?;
    let screen = screen.clone();
    let file = LinkFile {
        page: path.with_extension("html"),
        link: path,
    };
    let browser = config.browser.clone();
    let place = match browser {
        Some(_) => "on a page that was opened in the browser on this machine",
        None => {
            "on a page on this machine; its link is at the user's terminal and in a file that \
             airlock's stderr names"
        }
    };
    let show_link = move |link: &str| {
        let written = file.write(link);
        let opened =
            written.and_then(|()| browser.as_ref().map_or(Ok(()), |it| it.open(&file.page)));
        if let Err(error) = opened {
            screen.warning(&Problem::new(
                "internal",
                "cannot open the approval page",
                error.to_string(),
                "open the link yourself",
            ));
        }
        let shown = crate::render::escape::line(&file.link.to_string_lossy()).into_owned();
        screen.show(&format!(
            "approval needed: open the link in {shown}; the link works once, within ten minutes\n"
        ));
        if let Ok(mut terminal) = std::fs::OpenOptions::new().write(true).open("/dev/tty") {
            let _ = terminal.write_all(format!("  {link}\n").as_bytes());
        }
    };
    let web = Web::start(Box::new(show_link))
        .map_err(|error| failed("cannot serve the approval page", error.to_string()))?;
    let secrets = config.secrets.clone();
    let web = web.with_place(place).with_suspended_runs(state, secrets);
    Ok(builder.approver(web))
}

/// The files with the link, removed at the end of the run. Only their owner can read them. A browser
/// gets the name of a page that leads to the link, because every program on this machine can read
/// the arguments of another.
struct LinkFile {
    link: PathBuf,
    page: PathBuf,
}

impl LinkFile {
    fn write(&self, link: &str) -> std::io::Result<()> {
        write_private(&self.link, &format!("{link}\n"))?;
        let address = link.replace('&', "&amp;");
        let leads_on = format!("<meta http-equiv=\"refresh\" content=\"0; url={address}\">");
        let page = format!("<!doctype html>\n<title>airlock: approvals</title>\n{leads_on}\n");
        write_private(&self.page, &page)
    }
}

fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let _ = std::fs::remove_file(path);
    let mut options = std::fs::OpenOptions::new();
    let mut file = open_to_write(path, options.write(true).create_new(true))?;
    file.write_all(text.as_bytes())
}

impl Drop for LinkFile {
    fn drop(&mut self) {
        for path in [&self.link, &self.page] {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Returns the grants that would have been sufficient, as a file that a person can sign.
pub(super) fn sufficient(report: &Report) -> String {
    if report.grants_needed.is_empty() {
        let is_unanswered = |it: &ReportedCall| it.code == Some(Code::Unanswered);
        return match report.calls.iter().any(is_unanswered) {
            true => "no person could be asked; no grant would have been enough, because the rules \
                     ask about each of these calls\n"
                .to_owned(),
            false => String::new(),
        };
    }
    let file = render::grant_file(&report.grants_needed);
    // A script that an unanswered call ended may have wanted to make more calls.
    let enough = match report.status {
        Status::Done => "these grants would have been enough for this run's calls",
        _ => {
            "the run needs at least these grants. It was ended before its script had finished, so \
             the script may make more calls: raise `uses_max` to their number"
        }
    };
    format!(
        "no person could be asked; {enough}. To use them, a person checks them, fills in \
         `approved_by`, and passes the file with --grant FILE. The output of --json can be passed \
         too, with `by` filled in. A grant of scope `run` gives its uses to every run that gets the \
         file:\n\n{file}\n"
    )
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use airlock_core::grant::{Condition, Grant, Scope};
    use airlock_core::id::{Digest, GrantId, ToolId};
    use airlock_core::labels::Labels;

    use super::*;

    fn report(status: Status, code: Option<Code>) -> Report {
        let digest = Digest::sha256(b"d");
        let grant = Grant {
            id: GrantId("".into()),
            scope: Scope::Run,
            tool: ToolId::parse("tickets.create").unwrap(),
            description: digest,
            script: Some(digest),
            policy: digest,
            condition: Condition::exactly(&serde_json::json!({})).unwrap(),
            uses_max: NonZeroU32::MIN,
            uses: 0,
            given_at_ms: 0,
            expires_at_ms: 1,
            labels: Labels::default(),
            shown: digest,
            by: String::new(),
        };
        Report {
            grants_needed: vec![grant],
            ..Report::empty(status, code)
        }
    }

    #[test]
    fn grants_are_called_enough_only_if_script_ended() {
        let done = sufficient(&report(Status::Done, None));
        assert!(done.contains("enough for this run's calls"), "{done}");
        let failed = sufficient(&report(Status::Failed, Some(Code::Unanswered)));
        assert!(failed.contains("at least these grants"), "{failed}");
        assert!(!failed.contains("enough"), "{failed}");
        for text in [done, failed] {
            assert!(text.contains("gives its uses to every run"), "{text}");
        }
    }
}
