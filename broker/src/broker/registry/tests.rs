//! Tests with several servers, one of which lists tools that cannot be used.

use airlock_core::flow::{LabelConfig, LabelRule};
use airlock_core::labels::Labels;
use serde_json::{Value, json};

use super::*;
use crate::broker::status::ServerState;
use crate::config::{PolicyConfig, ServerConfig, UnknownKeys};
use crate::listing_file::ListingStore;
use crate::secrets::Secrets;
use crate::target_key::TargetKey;
use crate::tempdir::TempDir;
use crate::upstream::{GroupsAndTags, ListProblem, ServerListing, ServerSpec, Transport};

/// No two of the names are similar enough to be suggested for each other.
const NAMES: [&str; 3] = ["calendar", "mail", "warehouse"];

fn server(name: &str) -> ServerConfig {
    let transport = Transport::Stdio {
        command: name.to_owned(),
        args: Vec::new(),
        env: Vec::new(),
        cwd: None,
    };
    ServerConfig::new(ServerSpec::new(name, transport))
}

fn listed(server: &str, tool: &str) -> ServerChange {
    listed_with(server, tool, Vec::new())
}

fn listed_with(server: &str, tool: &str, problems: Vec<ListProblem>) -> ServerChange {
    let tools: Vec<Value> = vec![json!({"name": tool, "inputSchema": {"type": "object"}})];
    ServerChange::Listed(Box::new(ServerListing {
        server: ServerName(server.into()),
        tools,
        problems,
        groups_and_tags: GroupsAndTags::default(),
        failure: None,
        era: None,
        version: None,
        server_info: None,
        instructions: None,
        reading: 1,
    }))
}

/// Returns sources that label the tool `named` of two of the three servers.
fn sources() -> ToolSources {
    let saying = |server: &str| LabelRule {
        server: server.to_owned(),
        tools: Some("named".to_owned()),
        reads: Some(Labels::worst()),
        writes: None,
        destinations: None,
        fixed_destination: None,
        paths: None,
        origin: format!("labels.toml: {server}"),
    };
    ToolSources {
        own: Vec::new(),
        label_config: Arc::new(LabelConfig(vec![saying("calendar"), saying("warehouse")])),
        policies: PolicyConfig::default(),
        rules: Vec::new(),
        approver_is_there: false,
    }
}

fn registry(scratch: &TempDir, recalls: bool) -> ToolRegistry {
    let servers = NAMES.map(server).to_vec();
    let listings = ListingStore::new(scratch.path());
    let stored = (listings, TargetKey::open(scratch.path()).unwrap());
    let mut server_registry = ServerRegistry::new(servers, None, Secrets::default(), stored);
    if recalls {
        server_registry.recall();
    }
    let opened = OpenedToolFiles::open(None).unwrap();
    ToolRegistry::new(
        sources(),
        server_registry,
        opened,
        CheckRegistry::new(UnknownKeys::Warn),
    )
    .unwrap()
}

/// Returns the tools of each server, and which servers were refused.
fn stands(registry: &ToolRegistry) -> Vec<String> {
    let known = registry.now();
    let tools = known.decision_context.catalog.tools();
    let mut stands: Vec<String> = tools.map(|it| it.id.to_string()).collect();
    for server in &known.servers {
        if let ServerState::Unavailable(why) = &server.state {
            assert!(why.contains("named"), "{why}");
            stands.push(format!("{} is refused", server.name));
        }
    }
    stands
}

/// Makes all changes arrive while another change is being applied.
fn take_together(registry: &ToolRegistry, changes: Vec<ServerChange>) {
    let mut changes = changes.into_iter();
    let last = changes.next_back();
    lock(&registry.news).extend(changes);
    last.into_iter().for_each(|last| registry.take(last));
}

