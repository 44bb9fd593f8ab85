//! Checks a file of grants for reviewers. The check reports all faults with their places, whereas a
//! run stops at the first fault.

use std::iter;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use airlock_core::grant::{Grant, Scope};
use airlock_core::policy::{Finding, Fix, Kind, Place};
use airlock_core::problem::Problem;
use serde::Deserialize;
use toml::Spanned;

use super::{Document, NEXT};
use crate::config::{display_path, read_text};
use airlock_sandbox::clock::utc;

const EXPIRES: &str = "expires";
/// Maximum remaining lifetime of a grant in milliseconds. People forget approvals that last longer
/// than a year.
const YEAR_MS: u64 = 366 * 24 * 60 * 60 * 1000;

/// The result of checking a file of grants.
#[derive(Debug)]
pub(crate) struct GrantFileReport {
    /// The name of the file for messages.
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) count: usize,
    pub(crate) findings: Vec<Finding>,
}

/// The parts of a file that show where its grants are.
#[derive(Deserialize)]
struct Outline {
    #[serde(default)]
    grant: Vec<Spanned<toml::Table>>,
}

/// The parts of a file that show where its grants' expiry dates are.
#[derive(Default, Deserialize)]
struct Ends {
    #[serde(default)]
    grant: Vec<End>,
}

#[derive(Deserialize)]
struct End {
    expires: Option<Spanned<toml::Value>>,
}

/// Checks a file of grants. Returns a problem if the file cannot be read. Faults in its content are
/// findings.
pub(crate) fn check(path: &Path, now_ms: u64) -> Result<GrantFileReport, Problem> {
    let text = read_text(path)?;
    let name = display_path(path);
    let file = File {
        name: name.as_str().into(),
        text: &text,
        now_ms,
    };
    let (count, mut findings) = file.findings();
    findings.sort();
    Ok(GrantFileReport {
        name,
        count,
        findings,
        text,
    })
}

struct File<'a> {
    name: Arc<str>,
    text: &'a str,
    now_ms: u64,
}

