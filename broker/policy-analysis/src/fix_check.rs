//! Checks the fixes of policies that cannot be loaded. A fix that does not remove its mistake is
//! dropped. Runs do not use this module.

use airlock_core::policy::finding::Finding;
use airlock_core::policy::fix::Fix;
use airlock_core::policy::load::read_one;
use airlock_core::policy::source::one_by_one;
use airlock_core::policy::validate::Checker;
use airlock_core::policy::{InvalidPolicies, PolicyFile, Vocabulary};

/// Maximum total size of rules that are checked again; later fixes are dropped.
const BYTES_MAX: usize = 128 * 1024;
/// The size that a short rule counts as: the check has costs of its own.
const RULE_BYTES_MIN: usize = 1024;

/// Returns all findings, with fixes only where they are known to help.
#[must_use]
pub fn findings_with_checked_fixes(invalid: InvalidPolicies) -> Vec<Finding> {
    let mut findings = invalid.findings;
    keep_good(&mut findings, &invalid.files, &invalid.vocabulary);
    findings
}

/// Drops each fix after which its finding would still be reported.
fn keep_good(findings: &mut [Finding], files: &[PolicyFile], vocabulary: &Vocabulary) {
    let mut checker = Checker::without_fixes(vocabulary);
    let mut bytes_left = BYTES_MAX;
    for finding in findings {
        let Some(fix) = &finding.fix else { continue };
        let file = files.iter().find(|file| *file.name == *finding.place.file);
        if bytes_left == 0 || !is_good(fix, finding, file, (&mut checker, &mut bytes_left)) {
            finding.fix = None;
        }
    }
}

fn is_good(
    fix: &Fix,
    finding: &Finding,
    file: Option<&PolicyFile>,
    (checker, bytes_left): (&mut Checker<'_>, &mut usize),
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
    let bytes = statement.text().len().max(RULE_BYTES_MIN);
    *bytes_left = bytes_left.saturating_sub(bytes);
    let after = match read_one(statement, file.tightens) {
        Ok(rule) => checker.check(&[rule]),
        Err(findings) => findings,
    };
    after
        .iter()
        .all(|it| (it.kind, &it.what) != (finding.kind, &finding.what))
}
