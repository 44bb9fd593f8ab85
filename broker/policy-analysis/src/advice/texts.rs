//! Advice about texts that a fact or an argument never has, and about patterns that match more or
//! less than they seem to.

use std::collections::BTreeSet;

use cedar_policy::pst::{BinaryOp, Expr, Literal, PatternElem};
use codegen::closest::closest;

use super::Advice;
use super::ask::{Ask, Form, Value, way};
use airlock_core::facts::OUTSIDE;
use airlock_core::policy::ast::PlacedPart;
use airlock_core::policy::expr::literal_part;
use airlock_core::policy::finding::{Finding, did_you_mean};
use airlock_core::policy::fix::Fix;
use airlock_core::policy::kind::Kind;
use airlock_core::policy::mentions::ARGS;
use airlock_core::policy::repair::about;
use airlock_core::policy::spelling::{quoted, spelt};
use airlock_core::policy::vocabulary::ToolWords;

/// Top-level domains that mark a text as a host name and not a file name.
const ENDINGS: [&str; 24] = [
    "ai", "app", "biz", "ch", "cloud", "co", "com", "corp", "de", "dev", "edu", "eu", "example",
    "fr", "gov", "info", "internal", "io", "local", "net", "nl", "org", "test", "uk",
];

impl Advice<'_> {
    /// Returns the tools that the rule applies to.
    pub(super) fn tools(&self) -> impl Iterator<Item = &ToolWords> {
        let covers =
            |(name, words): &(&String, &ToolWords)| self.rule.scope.covers(name, &words.groups);
        self.vocabulary
            .tools
            .iter()
            .filter(covers)
            .map(|(_, words)| words)
    }

    pub(super) fn texts(&self, seen: &PlacedPart<'_>, form: &Form) -> Option<Finding> {
        if let Expr::Like { expr, pattern } = seen.expr {
            return self.pattern(seen, expr, pattern);
        }
        let equal = equal_sets(seen.expr);
        let equal = equal.iter().map(|(way, text)| (way, text.as_str()));
        for (way, text) in compared(form).into_iter().chain(equal) {
            let way: Vec<&str> = way.iter().map(String::as_str).collect();
            let finding = match way.as_slice() {
                [ARGS, name, ..] => self
                    .star(seen, text)
                    .or_else(|| self.listed(seen, name, text)),
                [fact] => self.spelt_so(seen, fact, text),
                _ => None,
            };
            if finding.is_some() {
                return finding;
            }
        }
        None
    }

    fn pattern(
        &self,
        seen: &PlacedPart<'_>,
        read: &Expr,
        pattern: &[PatternElem],
    ) -> Option<Finding> {
        let has_wildcard = pattern.contains(&PatternElem::Wildcard);
        let (read_text, literal) = (spelt(read)?, literal_part(pattern));
        if !has_wildcard {
            let what = "a pattern without a wildcard";
            let instead = format!("{read_text} == {}", quoted(&literal)?);
            return Some(self.at(seen, Kind::PatternIdle, (what, ""), Some(instead)));
        }
        if pattern.iter().all(|it| *it == PatternElem::Wildcard) {
            let what = "every text matches this pattern";
            return Some(self.idle(seen, what, "the pattern contains only wildcards"));
        }
        let is_argument = way(read)?.first()? == ARGS;
        let (rest, name, fact) = ending(&literal).filter(|_| is_argument)?;
        let what = format!("every text that ends in `{rest}` matches, not only `{name}`");
        let why = "other destinations can end in the same text, such as evil-NAME";
        let instead = about(fact, name, name, seen.sign);
        Some(self.at(seen, Kind::HostPattern, (&what, why), instead))
    }

    /// Reports a pattern that is compared as text, such as `== "acme/*"`.
    fn star(&self, seen: &PlacedPart<'_>, text: &str) -> Option<Finding> {
        let is_pattern = text.len() > 1 && (text.ends_with('*') || text.starts_with('*'));
        let Expr::BinaryOp { left, right, .. } = seen.expr else {
            return None;
        };
        if !is_pattern {
            return None;
        }
        let read = spelt(left)
            .filter(|_| way(left).is_some())
            .or_else(|| spelt(right))?;
        let instead = matches!(
            seen.expr,
            Expr::BinaryOp {
                op: BinaryOp::Eq,
                ..
            }
        )
        .then(|| match ending(text) {
            // As a pattern, the text would also match other hosts.
            Some((_, name, fact)) => about(fact, name, name, seen.sign),
            None => quoted(text).map(|text| format!("{read} like {text}")),
        })
        .flatten();
        let what = format!("`{text}` is compared literally");
        let why = "`*` matches any characters only after `like`";
        Some(self.at(seen, Kind::PatternAsText, (&what, why), instead))
    }

    /// Reports a text that is not among the values in the input schemas.
    fn listed(&self, seen: &PlacedPart<'_>, name: &str, text: &str) -> Option<Finding> {
        let mut known: BTreeSet<&str> = BTreeSet::new();
        for words in self.tools().filter(|words| words.args.0.contains_key(name)) {
            known.extend(words.values.get(name)?.iter().map(String::as_str));
        }
        if known.is_empty() || known.contains(text) {
            return None;
        }
        let all: Vec<&str> = known.iter().copied().collect();
        let what = format!("`{name}` is never `{text}`");
        let why = format!("the input schema lists {}", all.join(", "));
        let meant = closest(text, all.iter().copied());
        Some(self.other_text(seen, Kind::ValueUnknown, (&what, &why), text, meant))
    }

    /// Reports a text whose spelling differs from the form that the broker uses for a fact.
    fn spelt_so(&self, seen: &PlacedPart<'_>, fact: &str, text: &str) -> Option<Finding> {
        match fact {
            "path_roots" => return self.root(seen, text),
            "labels" => return self.label(seen, text),
            _ => {}
        }
        let (instead, why) = match fact {
            "dest_hosts" => (
                host(text),
                "hosts are written in lower case, without scheme, path or wildcard",
            ),
            "dest_domains" => (
                domain(text),
                "domains are written as the part after the `@`, in lower case",
            ),
            "dest_addresses" => (
                address(text),
                "addresses are written as LOCAL@domain, with the domain in lower case",
            ),
            "unmodelled" | "large_texts" | "lookalikes" | "dest_unexplained" => {
                (pointer(text), "fields are JSON pointers, such as /to/0")
            }
            _ => return None,
        };
        if instead == text {
            return None;
        }
        let what = format!("`{fact}` never contains `{text}`");
        let meant = (!instead.is_empty()).then_some(instead.as_str());
        Some(self.other_text(seen, Kind::ValueMisspelt, (&what, why), text, meant))
    }

    fn root(&self, seen: &PlacedPart<'_>, text: &str) -> Option<Finding> {
        let roots = &self.vocabulary.configured.as_ref()?.roots;
        if text == OUTSIDE || roots.contains(text) {
            return None;
        }
        let all: Vec<&str> = roots.iter().map(String::as_str).chain([OUTSIDE]).collect();
        let what = format!("there is no root `{text}`");
        let why = format!("the possible values are {}", all.join(", "));
        let meant = closest(text, all.iter().copied());
        Some(self.other_text(seen, Kind::RootUnknown, (&what, &why), text, meant))
    }

    /// Reports a class of private data that no configured label names, such as `private:mial`.
    fn label(&self, seen: &PlacedPart<'_>, text: &str) -> Option<Finding> {
        let labels = &self.vocabulary.configured.as_ref()?.labels;
        if !text.starts_with("private:") || labels.contains(text) {
            return None;
        }
        let classes = labels.iter().map(String::as_str);
        let classes: Vec<&str> = classes.filter(|it| it.starts_with("private:")).collect();
        let what = format!("`labels` never contains `{text}`");
        let why = match classes.is_empty() {
            true => "the configuration has no label with a class".to_owned(),
            false => format!(
                "the classes in the configuration are {}",
                classes.join(", ")
            ),
        };
        let meant = closest(text, classes.iter().copied());
        Some(self.other_text(seen, Kind::ValueMisspelt, (&what, &why), text, meant))
    }

    /// Returns a finding at a text, with another text as replacement.
    fn other_text(
        &self,
        seen: &PlacedPart<'_>,
        kind: Kind,
        words: (&str, &str),
        text: &str,
        meant: Option<&str>,
    ) -> Finding {
        let statement = &self.rule.statement;
        let range = seen.tree.range.clone();
        let found = quoted(text).and_then(|text| {
            let at = statement.text().get(range.clone())?.find(&text)?;
            Some(range.start + at..range.start + at + text.len())
        });
        let place = statement.place(found.as_ref().map_or(range.start, |found| found.start));
        let fix = found.zip(meant.and_then(quoted)).map(|(found, meant)| {
            let what = format!("write {meant}");
            Fix::replace(statement, found, meant, what)
        });
        let next = did_you_mean(meant);
        Finding::new(kind, place, words.0, words.1, next).fixed(fix)
    }
}

