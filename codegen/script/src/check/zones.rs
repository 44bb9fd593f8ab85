//! Warns about named time zones if the engine has no time zone tables: they throw a `RangeError`.

use oxc_ast::AstKind;
use oxc_ast::ast::Expression;
use oxc_span::GetSpan;

use super::context::CheckContext;
use codegen_shared::finding::FindingCode;

/// The global that an engine lacks exactly if it has no time zone tables.
const NEEDED: &str = "Temporal";
/// Methods that take the options of `Intl.DateTimeFormat`.
const WRITERS: [&str; 3] = ["toLocaleString", "toLocaleDateString", "toLocaleTimeString"];
/// Zone names that need no table, with or without `Etc/` before them.
const UNIVERSAL: [&str; 6] = ["UTC", "GMT", "UCT", "Zulu", "Universal", "Greenwich"];

impl CheckContext<'_, '_, '_> {
    /// Warns about named zones in date formatting only, because a tool may have an argument with
    /// the name `timeZone`.
    pub(super) fn time_zones(&mut self) {
        if !self.surface.lacks(NEEDED) {
            return;
        }
        let mut named = Vec::new();
        for node in self.semantic.nodes().iter() {
            let AstKind::ObjectProperty(property) = node.kind() else {
                continue;
            };
            let is_zone = property
                .key
                .static_name()
                .is_some_and(|it| it == "timeZone");
            let Expression::StringLiteral(zone) = &property.value else {
                continue;
            };
            let object = self.parent(node.id());
            if is_zone && is_by_name(&zone.value) && writes_dates(self.kind(self.parent(object))) {
                named.push((zone.span().start, zone.value.to_string()));
            }
        }
        for (at, zone) in named {
            let message = format!("the engine that runs this script has no time zone `{zone}`");
            let suggestion = "Write UTC or an offset such as \"+02:00\", or choose another engine.";
            let suggestion = Some(suggestion.to_owned());
            self.warning(FindingCode::UnknownName, at, message, suggestion);
        }
    }
}

/// Whether a zone is neither UTC nor an offset.
fn is_by_name(zone: &str) -> bool {
    let bare = zone.strip_prefix("Etc/").unwrap_or(zone);
    let is_universal = UNIVERSAL.iter().any(|it| it.eq_ignore_ascii_case(bare));
    zone.starts_with(|c: char| c.is_ascii_alphabetic()) && !is_universal
}

fn writes_dates(kind: AstKind<'_>) -> bool {
    let callee = match kind {
        AstKind::CallExpression(it) => &it.callee,
        AstKind::NewExpression(it) => &it.callee,
        _ => return false,
    };
    let Expression::StaticMemberExpression(member) = callee else {
        return false;
    };
    let name = member.property.name.as_str();
    let is_intl = matches!(&member.object, Expression::Identifier(it) if it.name == "Intl");
    WRITERS.contains(&name) || (is_intl && name == "DateTimeFormat")
}

#[cfg(test)]
mod tests {
    use codegen_shared::message::{CheckRequest, Reply, encode_tools};

    use crate::check::check;

    fn warned(script: &str, lacking: &[&str]) -> usize {
        let request = CheckRequest {
            script,
            tools: &encode_tools(&[]).unwrap(),
            lacking: lacking.to_vec(),
            ..CheckRequest::default()
        };
        let Ok(Reply::Checked(checked)) = check(&request) else {
            panic!("no check result for {script}");
        };
        let about = |it: &&_| format!("{it:?}").contains("no time zone `Europe/Berlin`");
        checked.findings.iter().filter(about).count()
    }

    #[test]
    fn named_time_zone_is_warned_about() {
        for (script, expected) in [
            (
                "return new Date().toLocaleString('de', {timeZone: 'Europe/Berlin'})",
                1,
            ),
            (
                "return new Date().toLocaleTimeString([], {hour12: false, 'timeZone': 'Europe/Berlin'})",
                1,
            ),
            (
                "return new Intl.DateTimeFormat('en', {timeZone: 'Europe/Berlin'}).format()",
                1,
            ),
            (
                "return Intl.DateTimeFormat('en', {timeZone: 'Europe/Berlin'}).format()",
                1,
            ),
            (
                "return new Date().toLocaleString('de', {timeZone: 'Etc/UTC'})",
                0,
            ),
            (
                "return new Date().toLocaleString('de', {timeZone: 'utc'})",
                0,
            ),
            (
                "return new Date().toLocaleString('de', {timeZone: '+02:00'})",
                0,
            ),
            ("return {start: {timeZone: 'Europe/Berlin'}}", 0),
            ("return String({timeZone: 'Europe/Berlin'})", 0),
        ] {
            assert_eq!(warned(script, &["Temporal"]), expected, "{script}");
            assert_eq!(warned(script, &[]), 0, "{script}");
        }
    }
}
