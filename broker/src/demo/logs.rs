//! The demo server's logs: one morning of a small shop, always the same.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

impl Level {
    const ALL: [Self; 4] = [Self::Debug, Self::Info, Self::Warn, Self::Error];

    fn word(self) -> &'static str {
        match self {
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Query {
    level: Option<Level>,
    service: Option<String>,
    since: Option<String>,
    limit: Option<usize>,
}

impl Query {
    const LIMIT: usize = 50;
    const LIMIT_MAX: usize = 500;

    pub(super) fn checked(self) -> Result<Self, String> {
        if let Some(limit) = self.limit
            && !(1..=Self::LIMIT_MAX).contains(&limit)
        {
            return Err(format!(
                "`limit` is {limit}; expected 1 to {}",
                Self::LIMIT_MAX
            ));
        }
        match &self.since {
            // All times have this format, so they are compared as text.
            Some(since) if !(since.len() >= 20 && since.ends_with('Z')) => {
                Err("`since` is not a time like 2026-11-20T08:30:00Z".to_owned())
            }
            _ => Ok(self),
        }
    }

    fn matches(&self, entry: &Entry) -> bool {
        self.level.is_none_or(|level| level == entry.level)
            && self
                .service
                .as_deref()
                .is_none_or(|service| service == entry.service)
            && self
                .since
                .as_deref()
                .is_none_or(|since| entry.ts().as_str() >= since)
    }
}

struct Entry {
    second: u32,
    level: Level,
    service: &'static str,
    message: &'static str,
    trace: Option<&'static str>,
}

impl Entry {
    fn ts(&self) -> String {
        let (hours, minutes, seconds) = (
            8 + self.second / 3_600,
            self.second / 60 % 60,
            self.second % 60,
        );
        format!("2026-11-20T{hours:02}:{minutes:02}:{seconds:02}Z")
    }

    fn json(&self) -> Value {
        let mut value = json!({"ts": self.ts(), "level": self.level.word(), "service": self.service, "message": self.message});
        if let (Some(trace), Some(members)) = (self.trace, value.as_object_mut()) {
            members.insert("trace".to_owned(), trace.into());
        }
        value
    }
}

type Row = (u32, Level, &'static str, &'static str, Option<&'static str>);

/// The incidents, in order of time. Each row starts with its time, in seconds after 08:00.
const INCIDENTS: [Row; 20] = [
    (
        310,
        Level::Warn,
        "search",
        "shard 3 is slow: 1840 ms for a query of one term",
        None,
    ),
    (
        655,
        Level::Error,
        "payments",
        "card processor timed out after 3000 ms",
        Some("7f3a10"),
    ),
    (
        656,
        Level::Warn,
        "checkout",
        "payment is retried",
        Some("7f3a10"),
    ),
    (
        1_290,
        Level::Error,
        "payments",
        "card processor timed out after 3000 ms",
        Some("80b2c4"),
    ),
    (
        1_610,
        Level::Error,
        "search",
        "shard 3 is read-only: its disk is 95 % full",
        None,
    ),
    (
        1_930,
        Level::Error,
        "search",
        "shard 3 is read-only: its disk is 95 % full",
        None,
    ),
    (
        2_005,
        Level::Error,
        "auth",
        "a refresh token was used twice; its family is revoked",
        Some("91d07e"),
    ),
    (
        2_250,
        Level::Error,
        "search",
        "shard 3 is read-only: its disk is 95 % full",
        None,
    ),
    (
        2_480,
        Level::Error,
        "payments",
        "card processor timed out after 3000 ms",
        Some("9a55f1"),
    ),
    (
        2_481,
        Level::Error,
        "checkout",
        "the cart was unlocked while it was being paid",
        Some("9a55f1"),
    ),
    (
        2_570,
        Level::Error,
        "search",
        "shard 3 is read-only: its disk is 95 % full",
        None,
    ),
    (
        2_890,
        Level::Warn,
        "auth",
        "12 failed sign-ins from one address within a minute",
        None,
    ),
    (
        3_115,
        Level::Error,
        "payments",
        "card processor timed out after 3000 ms",
        Some("a81c33"),
    ),
    (
        3_116,
        Level::Error,
        "checkout",
        "the cart was unlocked while it was being paid",
        Some("a81c33"),
    ),
    (
        3_700,
        Level::Warn,
        "payments",
        "the processor's certificate ends in 6 days",
        None,
    ),
    (
        4_020,
        Level::Error,
        "mailer",
        "template `order-shipped` lacks the value `carrier`",
        Some("b39e02"),
    ),
    (
        4_410,
        Level::Error,
        "payments",
        "card processor timed out after 3000 ms",
        Some("b7740d"),
    ),
    (
        4_890,
        Level::Error,
        "mailer",
        "template `order-shipped` lacks the value `carrier`",
        Some("c20f98"),
    ),
    (
        5_230,
        Level::Error,
        "auth",
        "a refresh token was used twice; its family is revoked",
        Some("c9e6ab"),
    ),
    (
        6_120,
        Level::Warn,
        "mailer",
        "the queue holds 1200 messages",
        None,
    ),
];

/// Entries of normal operation, repeated all morning.
const ROUTINE: [Row; 6] = [
    (0, Level::Info, "checkout", "order placed", None),
    (17, Level::Debug, "search", "cache hit", None),
    (31, Level::Info, "payments", "payment captured", None),
    (48, Level::Info, "auth", "sign-in", None),
    (66, Level::Debug, "auth", "session extended", None),
    (84, Level::Info, "mailer", "confirmation sent", None),
];

/// Returns all entries, oldest first.
fn entries() -> Vec<Entry> {
    const ROUNDS: u32 = 30;
    const ROUND_SECONDS: u32 = 240;
    let routine = (0..ROUNDS).flat_map(|round| {
        ROUTINE
            .into_iter()
            .map(move |row| (round * ROUND_SECONDS + row.0, row))
    });
    let incidents = INCIDENTS.into_iter().map(|row| (row.0, row));
    let mut entries: Vec<Entry> = routine
        .chain(incidents)
        .map(|(second, (_, level, service, message, trace))| Entry {
            second,
            level,
            service,
            message,
            trace,
        })
        .collect();
    entries.sort_by_key(|entry| entry.second);
    entries
}

pub(super) fn query(query: &Query) -> Value {
    let limit = query.limit.unwrap_or(Query::LIMIT);
    let found: Vec<Value> = entries()
        .iter()
        .filter(|entry| query.matches(entry))
        .map(Entry::json)
        .collect();
    let truncated = found.len() > limit;
    let shown: Vec<Value> = found.into_iter().take(limit).collect();
    json!({"entries": shown, "truncated": truncated})
}

pub(super) fn count(query: &Query) -> usize {
    entries()
        .iter()
        .filter(|entry| query.matches(entry))
        .count()
}

pub(super) fn services() -> Value {
    let services: Vec<Value> = by_service()
        .into_iter()
        .map(|(name, levels)| {
            let errors = levels
                .iter()
                .filter(|level| **level == Level::Error)
                .count();
            json!({"name": name, "entries": levels.len(), "errors": errors})
        })
        .collect();
    json!({"services": services})
}

fn by_service() -> BTreeMap<&'static str, Vec<Level>> {
    let mut services: BTreeMap<_, Vec<Level>> = BTreeMap::new();
    for entry in entries() {
        services.entry(entry.service).or_default().push(entry.level);
    }
    services
}

/// Returns the number of entries by level, or `None` if the service does not exist.
pub(super) fn csv(service: &str) -> Option<String> {
    let levels = by_service().remove(service)?;
    let lines = Level::ALL.map(|level| {
        let entries = levels.iter().filter(|seen| **seen == level).count();
        format!("{},{entries}\n", level.word())
    });
    Some(format!("level,entries\n{}", lines.concat()))
}

/// Returns the time of the last entry.
pub(super) fn newest() -> String {
    entries().last().map(Entry::ts).unwrap_or_default()
}

pub(super) fn summary() -> String {
    let lines = by_service().into_iter().map(|(name, levels)| {
        let errors = levels
            .iter()
            .filter(|level| **level == Level::Error)
            .count();
        format!("{name}: {errors} errors in {} entries\n", levels.len())
    });
    lines.collect()
}