impl File<'_> {
    /// Returns the number of grants and all findings.
    fn findings(&self) -> (usize, Vec<Finding>) {
        if super::is_report(self.text) {
            return match super::of_report(self.text, self.now_ms) {
                Ok(grants) => {
                    let ends = grants.iter().filter_map(|it| self.of_end(it, None));
                    (grants.len(), ends.collect())
                }
                Err(why) => (0, vec![self.unusable(0, "invalid file of grants", why)]),
            };
        }
        let outline: Outline = match toml::from_str(self.text) {
            Ok(outline) => outline,
            Err(error) => {
                let at = error.span().map_or(0, |span| span.start);
                let why = error.message().to_owned();
                return (0, vec![self.unusable(at, "invalid file of grants", why)]);
            }
        };
        let mut findings = Vec::new();
        let mut is_good = true;
        let ends: Ends = toml::from_str(self.text).unwrap_or_default();
        let ends = ends.grant.into_iter().map(|it| Some(it.expires?.span()));
        for (grant, end) in outline.grant.iter().zip(ends.chain(iter::repeat(None))) {
            let found = self.of_grant(grant, end);
            is_good &= found.is_empty();
            findings.extend(found);
        }
        // All grants are valid, so a remaining error is outside of them.
        if is_good && let Err(error) = toml::from_str::<Document>(self.text) {
            let at = error.span().map_or(0, |span| span.start);
            let why = error.message().to_owned();
            findings.push(self.unusable(at, "invalid file of grants", why));
        } else if outline.grant.is_empty() {
            let why = "the file has no [[grant]]".to_owned();
            findings.push(self.unusable(0, "the file contains no grant", why));
        }
        (outline.grant.len(), findings)
    }

    fn of_grant(&self, grant: &Spanned<toml::Table>, end: Option<Range<usize>>) -> Vec<Finding> {
        let at = grant.span().start;
        let mut table = grant.get_ref().clone();
        let mut findings = Vec::new();
        if !table.contains_key(EXPIRES) {
            findings.push(self.without_end(at, &table));
            if let Ok(end) = utc_of(self.now_ms).parse() {
                table.insert(EXPIRES.to_owned(), toml::Value::Datetime(end));
            }
        }
        let read: Result<super::GrantEntry, _> = toml::Value::Table(table).try_into();
        let read = read.map_err(|error| error.message().to_owned());
        match read.and_then(|entry| entry.grant(self.now_ms)) {
            Ok(grant) => findings.extend(end.and_then(|end| self.of_end(&grant, Some(end)))),
            Err(why) => findings.push(self.unusable(at, "invalid grant", why)),
        }
        findings
    }

    /// Returns a finding if the expiry has passed or is more than a year away. A report has no place
    /// for it.
    fn of_end(&self, grant: &Grant, end: Option<Range<usize>>) -> Option<Finding> {
        let at = end.as_ref().map_or(0, |end| end.start);
        let place = Place::at_offset(&self.name, self.text, at);
        if grant.expires_at_ms <= self.now_ms {
            let what = "the grant has expired";
            let why = "an expired grant covers no call";
            let next = "remove the grant, or ask for approval again";
            return Some(Finding::new(Kind::GrantExpired, place, what, why, next));
        }
        if grant.expires_at_ms <= self.now_ms.saturating_add(YEAR_MS) {
            return None;
        }
        let what = "the grant expires in more than a year";
        let why = "a grant may last at most one year";
        let next = "write an earlier time for `expires`, in UTC";
        let until = self.usual_end(grant.scope);
        let told = format!("write {until}");
        let fix = end.map(|end| Fix::replace_range(&self.name, self.text, end, until, told));
        Some(Finding::new(Kind::GrantWithoutExpiry, place, what, why, next).fixed(fix))
    }

    fn usual_end(&self, scope: Scope) -> String {
        utc_of(self.now_ms.saturating_add(scope.lasts_ms()))
    }

    fn without_end(&self, at: usize, table: &toml::Table) -> Finding {
        let scope = table.get("scope").and_then(toml::Value::as_str);
        let known = [Scope::Run, Scope::Session, Scope::Project];
        let scope = known
            .into_iter()
            .find(|it| scope == Some(it.as_str()))
            .unwrap_or(Scope::Run);
        let until = self.usual_end(scope);
        let line = format!("{EXPIRES} = {until}");
        let why = "every grant must expire, and this one has no `expires`";
        let next = "add `expires` with a time in UTC";
        let what = "the grant does not expire";
        let place = Place::at_offset(&self.name, self.text, at);
        let finding = Finding::new(Kind::GrantWithoutExpiry, place, what, why, next);
        // The expiry is inserted below the header of the grant, before any table inside the grant.
        let rest = self.text.get(at..).unwrap_or_default();
        let is_header = rest.starts_with("[[");
        let below = rest.find('\n').filter(|_| is_header);
        finding.fixed(below.map(|below| {
            let what = format!("write {line}");
            let at = at + below + 1;
            Fix::replace_range(&self.name, self.text, at..at, format!("{line}\n"), what)
        }))
    }

    fn unusable(&self, at: usize, what: &str, why: String) -> Finding {
        let place = Place::at_offset(&self.name, self.text, at);
        Finding::new(Kind::GrantUnusable, place, what, why, NEXT)
    }
}

