//! The configured labels of servers and tools, applied to the tools of a run.
//!
//! A tool's own table overrides its server's table, key by key. A table with the exact name
//! overrides tables with `*`. If several tables with `*` match, the stricter value counts. A tool
//! without any table counts as able to read and write everything.

use std::collections::BTreeSet;
use std::fmt;

use codegen::closest::closest;
use serde_json::Value;

use crate::catalog::Catalog;
use crate::id::{ServerName, ToolId};
use crate::labels::{Field, Label, Labelling, Labels, Writes};
use crate::tool_pattern::is_match;

/// One table of the configuration, for a server or for its tools whose names match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelRule {
    pub server: String,
    /// Pattern of tool names, in which `*` matches any characters; `None` for the server itself.
    pub tools: Option<String>,
    pub reads: Option<Labels>,
    pub writes: Option<Writes>,
    pub destinations: Option<Vec<Field>>,
    pub fixed_destination: Option<bool>,
    pub paths: Option<Vec<Field>>,
    /// File and line of the table, such as `labels.toml:12`.
    pub origin: String,
}

/// All label tables of a configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LabelConfig(pub Vec<LabelRule>);

/// A table that matches nothing in this run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnmatchedLabelRule {
    pub origin: String,
    /// The server that the table names.
    pub server: String,
    pub what: String,
    /// The closest existing name.
    pub closest: Option<String>,
    /// Whether this is certainly a mistake: the server is known, or its name is close to a known
    /// one. Otherwise the table may be meant for another run.
    pub is_certain: bool,
    /// Whether the name of the server matches nothing.
    pub is_server: bool,
}

/// A labelled argument that a tool does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelMisfit {
    /// File and line of the table.
    pub origin: String,
    pub field: Field,
    pub tool: ToolId,
    /// Number of further tools that do not have the argument.
    pub more: usize,
}

/// Writes what is wrong: ``the label `/path` does not fit `fs.list` and 2 more tools``.
impl fmt::Display for LabelMisfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            field, tool, more, ..
        } = self;
        write!(f, "the label `{field}` does not fit `{tool}`")?;
        match more {
            0 => Ok(()),
            1 => f.write_str(" and 1 more tool"),
            more => write!(f, " and {more} more tools"),
        }
    }
}

impl LabelMisfit {
    pub const WHY: &'static str = "the input schema has no such argument, so calls that have it are refused, and no fact comes from it";
    pub const NEXT: &'static str =
        "label only tools that have the argument, or override the key for the others";
}

impl LabelConfig {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[must_use]
    pub fn labelling(&self, tool: &ToolId) -> Labelling {
        self.labelling_over(tool, self.unlabelled())
    }

    /// Returns the labelling of a tool that no table describes.
    #[must_use]
    pub fn unlabelled(&self) -> Labelling {
        Labelling::worst(self.classes())
    }

    /// Whether any table names this server or its tools.
    #[must_use]
    pub fn is_about(&self, server: &ServerName) -> bool {
        self.0.iter().any(|saying| *saying.server == *server.0)
    }

    /// Returns the labelling of a tool, with `known` as the base that the tables override.
    #[must_use]
    pub fn labelling_over(&self, tool: &ToolId, known: Labelling) -> Labelling {
        let mut base = known;
        for saying in self.of_server(tool).filter(|it| it.tools.is_none()) {
            base = saying.applied_to(base);
        }
        let exact: Vec<_> = self
            .of_server(tool)
            .filter(|it| it.tools.as_deref() == Some(&*tool.tool.0))
            .collect();
        let fitting = if exact.is_empty() {
            self.of_server(tool)
                .filter(|it| it.is_about(&tool.tool.0))
                .collect()
        } else {
            exact
        };
        let applied = fitting
            .into_iter()
            .map(|saying| saying.applied_to(base.clone()));
        applied
            .reduce(|labelling, other| labelling.joined(&other))
            .unwrap_or(base)
    }

