//! Explains a value that fits none of several alternatives: which one was probably meant, and how
//! the value differs from it.

use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind as Kind;
use serde_json::Value;

use super::{CANDIDATES_MAX, Explain, display_value, list_of, member_path, quoted};
use crate::closest::closest;
use crate::text;
use crate::validate::finding::Finding;

type Fault = ValidationError<'static>;

/// Maximum number of errors examined for one alternative; further ones would repeat the first.
const FAULTS_MAX: usize = 200;
/// Maximum number of these errors that are tried as the tag which distinguishes the alternatives.
const TAGS_MAX: usize = 10;

pub(super) fn explain(
    explain: &Explain<'_>,
    error: &ValidationError<'_>,
    branches: &[Vec<Fault>],
) -> Vec<Finding> {
    let union = Union {
        explain,
        error,
        here: error.instance_path().as_str(),
    };
    let viable: Vec<&[Fault]> = branches
        .iter()
        .filter(|faults| !union.is_of_other_type(faults))
        .map(Vec::as_slice)
        .collect();
    match viable.as_slice() {
        [] => vec![union.of_no_type(branches)],
        [only] => union.explained(only),
        several => union
            .missing_one_of(several)
            .or_else(|| union.same_tag(several))
            .map_or_else(|| union.closest(several), |finding| vec![finding]),
    }
}

struct Union<'a> {
    explain: &'a Explain<'a>,
    error: &'a ValidationError<'a>,
    here: &'a str,
}

impl Union<'_> {
    fn is_of_other_type(&self, faults: &[Fault]) -> bool {
        faults.iter().any(|it| {
            it.instance_path().as_str() == self.here && matches!(it.kind(), Kind::Type { .. })
        })
    }

    fn explained(&self, faults: &[Fault]) -> Vec<Finding> {
        let first = faults.iter().take(crate::validate::ERRORS_MAX);
        first.flat_map(|it| self.explain.one(it)).collect()
    }

    /// Reports that no alternative accepts the type of the value.
    fn of_no_type(&self, branches: &[Vec<Fault>]) -> Finding {
        let at_top = branches
            .iter()
            .flatten()
            .filter(|it| it.instance_path().as_str() == self.here);
        let types = at_top.filter(|it| matches!(it.kind(), Kind::Type { .. }));
        let mut wanted: Vec<String> = Vec::new();
        for expected in types.map(|it| self.explain.leaf_expectation(it)) {
            if !wanted.contains(&expected) {
                wanted.push(expected);
            }
        }
        let correction = branches
            .iter()
            .flatten()
            .find_map(|it| self.explain.correction(it));
        Finding::error(
            self.explain.path(self.error),
            list_of(wanted),
            display_value(self.error.instance()),
        )
        .suggesting(correction)
    }

    /// Reports alternatives that each require only one more property.
    fn missing_one_of(&self, branches: &[&[Fault]]) -> Option<Finding> {
        let names: Option<Vec<String>> = branches
            .iter()
            .map(|faults| match faults {
                [only] if only.instance_path().as_str() == self.here => {
                    required_name(only).map(quoted)
                }
                _ => None,
            })
            .collect();
        let mut names = names?;
        names.dedup();
        let several = names.len() > 1;
        let got = if names.len() > 2 {
            "none of them"
        } else {
            "neither of them"
        };
        let path = self.explain.path(self.error);
        several.then(|| {
            Finding::error(
                path,
                format!("the property {}", list_of(names)),
                got.to_owned(),
            )
        })
    }

    /// Reports a tag that matches none of the alternatives.
    fn same_tag(&self, branches: &[&[Fault]]) -> Option<Finding> {
        let first = branches.first()?;
        let faults = first.iter().take(FAULTS_MAX);
        let paths = faults
            .filter_map(|fault| self.tag_path(fault))
            .take(TAGS_MAX);
        paths
            .into_iter()
            .find_map(|path| self.at_tag(&path, branches))
    }

    fn at_tag(&self, path: &str, branches: &[&[Fault]]) -> Option<Finding> {
        let mut expected: Vec<String> = Vec::new();
        let mut texts: Vec<String> = Vec::new();
        let mut got = "nothing".to_owned();
        let mut given: Option<String> = None;
        for faults in branches {
            let fault = faults
                .iter()
                .take(FAULTS_MAX)
                .find(|it| self.tag_path(it).as_deref() == Some(path))?;
            for option in self.tag_options(fault) {
                texts.extend(option.as_str().map(str::to_owned));
                let text = display_value(&option);
                if !expected.contains(&text) {
                    expected.push(text);
                }
            }
            if required_name(fault).is_none() {
                got = display_value(fault.instance());
                given = fault.instance().as_str().map(str::to_owned);
            }
        }
        let meant = closest(
            given.as_deref().unwrap_or_default(),
            texts.iter().map(String::as_str).take(CANDIDATES_MAX),
        );
        let suggestion = meant.map(|it| format!("Did you mean {}?", text::literal(it)));
        (!expected.is_empty())
            .then(|| Finding::error(path.to_owned(), list_of(expected), got).suggesting(suggestion))
    }

    /// Returns the path of an error about a constant, if the error is at the union itself or at one
    /// of its properties.
    fn tag_path(&self, fault: &Fault) -> Option<String> {
        let relative = fault.instance_path().as_str().get(self.here.len()..)?;
        match fault.kind() {
            Kind::Constant { .. } | Kind::Enum { .. } if relative.matches('/').count() <= 1 => {
                Some(self.explain.path(fault))
            }
            Kind::Required { .. } if relative.is_empty() && !self.tag_options(fault).is_empty() => {
                Some(member_path(
                    &self.explain.path(fault),
                    required_name(fault)?,
                ))
            }
            _ => None,
        }
    }

    fn tag_options(&self, fault: &Fault) -> Vec<Value> {
        let listed = |options: &Value| options.as_array().cloned().unwrap_or_default();
        match fault.kind() {
            Kind::Constant { expected_value } => vec![(**expected_value).clone()],
            Kind::Enum { options } => listed(options),
            Kind::Required { .. } => {
                let owner = self.explain.keyword_owner(fault);
                let name = required_name(fault).unwrap_or_default();
                let declared = owner.and_then(|it| it.get("properties")?.get(name));
                let only = declared
                    .and_then(|it| it.get("const"))
                    .map(|it| vec![it.clone()]);
                only.or_else(|| declared?.get("enum").map(listed))
                    .unwrap_or_default()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the errors against the alternative with the fewest errors; a wrong tag counts more
    /// than all other errors.
    fn closest(&self, branches: &[&[Fault]]) -> Vec<Finding> {
        let distance = |faults: &[Fault]| {
            let tags = faults
                .iter()
                .take(FAULTS_MAX)
                .filter(|it| self.tag_path(it).is_some())
                .count();
            (tags, faults.len())
        };
        let Some(best) = branches.iter().min_by_key(|faults| distance(faults)) else {
            return Vec::new();
        };
        let is_certain = branches
            .iter()
            .filter(|faults| distance(faults).0 == 0)
            .count()
            == 1;
        let mut findings = self.explained(best);
        for finding in findings
            .iter_mut()
            .filter(|it| !is_certain && !it.expected.ends_with(')'))
        {
            finding.expected.push_str(" (in the closest alternative)");
        }
        findings
    }
}

fn required_name(fault: &Fault) -> Option<&str> {
    match fault.kind() {
        Kind::Required { property } => property.as_str(),
        _ => None,
    }
}
