//! Parses files of grants that people gave in advance. Each grant names the person who approved it,
//! and digests bind it to a tool's description, a script and the rules. Unknown keys are errors.

mod check;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::path::Path;

use airlock_core::grant::{Condition, FieldValue, Grant, Scope};
use airlock_core::id::{Digest, GrantId, ToolId};
use airlock_core::json::Bounds;
use airlock_core::labels::{Label, Labels};
use airlock_core::problem::Problem;
use codegen::canonical;
use serde::Deserialize;
use serde_json::{Value, json};
use toml::Spanned;

use super::located::LineIndex;
use super::{display_path, invalid, read_text};
use airlock_sandbox::clock::parse_utc;

pub(crate) use check::check;

const NEXT: &str = "`airlock run --approver never` prints grants in the right format";
/// Number of hexadecimal characters of a grant's digest in its id, enough to make ids unique.
const ID_CHARS: usize = 16;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    grant: Vec<Spanned<GrantEntry>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GrantEntry {
    tool: String,
    uses_max: u32,
    scope: Scope,
    expires: toml::value::Datetime,
    approved_by: String,
    description: String,
    script: String,
    policy: String,
    labels: Vec<String>,
    #[serde(default)]
    free: BTreeSet<String>,
    #[serde(default)]
    same: BTreeMap<String, toml::Value>,
}

/// Reads all grants of one file.
pub fn read(path: &Path, now_ms: u64) -> Result<Vec<Grant>, Problem> {
    parse(&display_path(path), &read_text(path)?, now_ms)
}

fn parse(name: &str, text: &str, now_ms: u64) -> Result<Vec<Grant>, Problem> {
    let next = NEXT;
    if is_report(text) {
        return of_report(text, now_ms).map_err(|why| {
            let next =
                "write the grants as TOML, or the report of `airlock run --json` with each `by`";
            invalid(format!("invalid grants in {name}"), why, next)
        });
    }
    let lines = LineIndex::new(text);
    let document: Document = toml::from_str(text).map_err(|error| {
        let line = error
            .span()
            .map(|span| format!(", line {}", lines.line(span.start)))
            .unwrap_or_default();
        let what = format!("{name}{line} is invalid");
        invalid(what, error.message().to_owned(), next)
    })?;
    if document.grant.is_empty() {
        let what = format!("{name} contains no grant");
        return Err(invalid(what, "the file has no [[grant]]", next));
    }
    document
        .grant
        .into_iter()
        .map(|entry| {
            let line = lines.line(entry.span().start);
            entry
                .into_inner()
                .grant(now_ms)
                .map_err(|why| invalid(format!("invalid grant in {name}, line {line}"), why, next))
        })
        .collect()
}

/// A report, as `--json` prints it and a host gets it. A person fills in `by` of each grant.
#[derive(Deserialize)]
struct ReportDocument {
    #[serde(default)]
    grants_needed: Vec<Grant>,
}

/// Whether a file is JSON. TOML never begins with a brace.
fn is_report(text: &str) -> bool {
    text.trim_start().starts_with('{')
}

fn of_report(text: &str, now_ms: u64) -> Result<Vec<Grant>, String> {
    let report = airlock_core::json::parse_strict(text.as_bytes(), BOUNDS);
    let report = report.map_err(|bad| bad.to_string())?;
    let report: ReportDocument = serde_json::from_value(report).map_err(|bad| bad.to_string())?;
    if report.grants_needed.is_empty() {
        return Err("the report has no `grants_needed`".into());
    }
    let signed = |grant: Grant| {
        if grant.by.trim().is_empty() {
            let tool = &grant.tool;
            return Err(format!(
                "`by` of the grant for `{tool}` is empty; expected the name of a person"
            ));
        }
        let unused = Grant {
            id: GrantId("".into()),
            uses: 0,
            given_at_ms: 0,
            shown: Digest::sha256(b""),
            by: format!("{} (in a file)", grant.by.trim()),
            ..grant
        };
        identified(unused, now_ms)
    };
    report.grants_needed.into_iter().map(signed).collect()
}

