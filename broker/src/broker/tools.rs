//! Builds the catalog of runs from descriptions: names, digests and checks. A tool that cannot be
//! offered is reported as one problem, and the other tools are still offered.

use std::sync::Arc;

use airlock_core::catalog::{Catalog, Effects, Server, Tool, ToolOwner, ValueCheck};
use airlock_core::flow::LabelConfig;
use airlock_core::id::{ServerName, ToolId, ToolName};
use airlock_core::labels::Labelling;
use airlock_core::problem::Problem;
use airlock_core::rules::{IdleReason, IdleRule};
use airlock_core::search::IndexedTexts;
use airlock_core::tool_pattern::is_match;
use codegen::description::Description;
use codegen::stub::{StubTable, ToolStub};

use super::server_tools::ServerTools;
use super::tool_checks::CheckRegistry;
use super::tool_discovery;
use crate::config::ToolTrust;
use crate::lock_file::Pin;
use crate::tool_files::{self, LoadedToolFiles};

const TO_ITS_AUTHOR: &str =
    "report this to the server's author; the server's other tools still work";

/// Maximum length of the text about a deprecation in a warning, in bytes.
const DEPRECATION_BYTES_MAX: usize = 300;

/// Adds a warning to each call of a deprecated tool.
fn with_deprecation(description: &Description, doubts: Option<ValueCheck>) -> Option<ValueCheck> {
    let Some(why) = &description.claims.deprecated else {
        return doubts;
    };
    let why = codegen::text::clip(&codegen::text::neutralise(why), DEPRECATION_BYTES_MAX);
    let colon = if why.is_empty() { "" } else { ": " };
    let warning = format!("the tool is deprecated{colon}{why}");
    Some(ValueCheck::new(move |args| {
        let others = doubts.as_ref().map(|it| it.findings(args));
        std::iter::once(warning.clone())
            .chain(others.unwrap_or_default())
            .collect()
    }))
}

/// Search texts of several tools, and the position of one tool in them.
pub(crate) type SearchTexts = (Arc<IndexedTexts>, usize);

/// All tools: their catalog, descriptions and stubs, and the problems that were found.
#[derive(Debug, Default)]
pub(super) struct ToolSet {
    pub(super) catalog: Catalog,
    pub(super) descriptions: Vec<Description>,
    /// The search text of each description, if it has been built.
    pub(super) texts: Vec<Option<SearchTexts>>,
    pub(super) stubs: StubTable,
    pub(super) problems: Vec<Problem>,
}

/// The properties of a server that apply to all its tools.
struct ServerContext<'a> {
    server: &'a ServerName,
    trust: &'a ToolTrust,
    pin: &'a Pin,
    /// The labels of a tool that no label rule matches.
    labelling: &'a Arc<Labelling>,
}

