//! Checks the fixes of policies that cannot be loaded, and drops those that leave the mistake in
//! place. Runs do not use this module.

use crate::policy::finding::Finding;
use crate::policy::fix::Fix;
use crate::policy::load::read_one;
use crate::policy::source::one_by_one;
use crate::policy::validate::Checker;
use crate::policy::{InvalidPolicies, PolicyFile, Vocabulary};

/// Maximum total size of files that are checked again; later fixes are dropped.
const BYTES_MAX: usize = 16 * 1024 * 1024;

impl InvalidPolicies {
    /// Returns all findings, with fixes only where they are known to help.
    #[must_use]
    pub fn into_findings_with_fixes(self) -> Vec<Finding> {
        let mut findings = self.findings;
        keep_good(&mut findings, &self.files, &self.vocabulary);
        findings
    }
}

/// Drops each fix after which its finding would still be reported.
fn keep_good(findings: &mut [Finding], files: &[PolicyFile], vocabulary: &Vocabulary) {
    let mut checker = Checker::new(vocabulary);
    let mut bytes_left = BYTES_MAX;
    for finding in findings {
        let Some(fix) = &finding.fix else { continue };
        let file = files.iter().find(|file| *file.name == *finding.place.file);
        let bytes = file.map_or(0, |file| file.text.len());
        bytes_left = bytes_left.saturating_sub(bytes);
        if bytes_left == 0 || !is_good(fix, finding, file, &mut checker) {
            finding.fix = None;
        }
    }
}

fn is_good(
    fix: &Fix,
    finding: &Finding,
    file: Option<&PolicyFile>,
    checker: &mut Checker<'_>,
) -> bool {
    let changed = file.and_then(|file| Some((file, fix.apply(&file.text)?)));
    let Some((file, changed)) = changed else {
        return false;
    };
    let first = fix.first_byte();
    let (name, changed) = (file.name.as_str().into(), changed.as_str().into());
    let Some(statement) = one_by_one(&name, &changed).find(|it| it.end() > first) else {
        return true;
    };
    let after = match read_one(statement, file.tightens) {
        Ok(rule) => checker.check(&[rule]),
        Err(findings) => findings,
    };
    after
        .iter()
        .all(|it| (it.kind, &it.what) != (finding.kind, &finding.what))
}
