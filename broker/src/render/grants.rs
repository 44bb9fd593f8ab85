//! Formats grants: as a file for a person to sign, as lines of a list, and one grant in full.

use airlock_core::grant::{FieldValue, Grant};
use airlock_core::shared_state::{SharedState, StoredGrant};

use super::escape;
use airlock_sandbox::clock::utc;

const CONDITION_CHARS_SHOWN: usize = 120;

/// Formats a file for `--grant FILE`. The person who approves the grants must still add their name.
#[must_use]
pub fn grant_file(grants: &[Grant]) -> String {
    grants.iter().map(entry).collect::<Vec<_>>().join("\n")
}

fn entry(grant: &Grant) -> String {
    let script = grant
        .script
        .map_or_else(|| "any".to_owned(), |digest| digest.to_string());
    let list = |texts: Vec<String>| {
        let texts: Vec<_> = texts.iter().map(|text| quoted(text)).collect();
        format!("[{}]", texts.join(", "))
    };
    let mut text = format!(
        "[[grant]]\ntool = {}\nuses_max = {}\nscope = \"{}\"          # run, session or project\n\
         expires = {}\napproved_by = \"\"       # required: the name of the person who approves\n\
         description = \"{}\"\nscript = \"{script}\"\npolicy = \"{}\"\n\
         labels = {}           # the labels that the run may have; unlabelled data counts as both\n\
         free = {}\n",
        quoted(&grant.tool.to_string()),
        grant.uses_max,
        grant.scope,
        utc(grant.expires_at_ms).replacen(' ', "T", 1),
        grant.description,
        grant.policy,
        list(grant.labels.to_texts()),
        list(grant.condition.free().iter().cloned().collect()),
    );
    if !grant.condition.same().is_empty() {
        text.push_str(
            "[grant.same]            # these stay equal; no arguments except these and `free`\n",
        );
    }
    for (field, same) in grant.condition.same() {
        text.push_str(&format!("{} = {}\n", quoted(field), fixed(same)));
    }
    text
}

fn fixed(same: &FieldValue) -> String {
    match same {
        FieldValue::Under(folder) => format!("{{ under = {} }}", quoted(folder)),
        FieldValue::Digest(digest) => format!("{{ digest = \"{digest}\" }}"),
        FieldValue::Is(json) => match serde_json::from_str::<String>(json) {
            Ok(text) => quoted(&text),
            Err(_) if matches!(json.as_str(), "true" | "false") => json.clone(),
            Err(_) if json.parse::<i64>().is_ok() => json.clone(),
            Err(_) => format!("{{ json = {} }}", quoted(json)),
        },
    }
}

/// Formats a TOML basic string in one line, with invisible characters escaped.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() || codegen::text::is_invisible(c) => {
                out.push_str(&format!("\\U{:08X}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Formats one line per grant: id, state, uses, expiry, tool, condition.
#[must_use]
pub fn grant_line(kept: &StoredGrant, shared: &SharedState, now_ms: u64) -> String {
    let grant = &kept.grant;
    format!(
        "{:26}  {:9}  {:>4}/{:<4}  until {}  {} {}  {} where {}\n",
        escape::brief(&grant.id.0, 40),
        if kept.over(now_ms).is_some() {
            "over"
        } else {
            "open"
        },
        grant.uses,
        grant.uses_max,
        utc(grant.expires_at_ms),
        grant.scope,
        escape::brief(&shared.name, 40),
        escape::brief(&grant.tool.to_string(), 80),
        escape::brief(&grant.condition.to_string(), CONDITION_CHARS_SHOWN),
    )
}

/// Formats one grant with everything that it is bound to.
#[must_use]
pub fn grant(kept: &StoredGrant, shared: &SharedState, now_ms: u64) -> String {
    let grant = &kept.grant;
    let script = grant
        .script
        .map_or_else(|| "any".to_owned(), |digest| digest.to_string());
    let state = match kept.over(now_ms) {
        Some(why) => format!("over: {}", escape::line(why)),
        None => "open".to_owned(),
    };
    let labels = grant.labels.to_texts().join(", ");
    let mut text = String::new();
    for (name, value) in [
        ("grant", grant.id.0.to_string()),
        ("state", state),
        ("of", format!("{} {}", grant.scope, shared.name)),
        ("tool", grant.tool.to_string()),
        ("where", grant.condition.to_string()),
        ("uses", format!("{} of {}", grant.uses, grant.uses_max)),
        ("given", utc(grant.given_at_ms)),
        ("until", utc(grant.expires_at_ms)),
        ("by", grant.by.clone()),
        (
            "labels",
            if labels.is_empty() {
                "none".into()
            } else {
                labels
            },
        ),
        ("description", grant.description.to_string()),
        ("script", script),
        ("policy", grant.policy.to_string()),
        ("shown", grant.shown.to_string()),
    ] {
        text.push_str(&format!("{name:>11}  {}\n", escape::line(&value)));
    }
    text
}