    /// Returns the tables that name missing servers, tools or fields. `fields` returns the argument
    /// names of a tool, if its description lists them.
    #[must_use]
    pub fn unfitting(
        &self,
        catalog: &Catalog,
        fields: impl Fn(&ToolId) -> Option<Vec<String>>,
    ) -> Vec<UnmatchedLabelRule> {
        let servers: Vec<_> = catalog.servers().iter().map(|it| &*it.name.0).collect();
        let mut found = Vec::new();
        for saying in &self.0 {
            if !servers.contains(&saying.server.as_str()) {
                let closest = closest(&saying.server, servers.iter().copied());
                found.push(UnmatchedLabelRule {
                    is_certain: closest.is_some(),
                    closest: closest.map(str::to_owned),
                    is_server: true,
                    ..saying.unfitting(format!("there is no server `{}`", saying.server))
                });
                continue;
            }
            let tools: Vec<_> = catalog
                .tools()
                .filter(|tool| *tool.id.server.0 == *saying.server)
                .map(|tool| &tool.id)
                .collect();
            found.extend(saying.without_tools(&tools));
            found.extend(saying.without_fields(&tools, &fields));
        }
        found
    }

    /// Returns the labels that do not fit a tool: they name an argument that the tool's input
    /// schema does not have. `tools` are the tools with their input schemas.
    #[must_use]
    pub fn misfits<'a>(
        &self,
        tools: impl IntoIterator<Item = (&'a ToolId, &'a Value)>,
    ) -> Vec<LabelMisfit> {
        let mut found: Vec<LabelMisfit> = Vec::new();
        for (tool, schema) in tools {
            for field in self.labelling(tool).fitted(schema).unfit {
                let Some(saying) = self.of_server(tool).find(|it| it.names(&field, tool)) else {
                    continue;
                };
                let origin = &saying.origin;
                let is_same = |it: &&mut LabelMisfit| it.field == field && it.origin == *origin;
                match found.iter_mut().find(is_same) {
                    Some(misfit) => misfit.more += 1,
                    None => found.push(LabelMisfit {
                        origin: origin.clone(),
                        tool: tool.clone(),
                        field,
                        more: 0,
                    }),
                }
            }
        }
        found
    }

    /// Returns the tables of servers with known tools that match none of these tools, and the first
    /// table of each server whose name is close to the name of a server with known tools.
    #[must_use]
    pub fn unmatched(&self, tools: &[ToolId]) -> Vec<UnmatchedLabelRule> {
        let servers: BTreeSet<&str> = tools.iter().map(|it| &*it.server.0).collect();
        let mut unmatched: Vec<UnmatchedLabelRule> = Vec::new();
        for rule in &self.0 {
            let own: Vec<&ToolId> = tools
                .iter()
                .filter(|it| *it.server.0 == *rule.server)
                .collect();
            if !own.is_empty() {
                unmatched.extend(rule.without_tools(&own));
                continue;
            }
            let is_again = unmatched.iter().any(|it| it.server == rule.server);
            let closest = closest(&rule.server, servers.iter().copied());
            if let Some(closest) = closest.filter(|_| !is_again) {
                unmatched.push(UnmatchedLabelRule {
                    closest: Some(closest.to_owned()),
                    is_server: true,
                    ..rule.unfitting(format!("there is no server `{}`", rule.server))
                });
            }
        }
        unmatched
    }

    /// Returns the tools that no table describes, each with the place of the table that is closest
    /// to it: the last one of its server, or else the last one. There are none if nothing is
    /// labelled.
    #[must_use]
    pub fn missing<'a>(&'a self, tools: &'a [ToolId]) -> Vec<(&'a ToolId, &'a str)> {
        let unlabelled = self.unlabelled();
        let is_missing = |tool: &&ToolId| self.labelling(tool) == unlabelled && !self.states(tool);
        let origin = |tool: &'a ToolId| {
            let last = self.of_server(tool).last().or(self.0.last())?;
            Some((tool, &*last.origin))
        };
        tools.iter().filter(is_missing).filter_map(origin).collect()
    }

    /// Whether a table states something about the tool.
    fn states(&self, tool: &ToolId) -> bool {
        let states = |rule: &LabelRule| rule.reads.is_some() || rule.writes.is_some();
        let is_about = |rule: &LabelRule| rule.tools.is_none() || rule.is_about(&tool.tool.0);
        self.of_server(tool)
            .any(|rule| is_about(rule) && states(rule))
    }

    fn classes(&self) -> impl Iterator<Item = &Label> {
        self.0
            .iter()
            .filter_map(|saying| saying.reads.as_ref())
            .flat_map(Labels::iter)
    }

    fn of_server<'a>(&'a self, tool: &'a ToolId) -> impl Iterator<Item = &'a LabelRule> {
        self.0
            .iter()
            .filter(|saying| *saying.server == *tool.server.0)
    }
}

