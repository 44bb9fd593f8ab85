//! Formats a journal for a person.

use airlock_core::catalog::OWN_SERVER;
use airlock_core::code::Code;
use airlock_core::id::ToolId;
use airlock_core::inquiry::InquiryLogin;
use airlock_core::journal::{
    Body, DecidedEntry, GrantGivenEntry, JournalLine, RunStartedEntry, Verdict, VerifiedJournal,
};

use super::{counted, escape};
use airlock_sandbox::clock::utc;

const ARGS_CHARS_SHOWN: usize = 160;
const WHY_CHARS_SHOWN: usize = 200;

/// Lists the entries of a journal, one line each. Long texts are cut; the journal file has all.
#[must_use]
pub fn history(journal: &VerifiedJournal) -> String {
    let started_ms = journal.lines.first().map_or(0, |line| line.at_ms);
    let mut text = String::new();
    for line in &journal.lines {
        if let Some(told) = describe(&line.body) {
            text.push_str(&format!("{:>9}  {told}\n", since(line, started_ms)));
        }
        for warned in warned(&line.body) {
            text.push_str(&format!("{:>9}  {warned}\n", ""));
        }
    }
    text.push_str(&remainder(journal));
    text
}

/// Describes in one paragraph whether the journal is intact or cut, and which calls are in doubt.
#[must_use]
pub fn verification(journal: &VerifiedJournal) -> String {
    let head = journal
        .head
        .map(|digest| digest.to_string())
        .unwrap_or_default();
    let entries = journal.lines.len();
    format!(
        "{entries} entries, the chain is intact, head {head}\n{}",
        remainder(journal)
    )
}

fn remainder(journal: &VerifiedJournal) -> String {
    let mut text = String::new();
    match (journal.cut, journal.ended()) {
        (Some(cut), _) => text.push_str(&format!(
            "cut after entry {}: only {} bytes of the next entry are there\n",
            cut.after_line, cut.bytes
        )),
        (None, None) if journal.suspended().is_some() => {
            text.push_str("the run was suspended, and this journal does not continue\n");
        }
        (None, None) => text.push_str("the run was interrupted or is still running\n"),
        (None, Some(_)) => {}
    }
    for call in &journal.in_doubt {
        if let Some(decided) = journal.decided(*call) {
            let (tool, args) = (tool(&decided.tool), args(decided));
            text.push_str(&format!("in doubt: call {} of {tool}{args}\n", call.0));
        }
    }
    for (call, grant) in &journal.uses_in_doubt {
        let grant = escape::brief(&grant.0, 80);
        text.push_str(&format!(
            "in doubt: a use of grant {grant} for call {}; the use may be spent, and the call was not sent\n",
            call.0
        ));
    }
    text
}

/// Returns the number of tools without airlock's own, as `airlock servers` counts them.
fn of_servers(started: &RunStartedEntry) -> usize {
    let tools = started.tools.iter();
    tools.filter(|it| &*it.tool.server.0 != OWN_SERVER).count()
}