/// Returns each path with the texts that it is compared with.
fn compared(form: &Form) -> Vec<(&Vec<String>, &str)> {
    match form {
        Form::One(ask, _) => written(ask),
        Form::All(forms) | Form::Any(forms) => forms.iter().flat_map(compared).collect(),
    }
}

fn written(ask: &Ask) -> Vec<(&Vec<String>, &str)> {
    match ask {
        Ask::Equal(way, value) | Ask::Holds(way, value) => {
            value.text().map(|text| (way, text)).into_iter().collect()
        }
        Ask::Within(way, all) => {
            let texts = all.iter().filter_map(Value::text);
            texts.map(|text| (way, text)).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the texts of a set that is compared by `==` or `!=`, such as
/// `context.path_roots == ["data"]`, each with the path of the other side.
fn equal_sets(expr: &Expr) -> Vec<(Vec<String>, String)> {
    let Expr::BinaryOp {
        op: BinaryOp::Eq | BinaryOp::NotEq,
        left,
        right,
    } = expr
    else {
        return Vec::new();
    };
    let (read, items) = match (&**left, &**right) {
        (read, Expr::Set(items)) | (Expr::Set(items), read) => (read, items),
        _ => return Vec::new(),
    };
    let Some(way) = way(read) else {
        return Vec::new();
    };
    let text = |item: &Expr| match item {
        Expr::Literal(Literal::String(text)) => Some((way.clone(), text.to_string())),
        _ => None,
    };
    items.iter().filter_map(|item| text(item)).collect()
}

/// Splits `*@ours.example`: the text after the star, the name in it, and the fact for such names.
fn ending(text: &str) -> Option<(&str, &str, &'static str)> {
    let rest = text.strip_prefix('*').filter(|it| !it.contains('*'))?;
    let name = rest.trim_start_matches(['.', '@']);
    let is_mail = rest.starts_with('@');
    let fact = if is_mail {
        "dest_domains"
    } else {
        "dest_hosts"
    };
    is_host(name, is_mail).then_some((rest, name, fact))
}

/// Whether a text is a host name and not a file name.
fn is_host(name: &str, is_mail: bool) -> bool {
    let labels: Vec<&str> = name.split('.').collect();
    let is_label = |label: &&str| {
        !label.is_empty() && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    let ending = labels
        .last()
        .map(|it| it.to_lowercase())
        .unwrap_or_default();
    labels.iter().all(is_label)
        && (is_mail && labels.len() > 1 || ENDINGS.contains(&ending.as_str()))
}

fn host(text: &str) -> String {
    let text = text.split_once("://").map_or(text, |(_, rest)| rest);
    let text = text.split(['/', '?', '#']).next().unwrap_or_default();
    let text = text.rsplit('@').next().unwrap_or_default();
    text.trim()
        .trim_start_matches(['*', '.'])
        .trim_end_matches('.')
        .to_lowercase()
}

fn domain(text: &str) -> String {
    let text = text.rsplit('@').next().unwrap_or_default();
    text.trim().trim_start_matches(['*', '.']).to_lowercase()
}

fn address(text: &str) -> String {
    match text.trim().rsplit_once('@') {
        Some((local, domain)) if !local.is_empty() => format!("{local}@{}", domain.to_lowercase()),
        // Without a local part the text is a domain, which belongs to another fact.
        _ => String::new(),
    }
}

fn pointer(text: &str) -> String {
    if text.starts_with('/') {
        return text.to_owned();
    }
    format!("/{}", text.replace('.', "/"))
}
