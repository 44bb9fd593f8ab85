//! What somebody wrote about the labels of servers and tools, applied to the
//! tools that there are.
//!
//! What a tool's own table says wins over its server's, key by key; a table
//! with the exact name wins over ones with `*`, and of several with `*` the
//! stricter counts. Where nobody said anything it is the worst.

use codegen::closest::closest;

use super::field::Field;
use super::label::{Label, Labels};
use super::labelling::Labelling;
use crate::catalog::Catalog;
use crate::facts::Writes;
use crate::id::{ServerName, ToolId};
use crate::rules::is_match;

/// One table: of a server, or of the tools of it whose names fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saying {
    pub server: String,
    /// `*` stands for any characters; none for the server itself.
    pub tools: Option<String>,
    pub reads: Option<Labels>,
    pub writes: Option<Writes>,
    pub destinations: Option<Vec<Field>>,
    pub fixed_destination: Option<bool>,
    pub paths: Option<Vec<Field>>,
    /// Where it is written, such as `labels.toml:12`.
    pub origin: String,
}

/// All tables together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sayings(pub Vec<Saying>);

/// A table that speaks of nothing there is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfitting {
    pub origin: String,
    /// The server that it is about.
    pub server: String,
    pub what: String,
    /// What was probably meant.
    pub closest: Option<String>,
    /// The server is known and this is certainly a mistake; otherwise it may be about another run.
    pub is_certain: bool,
}

impl Sayings {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[must_use]
    pub fn labelling(&self, tool: &ToolId) -> Labelling {
        self.labelling_over(tool, self.of_nobody())
    }

    /// What holds for a tool of which nobody says anything.
    #[must_use]
    pub fn of_nobody(&self) -> Labelling {
        Labelling::worst(self.classes())
    }

    /// Whether anything is said of a server or of its tools.
    #[must_use]
    pub fn is_about(&self, server: &ServerName) -> bool {
        self.0.iter().any(|saying| *saying.server == *server.0)
    }

    /// The same for a tool of which something is known although nobody says anything.
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

    /// Tables for servers, tools and fields that there are not. `has_field` tells whether a
    /// tool takes an argument of this name, when its description says anything about it.
    #[must_use]
    pub fn unfitting(
        &self,
        catalog: &Catalog,
        fields: impl Fn(&ToolId) -> Option<Vec<String>>,
    ) -> Vec<Unfitting> {
        let servers: Vec<_> = catalog.servers().iter().map(|it| &*it.name.0).collect();
        let mut found = Vec::new();
        for saying in &self.0 {
            if !servers.contains(&saying.server.as_str()) {
                let closest = closest(&saying.server, servers.iter().copied());
                found.push(Unfitting {
                    is_certain: closest.is_some(),
                    closest: closest.map(str::to_owned),
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

    fn classes(&self) -> impl Iterator<Item = &Label> {
        self.0
            .iter()
            .filter_map(|saying| saying.reads.as_ref())
            .flat_map(Labels::iter)
    }

    fn of_server<'a>(&'a self, tool: &'a ToolId) -> impl Iterator<Item = &'a Saying> {
        self.0
            .iter()
            .filter(|saying| *saying.server == *tool.server.0)
    }
}

impl Saying {
    fn applied_to(&self, base: Labelling) -> Labelling {
        Labelling {
            reads: self.reads.clone().unwrap_or(base.reads),
            writes: self.writes.unwrap_or(base.writes),
            destinations: self.destinations.clone().unwrap_or(base.destinations),
            fixed_destination: self.fixed_destination.unwrap_or(base.fixed_destination),
            paths: self.paths.clone().unwrap_or(base.paths),
        }
    }

    fn is_about(&self, tool: &str) -> bool {
        self.tools
            .as_deref()
            .is_some_and(|pattern| is_match(pattern, tool))
    }

    fn without_tools(&self, tools: &[&ToolId]) -> Option<Unfitting> {
        let pattern = self.tools.as_deref()?;
        if tools.iter().any(|tool| is_match(pattern, &tool.tool.0)) {
            return None;
        }
        let names = tools.iter().map(|tool| &*tool.tool.0);
        Some(Unfitting {
            closest: closest(pattern, names).map(str::to_owned),
            ..self.unfitting(format!("`{}` has no tool `{pattern}`", self.server))
        })
    }

    /// A field that no tool which is spoken of takes.
    fn without_fields(
        &self,
        tools: &[&ToolId],
        fields: &impl Fn(&ToolId) -> Option<Vec<String>>,
    ) -> Vec<Unfitting> {
        let about = tools
            .iter()
            .filter(|tool| self.tools.is_none() || self.is_about(&tool.tool.0));
        let takes: Option<Vec<Vec<String>>> = about.map(|tool| fields(tool)).collect();
        // One of them says nothing about what it takes.
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
            .map(|(field, member)| Unfitting {
                closest: closest(member, takes.iter().map(String::as_str))
                    .map(|meant| format!("/{meant}")),
                ..self.unfitting(format!("no such tool takes the argument `{field}`"))
            })
            .collect()
    }

    fn unfitting(&self, what: String) -> Unfitting {
        Unfitting {
            origin: self.origin.clone(),
            server: self.server.clone(),
            what,
            closest: None,
            is_certain: true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::catalog;

    fn saying(server: &str, tools: Option<&str>, reads: Option<&[&str]>) -> Saying {
        let labels = |words: &[&str]| words.iter().map(|it| Label::parse(it).unwrap()).collect();
        Saying {
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

    fn check(sayings: &Sayings, tool: &str, reads: &[&str]) {
        let labelling = sayings.labelling(&ToolId::parse(tool).unwrap());
        assert_eq!(labelling.reads.to_texts(), reads, "{tool}");
    }

    #[test]
    fn what_is_said_of_a_tool_wins_over_its_server_and_nothing_said_is_the_worst() {
        let sayings = Sayings(vec![
            saying("mail", None, Some(&["untrusted", "private:mail"])),
            saying("mail", Some("list_*"), Some(&["private:mail"])),
            saying("mail", Some("*_folders"), Some(&[])),
            saying("mail", Some("list_labels"), Some(&[])),
            saying("mail", Some("send"), None),
        ]);
        check(
            &sayings,
            "mail.read",
            &["private", "private:mail", "untrusted"],
        );
        check(
            &sayings,
            "mail.send",
            &["private", "private:mail", "untrusted"],
        );
        check(&sayings, "mail.list_folders", &["private", "private:mail"]);
        check(&sayings, "mail.list_labels", &[]);
        check(
            &sayings,
            "web.get",
            &["private", "private:mail", "untrusted"],
        );
    }

    #[test]
    fn what_fits_nothing_is_named_with_what_was_meant() {
        let field = |text: &str| Some(vec![Field::parse(text).unwrap()]);
        let sayings = Sayings(vec![
            saying("mial", None, None),
            saying("calendar", None, None),
            saying("mail", Some("sned"), None),
            Saying {
                destinations: field("/too"),
                ..saying("mail", Some("send"), None)
            },
            Saying {
                destinations: field("/to/*"),
                paths: field("/x"),
                ..saying("mail", None, None)
            },
        ]);
        let takes = |tool: &ToolId| (&*tool.tool.0 == "send").then(|| vec!["to".to_owned()]);
        let found = sayings.unfitting(&catalog(&["mail.send", "mail.read"]), takes);
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
                ("no such tool takes the argument `/too`", Some("/to"), true),
            ]
        );
    }
}