/// Sets the id, which depends on the whole content, so that a changed grant gets another id.
fn identified(mut grant: Grant, now_ms: u64) -> Result<Grant, String> {
    let text = serde_json::to_value(&grant).map_err(|error| error.to_string())?;
    grant.shown = canonical::digest(&text);
    let hex = grant.shown.to_string();
    let hex: String = hex.chars().skip("sha256:".len()).take(ID_CHARS).collect();
    grant.id = GrantId(format!("file-{hex}").into());
    grant.given_at_ms = now_ms;
    Ok(grant)
}

impl GrantEntry {
    fn grant(self, now_ms: u64) -> Result<Grant, String> {
        if self.approved_by.trim().is_empty() {
            return Err("`approved_by` is empty; expected the name of a person".into());
        }
        let same: Result<BTreeMap<String, FieldValue>, String> = self
            .same
            .into_iter()
            .map(|(field, value)| Ok((field, fixed(value)?)))
            .collect();
        let condition = Condition::new(same?, self.free).map_err(|bad| bad.to_string())?;
        let labels: Result<Labels, String> = self
            .labels
            .iter()
            .map(|word| Label::parse(word).map_err(|bad| bad.to_string()))
            .collect();
        let expires = self.expires.to_string();
        let expires_at_ms = parse_utc(&expires).ok_or_else(|| {
            format!("`expires` is {expires}; expected a time in UTC, such as 2026-12-31T00:00:00Z")
        })?;
        let digest = |name: &str, text: &str| {
            Digest::parse(text).ok_or_else(|| {
                format!("`{name}` is not a digest; expected sha256: and 64 hexadecimal digits")
            })
        };
        let script = match self.script.as_str() {
            "any" => None,
            text => Some(digest("script", text)?),
        };
        let grant = Grant {
            id: GrantId("".into()),
            scope: self.scope,
            tool: ToolId::parse(&self.tool).map_err(|bad| bad.to_string())?,
            description: digest("description", &self.description)?,
            script,
            policy: digest("policy", &self.policy)?,
            condition,
            uses_max: NonZeroU32::new(self.uses_max).ok_or("`uses_max` is 0")?,
            uses: 0,
            given_at_ms: 0,
            expires_at_ms,
            labels: labels?,
            shown: Digest::sha256(b""),
            by: format!("{} (in a file)", self.approved_by.trim()),
        };
        identified(grant, now_ms)
    }
}

/// Parses a fixed argument: a text, a whole number, `true` or `false`; `{ json = "…" }` for other
/// values; `{ digest = "…" }` for values that are too long to write.
fn fixed(value: toml::Value) -> Result<FieldValue, String> {
    let other = "expected a text, a whole number, true, false, { json = \"…\" }, \
                 { digest = \"…\" } or { under = \"folder/\" }";
    match value {
        toml::Value::String(text) => Ok(FieldValue::from_value(&Value::String(text))),
        toml::Value::Integer(number) => Ok(FieldValue::from_value(&json!(number))),
        toml::Value::Boolean(is) => Ok(FieldValue::from_value(&json!(is))),
        toml::Value::Table(table) => match (table.len(), table.get("json"), table.get("digest")) {
            (1, Some(toml::Value::String(text)), None) => read_json(text),
            (1, None, None) => match table.get("under") {
                Some(toml::Value::String(folder)) => Ok(FieldValue::Under(folder.clone())),
                _ => Err(format!("invalid value in `same`; {other}")),
            },
            (1, None, Some(toml::Value::String(text))) => Digest::parse(text)
                .map(FieldValue::Digest)
                .ok_or_else(|| "invalid `digest` in `same`".into()),
            _ => Err(format!("invalid value in `same`; {other}")),
        },
        _ => Err(format!("invalid value in `same`; {other}")),
    }
}

const BOUNDS: Bounds = Bounds {
    bytes_max: 1024 * 1024,
    depth_max: 64,
    nodes_max: 100_000,
};