fn describe(body: &Body) -> Option<String> {
    Some(match body {
        Body::RunStarted(started) => format!(
            "started {} ({} tools, seed {}, {})",
            escape::brief(&started.script_name, 80),
            of_servers(started),
            started.seed,
            started.script_digest
        ),
        Body::Asked(asked) => format!("call {}  asked about {}", asked.call.0, tool(&asked.tool)),
        Body::Answered(answered) => format!(
            "call {}  answered {}, after {} ms",
            answered.call.0,
            word(&answered.answer),
            answered.ms
        ),
        Body::Stated(stated) => format!(
            "call {}  {} stated that call {} {}",
            stated.call.0,
            escape::brief(&stated.statement.by, 80),
            stated.statement.about,
            stated.statement.outcome.in_words()
        ),
        Body::GrantGiven(given) => grant_given(given),
        Body::GrantClaimed(claimed) => format!(
            "call {}  claims a use of grant {}",
            claimed.call.0,
            escape::brief(&claimed.grant.0, 80)
        ),
        Body::GrantVoided(voided) => format!(
            "grant {} for {} is void: {}",
            escape::brief(&voided.grant.0, 80),
            tool(&voided.tool),
            why(&voided.why)
        ),
        Body::Decided(decided) => format!(
            "call {}  {} {}{}; {}",
            decided.call.0,
            word(&decided.decision),
            tool(&decided.tool),
            args(decided),
            why(&decided.reasons.join("; "))
        ),
        Body::Inquired(inquired) => format!(
            "call {}  the server asks for {}{}",
            inquired.call.0,
            inquired.wants.in_words(),
            match inquired.again {
                true => " first; then the call is sent again",
                false => "",
            }
        ),
        Body::InquiryEnded(ended) => format!(
            "call {}  the server's request was {}, after {} ms{}",
            ended.call.0,
            word(&ended.end),
            ended.ms,
            ended.login.as_ref().map_or_else(String::new, logged_in)
        ),
        Body::Settled(settled) => format!(
            "call {}  {}{}, {} bytes, {} ms{}",
            settled.call.0,
            word(&settled.outcome),
            code(settled.code),
            settled.payload_bytes,
            settled.ms,
            behind("; ", settled.why.as_deref())
        ),
        Body::Reused(reused) => format!(
            "call {}  {} is not made again: {}, {}{}",
            reused.call.0,
            tool(&reused.tool),
            escape::brief(&reused.why(), WHY_CHARS_SHOWN),
            word(&reused.outcome),
            code(reused.code)
        ),
        Body::Resumed(_) => return None,
        Body::Suspended(suspended) => format!(
            "suspended with {}",
            counted(suspended.calls.len(), "open question")
        ),
        Body::Ended(ended) => format!(
            "ended {}{}{}, {} calls, {} ms",
            word(&ended.status),
            code(ended.code),
            behind(": ", ended.error.as_ref().map(|it| it.message.as_str())),
            ended.usage.calls,
            ended.usage.wall_ms
        ),
    })
}

fn logged_in(login: &InquiryLogin) -> String {
    let issuer = escape::brief(&login.issuer, 200);
    match login.scopes.is_empty() {
        true => format!("; logged in at {issuer}"),
        false => {
            let scopes = login.scopes.to_string();
            let scopes = escape::brief(&scopes, 200);
            format!("; logged in at {issuer} with the scopes {scopes}")
        }
    }
}

fn grant_given(given: &GrantGivenEntry) -> String {
    format!(
        "call {}  grant {} given by {}: up to {} calls of {} in this {} where {}",
        given.call.0,
        given.grant.id,
        escape::brief(&given.by, 40),
        given.grant.uses_max,
        tool(&given.tool),
        given.grant.scope,
        why(&given.condition.to_string())
    )
}

fn tool(tool: &ToolId) -> String {
    escape::brief(&tool.to_string(), 80)
}

fn why(text: &str) -> String {
    escape::brief(text, WHY_CHARS_SHOWN)
}

/// Formats ` (denied)`, if there is a code.
fn code(code: Option<Code>) -> String {
    code.map(|code| format!(" ({code})")).unwrap_or_default()
}

fn behind(mark: &str, text: Option<&str>) -> String {
    text.map(|text| format!("{mark}{}", why(text)))
        .unwrap_or_default()
}

/// Returns the warnings that the host got with this entry: findings of the check, or warnings about
/// the arguments of a call.
fn warned(body: &Body) -> Vec<String> {
    match body {
        Body::RunStarted(started) => {
            let found = started.findings.iter();
            let told = found.map(|it| {
                let (severity, message) = (word(&it.severity), why(&it.message));
                let place = match (it.line, it.column) {
                    (0, _) => String::new(),
                    (line, column) => format!(" {line}:{column}"),
                };
                format!("{severity}{place}: {message} ({})", why(&it.code))
            });
            told.collect()
        }
        Body::Decided(decided) => {
            let told = decided.warnings.iter();
            told.map(|it| format!("call {}  warning: {}", decided.call.0, why(it)))
                .collect()
        }
        _ => Vec::new(),
    }
}

fn args(decided: &DecidedEntry) -> String {
    match &decided.args {
        Some(args) if decided.decision != Verdict::Deny || decided.code.is_some() => {
            format!(" {}", escape::brief(args.text(), ARGS_CHARS_SHOWN))
        }
        _ => String::new(),
    }
}

/// Returns the name that the journal uses for a value.
pub(crate) fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

fn since(line: &JournalLine, started_ms: u64) -> String {
    match line.at_ms.saturating_sub(started_ms) {
        0 if line.seq == 0 => utc(line.at_ms)
            .split(' ')
            .nth(1)
            .unwrap_or_default()
            .to_owned(),
        ms => format!("+{ms} ms"),
    }
}
