//! Signs the end of a run's journal, and sends the signed head to the anchor. Neither changes the
//! result of the run, so failures are reported as warnings.

use std::time::Duration;

use airlock_core::problem::Problem;

use crate::config::AnchorCommand;
use crate::private_file::StateDir;
use crate::program::ExternalProgram;
use crate::run_index::{IndexWriter, JournalEnd, PublicKey, SignedHead};

/// Maximum time for the anchor. The run waits until the anchor has ended.
const ANCHOR_WALL: Duration = Duration::from_secs(10);
/// Maximum size of the anchor's output, which is ignored.
const OUTPUT_BYTES_MAX: u32 = 64 * 1024;

/// Receives the problems that do not change the result of a run.
pub(crate) type Warn = dyn Fn(&Problem) + Send + Sync;

#[derive(Default)]
pub(crate) struct SignedEnds {
    index: IndexWriter,
    anchor: Option<ExternalProgram>,
    warn: Option<Box<Warn>>,
}

impl SignedEnds {
    pub(super) fn set_warn(&mut self, warn: Box<Warn>) {
        self.warn = Some(warn);
    }

    pub(super) fn set_anchor(&mut self, command: AnchorCommand, env: Vec<(String, String)>) {
        self.anchor = Some(ExternalProgram {
            program: command.program,
            args: command.args,
            env,
        });
    }

    /// Signs the end of a journal. Returns `None` after a failure, which leaves the journal
    /// unsigned.
    pub(super) async fn sign(&self, state: &StateDir, end: JournalEnd) -> Option<SignedHead> {
        let run = end.run.clone();
        let signed = match self.index.sign(state, end) {
            Ok(signed) => signed,
            Err(error) => {
                self.warn(&Problem::new(
                    "journal-unsigned",
                    format!("the end of the journal of {} could not be signed", run.0),
                    error.to_string(),
                    "the result of the run is valid, and its journal stays unsigned; check that airlock can write to the state directory",
                ));
                return None;
            }
        };
        if let Some(before) = signed.key_before {
            self.warn(&new_key(&signed.head.key, &before));
        }
        if let Some(Err(why)) = self.send_out(&signed.head).await {
            self.warn(&Problem::new(
                "anchor-failed",
                format!("the signed head of {} could not be sent out", run.0),
                why,
                "the head is in the index; check the command that `anchor` configures",
            ));
        }
        Some(signed.head)
    }

    async fn send_out(&self, head: &SignedHead) -> Option<Result<(), String>> {
        let anchor = self.anchor.as_ref()?;
        let text = match serde_json::to_string(head) {
            Ok(text) => format!("{text}\n"),
            Err(error) => return Some(Err(error.to_string())),
        };
        let sent = anchor.converse(text, OUTPUT_BYTES_MAX);
        Some(match tokio::time::timeout(ANCHOR_WALL, sent).await {
            Ok(sent) => sent
                .map(drop)
                .map_err(|why| format!("`{}`: {why}", anchor.program)),
            Err(_) => Err(format!(
                "`{}` did not end within {} seconds",
                anchor.program,
                ANCHOR_WALL.as_secs()
            )),
        })
    }

    fn warn(&self, problem: &Problem) {
        if let Some(warn) = &self.warn {
            warn(problem);
        }
    }
}

fn new_key(key: &PublicKey, before: &PublicKey) -> Problem {
    Problem::new(
        "signing-key-changed",
        "the heads of runs are signed with a new key",
        format!("earlier heads are signed with {before}, and the key is now {key}"),
        "if you did not replace or delete signing.key, another program did: compare the journals with copies. \
         `airlock runs verify --key OLD --key NEW` accepts both keys",
    )
}