impl LabelRule {
    fn applied_to(&self, base: Labelling) -> Labelling {
        Labelling {
            reads: self.reads.clone().unwrap_or(base.reads),
            writes: self.writes.unwrap_or(base.writes),
            destinations: self.destinations.clone().unwrap_or(base.destinations),
            fixed_destination: self.fixed_destination.unwrap_or(base.fixed_destination),
            paths: self.paths.clone().unwrap_or(base.paths),
            unfit: base.unfit,
        }
    }

    /// Whether this table labels a field of the tool.
    fn names(&self, field: &Field, tool: &ToolId) -> bool {
        let is_about = self.tools.is_none() || self.is_about(&tool.tool.0);
        let mut named = [&self.destinations, &self.paths].into_iter().flatten();
        is_about && named.any(|fields| fields.contains(field))
    }

    fn is_about(&self, tool: &str) -> bool {
        self.tools
            .as_deref()
            .is_some_and(|pattern| is_match(pattern, tool))
    }

    fn without_tools(&self, tools: &[&ToolId]) -> Option<UnmatchedLabelRule> {
        let pattern = self.tools.as_deref()?;
        if tools.iter().any(|tool| is_match(pattern, &tool.tool.0)) {
            return None;
        }
        let names = tools.iter().map(|tool| &*tool.tool.0);
        Some(UnmatchedLabelRule {
            closest: closest(pattern, names).map(str::to_owned),
            ..self.unfitting(format!("`{}` has no tool `{pattern}`", self.server))
        })
    }

