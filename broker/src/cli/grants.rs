//! `airlock grants`: lists, shows and revokes the grants of sessions and projects.

use airlock_core::id::GrantId;
use airlock_core::problem::Problem;
use airlock_core::shared_state::{SessionName, SharedState, StoredGrant};
use clap::Subcommand;
use serde_json::{Value, json};

use super::options::{StateOptions, StateView, usage};
use super::screen::Screen;
use super::{Outcome, exit, print, print_json};
use crate::config::Environment;
use crate::host_record::HostRecords;
use crate::render;
use crate::shared_file::{SharedError, SharedFile};
use airlock_sandbox::clock::Clock;

#[derive(Debug, Subcommand)]
pub(super) enum GrantsCommand {
    /// List the grants of all sessions and projects
    List {
        /// List only the grants of this session
        #[arg(long, value_name = "NAME")]
        session: Option<String>,
        /// Also list grants that are used up, expired or revoked
        #[arg(long)]
        all: bool,
        #[command(flatten)]
        common: StateView,
    },
    /// Show one grant and its conditions
    Show {
        /// Grant id, or the start of it
        grant: String,
        #[command(flatten)]
        common: StateView,
    },
    /// Revoke a grant
    Revoke {
        /// Grant id, or the start of it
        grant: String,
        #[command(flatten)]
        common: StateView,
    },
}

impl GrantsCommand {
    pub(super) fn is_json(&self) -> bool {
        let (Self::List { common, .. } | Self::Show { common, .. } | Self::Revoke { common, .. }) =
            self;
        common.json
    }
}

pub(super) fn run(command: GrantsCommand, environment: &Environment) -> Outcome {
    let now_ms = Clock::start().now_ms();
    match command {
        GrantsCommand::List {
            session,
            all,
            common,
        } => {
            let session = session.as_deref().map(session_name).transpose()?;
            let screen = Screen::of_process(environment, false);
            let shown = (!common.json).then_some(&screen);
            let book = GrantBook::read(common.state, environment, shown)?;
            let chosen = book.entries().filter(|(file, _, kept)| {
                let is_of = session.as_ref().is_none_or(|it| file.name() == it.as_str());
                is_of && (all || kept.over(now_ms).is_none())
            });
            let chosen: Vec<_> = chosen.collect();
            if common.json {
                let rows = chosen
                    .iter()
                    .map(|(_, shared, kept)| grant_json(kept, shared, now_ms));
                print_json(&json!({ "grants": rows.collect::<Vec<_>>() }))?;
            } else {
                let row =
                    |(_, shared, kept): &GrantRow<'_>| render::grant_line(kept, shared, now_ms);
                print(&chosen.iter().map(row).collect::<String>())?;
                if chosen.is_empty() {
                    screen.remark(none(all));
                }
            }
            Ok(exit::DONE)
        }
        GrantsCommand::Show { grant, common } => {
            let book = GrantBook::read(common.state, environment, None)?;
            let (_, shared, kept) = book.find(&grant)?;
            if common.json {
                print_json(&grant_json(kept, shared, now_ms))?;
            } else {
                print(&render::grant(kept, shared, now_ms))?;
            }
            Ok(exit::DONE)
        }
        GrantsCommand::Revoke { grant, common } => {
            let book = GrantBook::read(common.state, environment, None)?;
            let (file, _, kept) = book.find(&grant)?;
            let id = kept.grant.id.clone();
            let ended = file
                .change(|shared| shared.end(&id, "it was revoked", now_ms))
                .map_err(|error| unreadable(&error))?;
            let word = if ended {
                "revoked"
            } else {
                "was already used up, expired or revoked"
            };
            if common.json {
                print_json(&json!({ "grant": id, "revoked": ended }))?;
            } else {
                print(&format!("{id} {word}\n"))?;
            }
            Ok(exit::DONE)
        }
    }
}

fn none(all: bool) -> &'static str {
    if all {
        "there are no grants\n"
    } else {
        "no grant is open; --all also lists used-up, expired and revoked grants\n"
    }
}

pub(super) fn session_name(text: &str) -> Result<SessionName, Problem> {
    SessionName::parse(text).map_err(|bad| {
        let what = "invalid value for `--session`";
        usage(
            what,
            bad.to_string(),
            "write letters, digits, `_`, `-` and `.`, such as `review-1`",
        )
    })
}

/// Returns the problem of shared state that cannot be read. Its grants then allow no call.
pub(super) fn unreadable(error: &SharedError) -> Problem {
    let next = match error {
        SharedError::Bad { .. } => {
            "restore the file from a backup, or use another session without these grants"
        }
        SharedError::Locked { .. } => "wait until the other run ends, or stop it",
        SharedError::Io { .. } => "check the file's permissions and the disk",
    };
    let what = "cannot read the state that runs share, so its grants allow nothing";
    Problem::new("state-unreadable", what, error.to_string(), next)
}

type GrantRow<'a> = (&'a SharedFile, &'a SharedState, &'a StoredGrant);

/// All grants of a state directory.
struct GrantBook(Vec<(SharedFile, SharedState)>);

impl GrantBook {
    /// Reads all grants. A file that cannot be read is an error, because it may contain grants that
    /// would otherwise stay unnoticed.
    fn read(
        options: StateOptions,
        environment: &Environment,
        screen: Option<&Screen>,
    ) -> Result<Self, Problem> {
        let state_dir = options.open_existing(environment, screen)?;
        let mut all = SharedFile::all(state_dir.path()).map_err(|error| unreadable(&error))?;
        let of_hosts = HostRecords::all(state_dir.path()).map_err(|error| unreadable(&error))?;
        all.extend(of_hosts);
        let read: Result<Vec<_>, SharedError> = all
            .into_iter()
            .map(|(file, shared)| Ok((file, shared?)))
            .collect();
        read.map(Self).map_err(|error| unreadable(&error))
    }

    fn entries(&self) -> impl Iterator<Item = GrantRow<'_>> {
        self.0
            .iter()
            .flat_map(|(file, shared)| shared.grants.iter().map(move |kept| (file, shared, kept)))
    }

    fn find(&self, id: &str) -> Result<GrantRow<'_>, Problem> {
        let next = "`airlock grants list --all` lists all grants";
        let matching: Vec<_> = self
            .entries()
            .filter(|(_, _, kept)| kept.grant.id.0.starts_with(id))
            .collect();
        let is_it = |entry: &&GrantRow<'_>| entry.2.grant.id == GrantId(id.into());
        match matching.as_slice() {
            [one] => Ok(*one),
            [] => Err(usage(
                "there is no such grant",
                format!("no grant id begins with `{id}`"),
                next,
            )),
            [first, ..] => matching.iter().find(is_it).copied().ok_or_else(|| {
                let count = matching.len();
                let example = &first.2.grant.id;
                let why = format!("{count} grant ids begin with `{id}`, such as {example}");
                usage("it is not clear which grant is meant", why, next)
            }),
        }
    }
}

fn grant_json(kept: &StoredGrant, shared: &SharedState, now_ms: u64) -> Value {
    json!({
        "of": shared.name,
        "state": if kept.over(now_ms).is_some() { "over" } else { "open" },
        "why": kept.over(now_ms),
        "grant": kept.grant,
    })
}
