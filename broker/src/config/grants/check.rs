//! A file of grants as a reviewer is told of it: everything that is wrong in it,
//! each with its place, where a run would stop at the first.

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
use crate::clock::utc;
use crate::config::{read_text, shown};

const EXPIRES: &str = "expires";
/// Nobody thinks of what was approved longer ago than this.
const YEAR_MS: u64 = 366 * 24 * 60 * 60 * 1000;

/// A file of grants that was looked through.
#[derive(Debug)]
pub(crate) struct Checked {
    /// As it is called in messages.
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) count: usize,
    pub(crate) findings: Vec<Finding>,
}

/// As much of a file as says where its grants are.
#[derive(Deserialize)]
struct Outline {
    #[serde(default)]
    grant: Vec<Spanned<toml::Table>>,
}

/// As much as says where each says when it ends.
#[derive(Default, Deserialize)]
struct Ends {
    #[serde(default)]
    grant: Vec<End>,
}

#[derive(Deserialize)]
struct End {
    expires: Option<Spanned<toml::Value>>,
}

/// A file that cannot be read at all is a problem, and what stands in it is a finding.
pub(crate) fn check(path: &Path, now_ms: u64) -> Result<Checked, Problem> {
    let text = read_text(path)?;
    let name = shown(path);
    let file = File {
        name: name.as_str().into(),
        text: &text,
        now_ms,
    };
    let (count, mut findings) = file.findings();
    findings.sort();
    Ok(Checked {
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
    /// How many grants there are, and what is wrong.
    fn findings(&self) -> (usize, Vec<Finding>) {
        let outline: Outline = match toml::from_str(self.text) {
            Ok(outline) => outline,
            Err(error) => {
                let at = error.span().map_or(0, |span| span.start);
                let why = error.message().to_owned();
                return (0, vec![self.unusable(at, "the file cannot be read", why)]);
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
        // What is wrong beside the grants.
        if is_good && let Err(error) = toml::from_str::<Document>(self.text) {
            let at = error.span().map_or(0, |span| span.start);
            let why = error.message().to_owned();
            findings.push(self.unusable(at, "the file cannot be used", why));
        } else if outline.grant.is_empty() {
            let why = "it has no [[grant]]".to_owned();
            findings.push(self.unusable(0, "the file holds no grant", why));
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
        let read: Result<super::Entry, _> = toml::Value::Table(table).try_into();
        let read = read.map_err(|error| error.message().to_owned());
        match read.and_then(|entry| entry.grant(self.now_ms)) {
            Ok(grant) => findings.extend(end.and_then(|end| self.of_end(&grant, end))),
            Err(why) => findings.push(self.unusable(at, "the grant cannot be used", why)),
        }
        findings
    }

    /// An end that is there, and is none.
    fn of_end(&self, grant: &Grant, end: Range<usize>) -> Option<Finding> {
        let place = Place::of(&self.name, self.text, end.start);
        if grant.expires_at_ms <= self.now_ms {
            let what = "the grant has expired";
            let why = "it covers no call any more";
            let next = "leave it out, or ask for approval again";
            return Some(Finding::new(Kind::GrantExpired, place, what, why, next));
        }
        if grant.expires_at_ms <= self.now_ms.saturating_add(YEAR_MS) {
            return None;
        }
        let what = "the grant holds for more than a year";
        let why = "a grant may last at most one year";
        let next = "write a sooner end, in UTC";
        let until = self.usual_end(grant.scope);
        let told = format!("write {until}");
        let fix = Fix::put(&self.name, self.text, end, until, told);
        Some(Finding::new(Kind::GrantWithoutExpiry, place, what, why, next).fixed(Some(fix)))
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
        let why = "it has no end; a grant must say when it ends";
        let next = "write until when it holds, in UTC";
        let what = "the grant does not expire";
        let place = Place::of(&self.name, self.text, at);
        let finding = Finding::new(Kind::GrantWithoutExpiry, place, what, why, next);
        // Below its header, and so before any table of its own.
        let rest = self.text.get(at..).unwrap_or_default();
        let is_header = rest.starts_with("[[");
        let below = rest.find('\n').filter(|_| is_header);
        finding.fixed(below.map(|below| {
            let what = format!("write {line}");
            let at = at + below + 1;
            Fix::put(&self.name, self.text, at..at, format!("{line}\n"), what)
        }))
    }

    fn unusable(&self, at: usize, what: &str, why: String) -> Finding {
        let place = Place::of(&self.name, self.text, at);
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
    fn a_grant_without_an_end_is_found_with_one_that_is_usual() {
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
    fn an_end_that_is_past_or_far_away_is_none() {
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
    fn all_that_is_wrong_is_found_and_not_the_first_alone() {
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
    fn what_is_no_file_of_grants_is_one_finding_with_its_place() {
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