    /// Returns a finding for each field that is not an argument of any matching tool.
    fn without_fields(
        &self,
        tools: &[&ToolId],
        fields: &impl Fn(&ToolId) -> Option<Vec<String>>,
    ) -> Vec<UnmatchedLabelRule> {
        let about = tools
            .iter()
            .filter(|tool| self.tools.is_none() || self.is_about(&tool.tool.0));
        let takes: Option<Vec<Vec<String>>> = about.map(|tool| fields(tool)).collect();
        // The arguments of at least one tool are unknown.
        let Some(takes) = takes.map(|takes| takes.concat()) else {
            return Vec::new();
        };
        let said = [&self.destinations, &self.paths];
        let members = said
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|field| Some((field, field.member()?)));
        members
            .filter(|(_, member)| !takes.iter().any(|it| it == member))
            .map(|(field, member)| UnmatchedLabelRule {
                closest: closest(member, takes.iter().map(String::as_str))
                    .map(|tool_of_call| format!("/{tool_of_call}")),
                ..self.unfitting(format!("no matching tool has the argument `{field}`"))
            })
            .collect()
    }

    fn unfitting(&self, what: String) -> UnmatchedLabelRule {
        UnmatchedLabelRule {
            origin: self.origin.clone(),
            server: self.server.clone(),
            what,
            closest: None,
            is_certain: true,
            is_server: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::catalog;

    fn saying(server: &str, tools: Option<&str>, reads: Option<&[&str]>) -> LabelRule {
        let labels = |words: &[&str]| words.iter().map(|it| Label::parse(it).unwrap()).collect();
        LabelRule {
            server: server.into(),
            tools: tools.map(str::to_owned),
            reads: reads.map(labels),
            writes: None,
            destinations: None,
            fixed_destination: None,
            paths: None,
            origin: "labels.toml:1".into(),
        }
    }

    fn check(label_config: &LabelConfig, tool: &str, reads: &[&str]) {
        let labelling = label_config.labelling(&ToolId::parse(tool).unwrap());
        assert_eq!(labelling.reads.to_texts(), reads, "{tool}");
    }

    #[test]
    fn tool_label_overrides_server_label_and_default_is_worst() {
        let label_config = LabelConfig(vec![
            saying("mail", None, Some(&["untrusted", "private:mail"])),
            saying("mail", Some("list_*"), Some(&["private:mail"])),
            saying("mail", Some("*_folders"), Some(&[])),
            saying("mail", Some("list_labels"), Some(&[])),
            saying("mail", Some("send"), None),
        ]);
        check(
            &label_config,
            "mail.read",
            &["private", "private:mail", "untrusted"],
        );
        check(
            &label_config,
            "mail.send",
            &["private", "private:mail", "untrusted"],
        );
        check(
            &label_config,
            "mail.list_folders",
            &["private", "private:mail"],
        );
        check(&label_config, "mail.list_labels", &[]);
        check(
            &label_config,
            "web.get",
            &["private", "private:mail", "untrusted"],
        );
    }

    #[test]
    fn label_that_does_not_fit_every_tool_is_found() {
        let field = |text: &str| Some(vec![Field::parse(text).unwrap()]);
        let label_config = LabelConfig(vec![
            LabelRule {
                paths: field("/path"),
                ..saying("fs", None, None)
            },
            LabelRule {
                paths: field("/file"),
                ..saying("fs", Some("open"), None)
            },
        ]);
        let schema = |name: &str| serde_json::json!({"type": "object", "properties": {name: {"type": "string"}}});
        let tools = [
            ("fs.read", "path"),
            ("fs.open", "file"),
            ("fs.list", "folder"),
            ("fs.find", "name"),
        ];
        let tools = tools.map(|(tool, name)| (ToolId::parse(tool).unwrap(), schema(name)));
        let found = label_config.misfits(tools.iter().map(|(tool, schema)| (tool, schema)));
        let found: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            ["the label `/path` does not fit `fs.list` and 1 more tool"]
        );
    }

    #[test]
    fn unmatched_label_rule_suggests_closest() {
        let field = |text: &str| Some(vec![Field::parse(text).unwrap()]);
        let label_config = LabelConfig(vec![
            saying("mial", None, None),
            saying("calendar", None, None),
            saying("mail", Some("sned"), None),
            LabelRule {
                destinations: field("/too"),
                ..saying("mail", Some("send"), None)
            },
            LabelRule {
                destinations: field("/to/*"),
                paths: field("/x"),
                ..saying("mail", None, None)
            },
        ]);
        let takes = |tool: &ToolId| (&*tool.tool.0 == "send").then(|| vec!["to".to_owned()]);
        let found = label_config.unfitting(&catalog(&["mail.send", "mail.read"]), takes);
        let found: Vec<_> = found
            .iter()
            .map(|it| (it.what.as_str(), it.closest.as_deref(), it.is_certain))
            .collect();
        assert_eq!(
            found,
            [
                ("there is no server `mial`", Some("mail"), true),
                ("there is no server `calendar`", None, false),
                ("`mail` has no tool `sned`", Some("send"), true),
                (
                    "no matching tool has the argument `/too`",
                    Some("/to"),
                    true
                ),
            ]
        );
    }
}
