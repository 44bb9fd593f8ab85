//! Servers of which one brings something that does not fit.

use airlock_core::flow::{Labels, Saying, Sayings};
use serde_json::{Value, json};

use super::*;
use crate::broker::status::ServerState;
use crate::config::{PolicyConfig, Secrets, Server, UnknownKeys};
use crate::listing_file::Listings;
use crate::scratch::Scratch;
use crate::upstream::{ListProblem, Listed, ServerSpec, Transport};

/// No two of them could be meant for one another.
const NAMES: [&str; 3] = ["calendar", "mail", "warehouse"];

fn server(name: &str) -> Server {
    let transport = Transport::Stdio {
        command: name.to_owned(),
        args: Vec::new(),
        env: Vec::new(),
        cwd: None,
    };
    Server::new(ServerSpec::new(name, transport))
}

fn listed(server: &str, tool: &str) -> Change {
    listed_with(server, tool, Vec::new())
}

fn listed_with(server: &str, tool: &str, problems: Vec<ListProblem>) -> Change {
    let tools: Vec<Value> = vec![json!({"name": tool, "inputSchema": {"type": "object"}})];
    Change::Listed(Box::new(Listed {
        server: ServerName(server.into()),
        tools,
        problems,
        failure: None,
        era: None,
        version: None,
        server_info: None,
        instructions: None,
        reading: 1,
    }))
}

/// What `labels` says of the tool `named` of two of three servers.
fn sources() -> Sources {
    let saying = |server: &str| Saying {
        server: server.to_owned(),
        tools: Some("named".to_owned()),
        reads: Some(Labels::worst()),
        writes: None,
        destinations: None,
        fixed_destination: None,
        paths: None,
        origin: format!("labels.toml: {server}"),
    };
    Sources {
        own: Vec::new(),
        sayings: Arc::new(Sayings(vec![saying("calendar"), saying("warehouse")])),
        policies: PolicyConfig::default(),
        rules: Vec::new(),
        approver_is_there: false,
    }
}

fn shelf(scratch: &Scratch, recalls: bool) -> Shelf {
    let servers = NAMES.map(server).to_vec();
    let listings = Listings::new(scratch.path());
    let mut roster = Roster::new(servers, None, Secrets::default(), listings);
    if recalls {
        roster.recall();
    }
    let opened = Opened::open(None).unwrap();
    Shelf::new(sources(), roster, opened, AllChecks::new(UnknownKeys::Warn)).unwrap()
}

/// What each server offers, and whether it was refused.
fn stands(shelf: &Shelf) -> Vec<String> {
    let known = shelf.now();
    let tools = known.standing.catalog.tools();
    let mut stands: Vec<String> = tools.map(|it| it.id.to_string()).collect();
    for server in &known.servers {
        if let ServerState::Unavailable(why) = &server.state {
            assert!(why.contains("named"), "{why}");
            stands.push(format!("{} is refused", server.name));
        }
    }
    stands
}

/// All of them arrive while another change is being taken in.
fn take_together(shelf: &Shelf, changes: Vec<Change>) {
    let mut changes = changes.into_iter();
    let last = changes.next_back();
    lock(&shelf.news).extend(changes);
    last.into_iter().for_each(|last| shelf.take(last));
}

#[test]
fn of_servers_that_come_together_each_is_refused_for_itself() {
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
        let scratch = Scratch::new();
        let shelf = shelf(&scratch, false);
        let changes = NAMES.into_iter().zip(tools);
        let changes = changes.map(|(server, tool)| listed(server, tool));
        take_together(&shelf, changes.collect());
        assert_eq!(stands(&shelf), expected, "{tools:?}");
        assert_eq!(shelf.changes().borrow().to_owned(), 1);
        // Each of them can come back.
        let again = NAMES.into_iter().zip(["named", "any", "named"]);
        let again = again.map(|(server, tool)| listed(server, tool));
        take_together(&shelf, again.collect());
        assert_eq!(stands(&shelf), all, "{tools:?}");
    }
}

#[test]
fn of_what_is_remembered_only_what_does_not_fit_is_forgotten() {
    let scratch = Scratch::new();
    let listings = Listings::new(scratch.path());
    for (name, tool) in [
        ("calendar", "named"),
        ("mail", "any"),
        ("warehouse", "other"),
    ] {
        let tool = json!({"name": tool, "inputSchema": {"type": "object"}});
        let tools = std::iter::once((tool.to_string(), None));
        listings.store(&server(name).spec.digest(), None, tools);
    }
    let shelf = shelf(&scratch, true);
    assert_eq!(stands(&shelf), ["calendar.named", "mail.any"]);
    let awaited = shelf
        .now()
        .servers
        .iter()
        .map(|it| it.is_awaited())
        .collect::<Vec<_>>();
    assert_eq!(awaited, [false, false, true]);
}

/// All three have been seen before.
fn seen(scratch: &Scratch) -> Shelf {
    let first = shelf(scratch, false);
    let changes = NAMES.map(|server| listed(server, "named"));
    take_together(&first, changes.into());
    shelf(scratch, true)
}

#[test]
fn what_is_left_out_of_a_list_makes_nothing_anew_but_what_is_said_of_it() {
    let scratch = Scratch::new();
    let shelf = seen(&scratch);
    let before = shelf.now();
    let left_out = ListProblem::Nameless {
        at: 2,
        why: "it has no name".to_owned(),
    };
    shelf.take(listed_with("mail", "named", vec![left_out]));
    let now = shelf.now();
    assert!(Arc::ptr_eq(&before.descriptions, &now.descriptions));
    assert!(Arc::ptr_eq(&before.standing.rules, &now.standing.rules));
    let told = now.problems.iter().filter(|it| it.why.contains("no name"));
    assert_eq!(told.count(), 1, "{:?}", now.problems);
    assert_eq!(now.servers[1].state, ServerState::Connected);
    // And when all of it can be used again, that is over.
    shelf.take(listed("mail", "named"));
    assert_eq!(shelf.now().problems, before.problems);
    shelf.take(listed("mail", "other"));
    assert!(!Arc::ptr_eq(
        &before.descriptions,
        &shelf.now().descriptions
    ));
}

#[test]
fn a_server_that_was_refused_and_rests_is_there_on_demand_and_nothing_is_wrong_with_it() {
    let scratch = Scratch::new();
    let shelf = shelf(&scratch, false);
    shelf.take(listed("calendar", "other"));
    assert_eq!(stands(&shelf), ["calendar is refused"]);
    let known = shelf.now();
    assert!(!known.problems.is_empty());
    assert_eq!(known.absent[0].global, "calendar");
    assert!(known.absent[0].why.contains("named"), "{:?}", known.absent);
    shelf.take(Change::Rests(ServerName("calendar".into())));
    let known = shelf.now();
    assert_eq!(known.servers[0].state, ServerState::OnDemand);
    assert_eq!(known.problems, Vec::new());
    assert!(known.absent.iter().all(|it| it.global != "calendar"));
}