impl ToolSet {
    pub(super) fn build(
        offered: &[&ServerTools],
        files: &LoadedToolFiles,
        label_config: &LabelConfig,
        checks: &mut CheckRegistry,
    ) -> Self {
        let mut tools = Self::default();
        for offer in offered {
            let mut places = 0..;
            for read in &offer.read {
                match read {
                    Ok(description) => {
                        let texts = offer.texts.clone().zip(places.next());
                        tools.describe(
                            tool_discovery::shortened(description.clone()),
                            texts,
                            files,
                        );
                    }
                    Err(bad) => tools.left_out(&offer.server, bad.to_string()),
                }
            }
            tools.report_unmatched_files(&offer.server, files);
        }
        let table = StubTable::build(&tools.descriptions);
        for note in &table.notes {
            let what = note.to_string();
            tools
                .problems
                .push(Problem::new("tool-renamed", what, "", ""));
        }
        let offer = |server: &str| offered.iter().find(|offer| offer.server == server);
        let unlabelled = Arc::new(label_config.unlabelled());
        let mut servers = Vec::with_capacity(table.servers.len());
        for stubs in &table.servers {
            let offer = offer(&stubs.server);
            let trust = offer.map(|offer| offer.trust.clone()).unwrap_or_default();
            let pin = offer.map(|offer| offer.pin.clone()).unwrap_or_default();
            let name = ServerName(stubs.server.as_str().into());
            let is_labelled = label_config.is_about(&name);
            let labelled = |stub: &ToolStub, tool: Tool| match tool.owner {
                ToolOwner::Other if !is_labelled => tool,
                owner => {
                    let labelling = tool_discovery::labelling(owner, &tool.id, label_config);
                    let description = tools.descriptions.get(stub.description);
                    let labelling = match description {
                        Some(description) => labelling.fitted(&description.input_schema),
                        None => labelling,
                    };
                    Tool {
                        labelling: Arc::new(labelling),
                        ..tool
                    }
                }
            };
            let around = ServerContext {
                server: &name,
                trust: &trust,
                pin: &pin,
                labelling: &unlabelled,
            };
            let known = stubs
                .tools
                .iter()
                .filter_map(|stub| Some(labelled(stub, tools.tool(&around, stub, checks)?)))
                .map(Arc::new)
                .collect();
            servers.push(Server {
                name,
                global: stubs.global.clone(),
                target: offer.and_then(|offer| offer.identity.clone()),
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

    fn tool(
        &self,
        around: &ServerContext<'_>,
        stub: &ToolStub,
        checks: &mut CheckRegistry,
    ) -> Option<Tool> {
        let description = self.descriptions.get(stub.description)?;
        let checks = checks.of(description);
        let owner = tool_discovery::owner(&around.server.0, &stub.wire_name);
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
            owner,
            effects: effects(description, around.trust),
            labelling: Arc::clone(around.labelling),
            pinned: around.pin.holds(description),
            denied: false,
            stale: false,
            unwrap: stub.unwrap,
            args_check: tool_discovery::checked(owner, checks.args_check),
            likely_mistakes: with_deprecation(description, checks.likely_mistakes),
            result_check: checks.result_check,
        })
    }

    /// Adds the description of a tool, completed by its tool file.
    fn describe(
        &mut self,
        description: Description,
        texts: Option<SearchTexts>,
        files: &LoadedToolFiles,
    ) {
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
            None => description.with_metadata(),
        };
        self.descriptions.push(description);
        self.texts.push(texts);
    }

    /// Reports tool files for tools that the server does not offer.
    fn report_unmatched_files(&mut self, server: &str, files: &LoadedToolFiles) {
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
    let what = format!("a tool of `{server}` is not offered");
    Problem::new("tool-unusable", what, why, TO_ITS_AUTHOR)
}

pub(super) fn groups_missing(server: &str, why: String) -> Problem {
    let what = format!("airlock does not know what the groups and tags of `{server}` mean");
    let next = "report this to the server's author; its tools work, with the names of their groups";
    Problem::new("groups-unreadable", what, why, next)
}

pub(super) fn tool_unusable(tool: &ToolId, why: String) -> Problem {
    let what = format!("the tool `{tool}` cannot be called");
    Problem::new("tool-unusable", what, why, TO_ITS_AUTHOR)
}

/// Returns the problem of a rule that decides no call.
pub(super) fn idle(IdleRule { rule, why }: IdleRule<'_>) -> Problem {
    match why {
        IdleReason::Overruled(other) => Problem::new(
            "pattern-overruled",
            format!("the rule {rule} never takes effect"),
            format!("the rule {other} wins wherever both match"),
            "remove one of the two rules, or change its pattern",
        ),
        IdleReason::Unmatched { closest } => Problem::new(
            "rule-unmatched",
            format!("the rule {rule} matches no tool"),
            "",
            closest.map_or_else(
                || "`airlock types --detail names` lists all tools".to_owned(),
                |tool| format!("did you mean `{tool}`?"),
            ),
        ),
    }
}

/// Returns the effects of a tool from the configuration. Annotations count only if the server is
/// trusted with them.
pub(super) fn effects(description: &Description, trust: &ToolTrust) -> Effects {
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
        idempotent: named(&trust.idempotent).or(claimed(claims.idempotent)),
        claims_read_only: claims.read_only,
        claims_destructive: claims.destructive,
        claims_idempotent: claims.idempotent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::UnknownKeys;
    use serde_json::{Value, json};

    fn offered(trust: ToolTrust, tools: Vec<Value>) -> ToolSet {
        let offered = ServerTools {
            trust,
            ..ServerTools::new("fs".into(), tools)
        };
        ToolSet::build(
            &[&offered],
            &LoadedToolFiles::default(),
            &LabelConfig::default(),
            &mut CheckRegistry::new(UnknownKeys::Warn),
        )
    }

    fn tool(name: &str) -> Value {
        json!({"name": name, "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true}})
    }

    #[test]
    fn bad_tool_is_left_out_without_affecting_others() {
        let tools = offered(
            ToolTrust::default(),
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
    fn repeatable_tool_is_configured_or_accepted_in_lock_file() {
        let description = |hints: Value| {
            let tool =
                json!({"name": "put", "inputSchema": {"type": "object"}, "annotations": hints});
            Description::parse("fs", &tool).unwrap()
        };
        let claims = description(json!({ "idempotentHint": true }));
        let trust = |idempotent: &[&str], annotations| ToolTrust {
            annotations,
            idempotent: idempotent.iter().map(ToString::to_string).collect(),
            ..ToolTrust::default()
        };
        for (trust, expected) in [
            (trust(&[], false), None),
            (trust(&["p*"], false), Some(true)),
            (trust(&["x*"], false), None),
            (trust(&[], true), Some(true)),
        ] {
            let effects = effects(&claims, &trust);
            assert_eq!(effects.idempotent, expected, "{trust:?}");
            assert_eq!(effects.claims_idempotent, Some(true));
        }
    }

    #[test]
    fn read_only_claim_counts_only_if_configured() {
        for (trust, expected) in [
            (ToolTrust::default(), None),
            (
                ToolTrust {
                    annotations: true,
                    ..ToolTrust::default()
                },
                Some(true),
            ),
            (
                ToolTrust {
                    read_only: vec!["re*".into()],
                    ..ToolTrust::default()
                },
                Some(true),
            ),
            (
                ToolTrust {
                    read_only: vec!["x*".into()],
                    ..ToolTrust::default()
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
    fn mismatching_arguments_are_findings() {
        let schema =
            json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        let tools = offered(
            ToolTrust::default(),
            vec![json!({"name": "t", "inputSchema": schema})],
        );
        let tool = tools.catalog.tools().next().unwrap();
        assert_eq!(
            tool.args_check.findings(&json!({"n": 1})),
            Vec::<String>::new()
        );
        assert_eq!(tool.args_check.findings(&json!({"n": "1"})).len(), 1);
    }

    #[test]
    fn star_matches_any_characters() {
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