fn read_json(text: &str) -> Result<FieldValue, String> {
    airlock_core::json::parse_strict(text.as_bytes(), BOUNDS)
        .map(|value| FieldValue::from_value(&value))
        .map_err(|bad| format!("invalid `json` in `same`: {bad}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render;

    fn digest(text: &str) -> Digest {
        Digest::sha256(text.as_bytes())
    }

    fn needed() -> Grant {
        let args = json!({
            "project": "OPS \"x\"\n", "n": 3, "on": true, "list": [1, "a"], "none": null,
            "x": 1.5, "long": "y".repeat(5_000), "title": "free", "a b": {"c": 1},
            "file": "out/a.md"
        });
        let mut condition = Condition::exactly(&args).unwrap();
        condition.keep(|field, _| !matches!(field, "/title" | "/file"));
        assert!(
            condition
                .to_string()
                .contains("/file is any file under \"out/\"")
        );
        Grant {
            id: GrantId("".into()),
            scope: Scope::Run,
            tool: ToolId::parse("tickets.create").unwrap(),
            description: digest("d"),
            script: Some(digest("s")),
            policy: digest("p"),
            condition,
            uses_max: NonZeroU32::new(20).unwrap(),
            uses: 0,
            given_at_ms: 0,
            expires_at_ms: 1_800_000_000_000,
            labels: Labels::worst(),
            shown: digest(""),
            by: String::new(),
        }
    }

    #[test]
    fn printed_grant_parses_after_signing() {
        let text = render::grant_file(&[needed()]);
        let problem = parse("g.toml", &text, 7).unwrap_err();
        assert!(problem.why.contains("approved_by"), "{problem}");
        let signed = text.replace("approved_by = \"\"", "approved_by = \"Ada\"");
        let [grant] = &parse("g.toml", &signed, 7).unwrap()[..] else {
            panic!("{signed}")
        };
        let expected = Grant {
            id: grant.id.clone(),
            shown: grant.shown,
            given_at_ms: 7,
            by: "Ada (in a file)".into(),
            ..needed()
        };
        assert_eq!(*grant, expected, "{signed}");
        assert!(grant.id.0.starts_with("file-"));
        let wider = signed.replace("uses_max = 20", "uses_max = 21");
        assert_ne!(parse("g.toml", &wider, 7).unwrap()[0].id, grant.id);
    }

    #[test]
    fn report_counts_as_grant_file_after_signing() {
        let report = |by: &str| {
            let grant = Grant {
                by: by.into(),
                uses: 3,
                ..needed()
            };
            json!({"run": "r", "grants_needed": [grant]}).to_string()
        };
        let problem = parse("r.json", &report(" "), 7).unwrap_err();
        assert!(problem.why.contains("`by` of the grant for"), "{problem}");
        let from_report = parse("r.json", &report("Ada"), 7).unwrap();
        let signed = render::grant_file(&[needed()]);
        let signed = signed.replace("approved_by = \"\"", "approved_by = \"Ada\"");
        assert_eq!(from_report, parse("g.toml", &signed, 7).unwrap());
        for (text, why) in [("{}", "no `grants_needed`"), ("{\"a\":", "")] {
            let problem = parse("r.json", text, 7).unwrap_err();
            assert!(problem.why.contains(why), "{problem}");
        }
    }

    #[test]
    fn grant_file_errors_name_their_line() {
        let text =
            render::grant_file(&[needed()]).replace("approved_by = \"\"", "approved_by = \"A\"");
        for (from, to, why) in [
            ("uses_max = 20", "uses_max = 0", "`uses_max` is 0"),
            (
                "uses_max = 20",
                "uses_maxx = 20",
                "unknown field `uses_maxx`",
            ),
            (
                "scope = \"run\"",
                "scope = \"ever\"",
                "unknown variant `ever`",
            ),
            ("tool = \"tickets", "tool = \"", ""),
            (
                "description = \"sha256:",
                "description = \"",
                "`description` is not a digest",
            ),
            (
                "script = \"sha256:",
                "script = \"",
                "`script` is not a digest",
            ),
            ("\"untrusted\"", "\"untrustd\"", "invalid label"),
            ("free = [\"/title\"]", "free = [\"title\"]", "invalid field"),
            (
                "expires = 2027",
                "expires = 2027-01-01T00:00:00+01:00 # 2027",
                "UTC",
            ),
        ] {
            let changed = text.replacen(from, to, 1);
            assert_ne!(changed, text, "{from}");
            let problem = parse("g.toml", &changed, 7).unwrap_err();
            assert!(problem.why.contains(why), "{problem}");
            assert!(problem.what.contains("line"), "{problem}");
        }
        assert!(parse("g.toml", "", 7).is_err());
    }
}
