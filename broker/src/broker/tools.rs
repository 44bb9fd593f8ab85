//! From descriptions to the catalog that runs are given: names, digests, and
//! checks. A tool that cannot be offered is a problem of its own and hides no
//! other.

use std::sync::Arc;

use airlock_core::catalog::{Catalog, Effects, Server, Tool, Whose};
use airlock_core::flow::{Labelling, Sayings};
use airlock_core::id::{ServerName, ToolId, ToolName};
use airlock_core::problem::Problem;
use airlock_core::rules::{Rule, is_match};
use airlock_core::search::Texts;
use codegen::description::Description;
use codegen::stub::{StubTable, ToolStub};

use super::checks::AllChecks;
use super::offered::Offered;
use super::own;
use crate::config::Trust;
use crate::lock_file::Pin;
use crate::tool_files::{self, Loaded};

const TO_ITS_AUTHOR: &str = "tell the server's author; its other tools are not touched";

/// A place in what search has read.
pub(crate) type InTexts = (Arc<Texts>, usize);

/// What is known of all tools.
#[derive(Debug, Default)]
pub(super) struct Tools {
    pub(super) catalog: Catalog,
    pub(super) descriptions: Vec<Description>,
    /// Of each description what search reads of it, where it has been read already.
    pub(super) texts: Vec<Option<InTexts>>,
    pub(super) stubs: StubTable,
    pub(super) problems: Vec<Problem>,
}

/// What is known of a server besides its tools.
struct Around<'a> {
    server: &'a ServerName,
    trust: &'a Trust,
    pin: &'a Pin,
    /// Of a tool of which nobody says anything.
    labelling: &'a Arc<Labelling>,
}

impl Tools {
    pub(super) fn of(
        offered: &[&Offered],
        files: &Loaded,
        sayings: &Sayings,
        checks: &mut AllChecks,
    ) -> Self {
        let mut tools = Self::default();
        for offer in offered {
            let mut places = 0..;
            for read in &offer.read {
                match read {
                    Ok(description) => {
                        let texts = offer.texts.clone().zip(places.next());
                        tools.describe(own::shortened(description.clone()), texts, files);
                    }
                    Err(bad) => tools.left_out(&offer.server, bad.to_string()),
                }
            }
            tools.name_strangers(&offer.server, files);
        }
        let table = StubTable::build(&tools.descriptions);
        for note in &table.notes {
            let what = note.to_string();
            tools
                .problems
                .push(Problem::new("tool-renamed", what, "", ""));
        }
        let offer = |server: &str| offered.iter().find(|offer| offer.server == server);
        let unlabelled = Arc::new(sayings.of_nobody());
        let mut servers = Vec::with_capacity(table.servers.len());
        for stubs in &table.servers {
            let offer = offer(&stubs.server);
            let trust = offer.map(|offer| offer.trust.clone()).unwrap_or_default();
            let pin = offer.map(|offer| offer.pin.clone()).unwrap_or_default();
            let name = ServerName(stubs.server.as_str().into());
            let is_labelled = sayings.is_about(&name);
            let labelled = |tool: Tool| match tool.whose {
                Whose::Other if !is_labelled => tool,
                whose => Tool {
                    labelling: Arc::new(own::labelling(whose, &tool.id, sayings)),
                    ..tool
                },
            };
            let around = Around {
                server: &name,
                trust: &trust,
                pin: &pin,
                labelling: &unlabelled,
            };
            let known = stubs
                .tools
                .iter()
                .filter_map(|stub| tools.tool(&around, stub, checks))
                .map(|tool| Arc::new(labelled(tool)))
                .collect();
            servers.push(Server {
                name,
                global: stubs.global.clone(),
                tools: known,
            });
        }
        checks.forget_others();
        match Catalog::new(servers) {
            Ok(catalog) => (tools.catalog, tools.stubs) = (catalog, table),
            Err(bad) => tools.problems.push(Problem::new(
                "internal",
                "no tool can be offered",
                bad.to_string(),
                "",
            )),
        }
        tools
    }

    fn tool(&self, around: &Around<'_>, stub: &ToolStub, checks: &mut AllChecks) -> Option<Tool> {
        let description = self.descriptions.get(stub.description)?;
        let checks = checks.of(description);
        let whose = own::whose(&around.server.0, &stub.wire_name);
        Some(Tool {
            id: ToolId {
                server: around.server.clone(),
                tool: ToolName(stub.wire_name.as_str().into()),
            },
            member: stub.member.clone(),
            flat: stub.flat.clone().unwrap_or_default(),
            short: stub.short.clone().unwrap_or_default(),
            order: stub.order,
            description_digest: description.digest,
            upstream_digest: description.upstream,
            whose,
            effects: effects(description, around.trust),
            labelling: Arc::clone(around.labelling),
            pinned: around.pin.holds(description),
            stale: false,
            unwrap: stub.unwrap,
            input: own::checked(whose, checks.input),
            doubts: checks.doubts,
            output: checks.output,
        })
    }