fn utc_of(ms: u64) -> String {
    utc(ms).replacen(' ', "T", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

    fn grant(changes: &[(&str, &str)]) -> String {
        let text = format!(
            "[[grant]]\ntool = \"t.create\"\nuses_max = 2\nscope = \"session\"\n\
             expires = 2027-01-01T00:00:00Z\napproved_by = \"Ada\"\ndescription = \"{DIGEST}\"\n\
             script = \"any\"\npolicy = \"{DIGEST}\"\nlabels = []\nfree = []\n\
             [grant.same]\n\"/a\" = 1\n"
        );
        changes
            .iter()
            .fold(text, |text, (from, to)| text.replacen(from, to, 1))
    }

    fn found(text: &str) -> Vec<Finding> {
        let name = "g.toml".into();
        let now_ms = 1_767_225_600_000;
        File { name, text, now_ms }.findings().1
    }

    const ENDLESS: (&str, &str) = ("expires = 2027-01-01T00:00:00Z\n", "");

    #[test]
    fn missing_expiry_is_reported_with_suggestion() {
        let good = grant(&[]);
        let text = format!("# signed\n{good}\n{}{good}", grant(&[ENDLESS]));
        let [finding] = &found(&text)[..] else {
            panic!("{:?}", found(&text))
        };
        assert_eq!(finding.kind, Kind::GrantWithoutExpiry);
        assert_eq!((finding.place.line, finding.place.column), (16, 1));
        let fix = finding.fix.as_ref().unwrap();
        assert_eq!(fix.what, "write expires = 2026-01-01T12:00:00Z");
        let fixed = fix.apply(&text).unwrap();
        assert!(found(&fixed).is_empty(), "{fixed}");
        assert_eq!(super::super::parse("g.toml", &fixed, 7).unwrap().len(), 3);
    }

    #[test]
    fn past_or_distant_expiry_is_reported() {
        let ends = |end: &str| grant(&[("2027-01-01T00:00:00Z", end)]);
        let text = [
            ends("2001-01-01T00:00:00Z"),
            ends("2026-01-01T00:00:00Z"),
            ends("2026-12-31T00:00:00Z"),
            ends("9999-12-31T23:59:59Z"),
        ]
        .concat();
        let all = found(&text);
        let kinds: Vec<_> = all
            .iter()
            .map(|it| (it.kind.as_str(), it.place.line, it.place.column))
            .collect();
        let expected = [
            ("grant-expired", 5, 11),
            ("grant-expired", 18, 11),
            ("grant-without-expiry", 44, 11),
        ];
        assert_eq!(kinds, expected, "{all:?}");
        let fixed = all[2].fix.as_ref().unwrap().apply(&text).unwrap();
        assert_eq!(found(&fixed).len(), 2, "{fixed}");
        assert!(fixed.contains("expires = 2026-01-01T12:00:00Z"), "{fixed}");
    }

    #[test]
    fn all_errors_of_a_grant_file_are_reported() {
        let text = [
            grant(&[ENDLESS, ("approved_by = \"Ada\"", "approved_by = \"\"")]),
            grant(&[("uses_max = 2", "uses_max = 0")]),
            grant(&[]),
            grant(&[("script = \"any\"", "scrpt = \"any\"")]),
        ];
        let found: Vec<_> = found(&text.concat())
            .into_iter()
            .map(|it| (it.kind.as_str(), it.place.line, it.why))
            .collect();
        let kinds: Vec<_> = found.iter().map(|(kind, line, _)| (*kind, *line)).collect();
        let expected = [
            ("grant-without-expiry", 1),
            ("grant-unusable", 1),
            ("grant-unusable", 13),
            ("grant-unusable", 39),
        ];
        assert_eq!(kinds, expected, "{found:?}");
        assert!(found[1].2.contains("approved_by"), "{found:?}");
        assert!(found[3].2.contains("scrpt"), "{found:?}");
    }

    #[test]
    fn invalid_grant_file_is_one_finding_with_place() {
        for (text, line) in [
            ("", 1),
            ("[[grant]]\ntool = \"x\ny\"\n", 3),
            ("grant = 3\n", 1),
            ("\u{0}\n", 1),
            (&*format!("{}[other]\nx = 1\n", grant(&[])), 14),
        ] {
            let all = found(text);
            let [finding] = &all[..] else {
                panic!("{text}: {all:?}")
            };
            assert_eq!(
                (finding.kind, finding.place.line),
                (Kind::GrantUnusable, line),
                "{text}"
            );
        }
        let inline = "grant = [{ tool = \"a.b\" }]\n";
        let kinds: Vec<_> = found(inline).iter().map(|it| it.kind).collect();
        assert!(kinds.contains(&Kind::GrantWithoutExpiry), "{kinds:?}");
        assert!(found(inline).iter().all(|it| it.fix.is_none()));
    }
}