#[test]
fn servers_joining_together_are_refused_individually() {
    let all = ["calendar.named", "mail.any", "warehouse.named"];
    for (tools, expected) in [
        (["named", "any", "named"], &all[..]),
        (
            ["other", "any", "named"],
            &["mail.any", "warehouse.named", "calendar is refused"],
        ),
        (
            ["named", "any", "other"],
            &["calendar.named", "mail.any", "warehouse is refused"],
        ),
        (
            ["other", "any", "other"],
            &["mail.any", "calendar is refused", "warehouse is refused"],
        ),
    ] {
        let scratch = TempDir::new();
        let registry = registry(&scratch, false);
        let changes = NAMES.into_iter().zip(tools);
        let changes = changes.map(|(server, tool)| listed(server, tool));
        take_together(&registry, changes.collect());
        assert_eq!(stands(&registry), expected, "{tools:?}");
        assert_eq!(registry.changes().borrow().to_owned(), 1);
        // Each server can come back.
        let again = NAMES.into_iter().zip(["named", "any", "named"]);
        let again = again.map(|(server, tool)| listed(server, tool));
        take_together(&registry, again.collect());
        assert_eq!(stands(&registry), all, "{tools:?}");
    }
}

#[test]
fn only_mismatching_stored_tools_are_forgotten() {
    let scratch = TempDir::new();
    let listings = ListingStore::new(scratch.path());
    for (name, tool) in [
        ("calendar", "named"),
        ("mail", "any"),
        ("warehouse", "other"),
    ] {
        let tool = json!({"name": tool, "inputSchema": {"type": "object"}});
        let tools = std::iter::once((tool.to_string(), None));
        listings.store(
            &server(name).spec.digest(),
            None,
            &GroupsAndTags::default(),
            tools,
        );
    }
    let registry = registry(&scratch, true);
    assert_eq!(stands(&registry), ["calendar.named", "mail.any"]);
    let awaited = registry
        .now()
        .servers
        .iter()
        .map(|it| it.is_awaited())
        .collect::<Vec<_>>();
    assert_eq!(awaited, [false, false, true]);
}

/// Returns a registry for which all three servers have been connected before.
fn seen(scratch: &TempDir) -> ToolRegistry {
    let first = registry(scratch, false);
    let changes = NAMES.map(|server| listed(server, "named"));
    take_together(&first, changes.into());
    registry(scratch, true)
}

#[test]
fn tool_left_out_of_list_changes_only_problems() {
    let scratch = TempDir::new();
    let registry = seen(&scratch);
    let before = registry.now();
    let left_out = ListProblem::Nameless {
        at: 2,
        why: "it has no name".to_owned(),
    };
    registry.take(listed_with("mail", "named", vec![left_out]));
    let now = registry.now();
    assert!(Arc::ptr_eq(&before.descriptions, &now.descriptions));
    assert!(Arc::ptr_eq(
        &before.decision_context.rules,
        &now.decision_context.rules
    ));
    let told = now.problems.iter().filter(|it| it.why.contains("no name"));
    assert_eq!(told.count(), 1, "{:?}", now.problems);
    assert_eq!(now.servers[1].state, ServerState::Connected);
    // When all tools can be used again, the problem is gone.
    registry.take(listed("mail", "named"));
    assert_eq!(registry.now().problems, before.problems);
    registry.take(listed("mail", "other"));
    assert!(!Arc::ptr_eq(
        &before.descriptions,
        &registry.now().descriptions
    ));
}

#[test]
fn refused_idle_server_is_on_demand_without_problems() {
    let scratch = TempDir::new();
    let registry = registry(&scratch, false);
    registry.take(listed("calendar", "other"));
    assert_eq!(stands(&registry), ["calendar is refused"]);
    let known = registry.now();
    assert!(!known.problems.is_empty());
    assert_eq!(known.absent[0].global, "calendar");
    assert!(known.absent[0].why.contains("named"), "{:?}", known.absent);
    registry.take(ServerChange::Rests(ServerName("calendar".into())));
    let known = registry.now();
    assert_eq!(known.servers[0].state, ServerState::OnDemand);
    assert_eq!(known.problems, Vec::new());
    assert!(known.absent.iter().all(|it| it.global != "calendar"));
}