    /// What the server says, with what a file says of it.
    fn describe(&mut self, description: Description, texts: Option<InTexts>, files: &Loaded) {
        let mut texts = texts;
        let description = match files.about(&description.server, &description.name) {
            Some(file) => {
                let (full, faults) = description.with_file(&file.read);
                let faults = faults
                    .iter()
                    .map(|fault| tool_files::problem(&file.name, fault));
                self.problems.extend(faults);
                texts = None;
                full
            }
            None => description,
        };
        self.descriptions.push(description);
        self.texts.push(texts);
    }

    /// Files about tools that their server does not offer.
    fn name_strangers(&mut self, server: &str, files: &Loaded) {
        let of_server = |it: &&Description| it.server == server;
        let offered: Vec<String> = self
            .descriptions
            .iter()
            .filter(of_server)
            .map(|it| it.name.clone())
            .collect();
        for (tool, file) in files.of_server(server) {
            if !offered.contains(tool) {
                self.problems
                    .push(tool_files::stranger(&file.name, server, tool, &offered));
            }
        }
    }

    fn left_out(&mut self, server: &str, why: String) {
        self.problems.push(tool_left_out(server, why));
    }
}

pub(super) fn tool_left_out(server: &str, why: String) -> Problem {
    let what = format!("a tool of `{server}` is left out");
    Problem::new("tool-unusable", what, why, TO_ITS_AUTHOR)
}

pub(super) fn tool_unusable(tool: &ToolId, why: String) -> Problem {
    let what = format!("the tool `{tool}` cannot be called");
    Problem::new("tool-unusable", what, why, TO_ITS_AUTHOR)
}

/// A rule that is about nothing.
pub(super) fn unmatched(rule: &Rule, closest: Option<ToolId>) -> Problem {
    let next = closest.map_or_else(
        || "`airlock types --detail names` lists all tools".to_owned(),
        |tool| format!("did you mean `{tool}`?"),
    );
    Problem::new(
        "rule-unmatched",
        format!("the rule {rule} matches no tool"),
        "",
        next,
    )
}

/// What our configuration says; an annotation is believed only of a server that is trusted.
pub(super) fn effects(description: &Description, trust: &Trust) -> Effects {
    let claims = &description.claims;
    let named = |patterns: &[String]| {
        let is_named = patterns
            .iter()
            .any(|pattern| is_match(pattern, &description.name));
        is_named.then_some(true)
    };
    let claimed = |claim: Option<bool>| claim.filter(|_| trust.annotations);
    let read_only = named(&trust.read_only).or(claimed(claims.read_only));
    Effects {
        read_only,
        destructive: named(&trust.destructive).or(claimed(claims.destructive)),
        claims_read_only: claims.read_only,
        claims_destructive: claims.destructive,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::UnknownKeys;
    use serde_json::{Value, json};

    fn offered(trust: Trust, tools: Vec<Value>) -> Tools {
        let offered = Offered {
            trust,
            ..Offered::of("fs".into(), tools)
        };
        Tools::of(
            &[&offered],
            &Loaded::default(),
            &Sayings::default(),
            &mut AllChecks::new(UnknownKeys::Warn),
        )
    }

    fn tool(name: &str) -> Value {
        json!({"name": name, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}})
    }

    #[test]
    fn a_bad_tool_is_left_out_and_hides_no_other() {
        let tools = offered(
            Trust::default(),
            vec![json!({"inputSchema": 1}), tool("read"), json!(7)],
        );
        assert_eq!(
            tools
                .catalog
                .tools()
                .map(|tool| tool.id.to_string())
                .collect::<Vec<_>>(),
            ["fs.read"]
        );
        assert_eq!(tools.problems.len(), 2);
    }

    #[test]
    fn a_claim_to_be_read_only_is_believed_only_when_the_configuration_says_so() {
        for (trust, expected) in [
            (Trust::default(), None),
            (
                Trust {
                    annotations: true,
                    ..Trust::default()
                },
                Some(true),
            ),
            (
                Trust {
                    read_only: vec!["re*".into()],
                    ..Trust::default()
                },
                Some(true),
            ),
            (
                Trust {
                    read_only: vec!["x*".into()],
                    ..Trust::default()
                },
                None,
            ),
        ] {
            let tools = offered(trust, vec![tool("read")]);
            assert_eq!(
                tools.catalog.tools().next().unwrap().effects.read_only,
                expected
            );
        }
    }

    #[test]
    fn arguments_that_do_not_fit_are_findings() {
        let schema =
            json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let tools = offered(
            Trust::default(),
            vec![json!({"name": "t", "inputSchema": schema})],
        );
        let tool = tools.catalog.tools().next().unwrap();
        assert_eq!(tool.input.findings(&json!({"n": 1})), Vec::<String>::new());
        assert_eq!(tool.input.findings(&json!({"n": "1"})).len(), 1);
    }

    #[test]
    fn a_star_stands_for_any_characters() {
        for (pattern, name, expected) in [
            ("read", "read", true),
            ("read", "reads", false),
            ("*", "x", true),
            ("a*c", "abc", true),
            ("a*c", "ab", false),
            ("*_all", "delete_all", true),
            ("a*b*c", "axbyc", true),
            ("a*a", "a", false),
        ] {
            assert_eq!(is_match(pattern, name), expected, "{pattern} {name}");
        }
    }
}
