//! airlock's own tools in runs of a broker: what they say, what decides them, and
//! what of them is on record.

use airlock_core::journal;
use airlock_core::report::ReportedDecision;
use airlock_core::rules::{Level as Rank, Rule};
use codegen::declare::Level;
use serde_json::{Value, json};

use super::*;
use crate::scratch::Scratch;

fn tool(server: &str, name: &str, about: &str) -> InProcessTool {
    let description = json!({
        "name": name,
        "description": about,
        "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
    });
    InProcessTool::new(server, description, async |args: Value| Ok(args))
}

fn builder(scratch: &Scratch) -> Builder {
    Broker::builder()
        .state_dir(scratch.path())
        .discovery(true)
        .tool(tool("fs", "read_file", "Reads a file whole."))
        .tool(tool("fs", "remove", "Deletes a file for good."))
}

async fn report(broker: &Broker, script: &str) -> Report {
    broker.run(Script::body(script)).report().await
}

fn value(report: &Report) -> Value {
    let text = report.value.as_ref().map_or("null", |value| value.get());
    serde_json::from_str(text).unwrap()
}

#[tokio::test]
async fn a_run_without_a_session_finds_the_tools_of_its_broker() {
    let scratch = Scratch::new();
    let broker = builder(&scratch).allow("fs.*").unwrap().build().await;
    let broker = broker.unwrap();
    let report = report(
        &broker,
        "const {tools: [best], total} = await airlock.search({query: 'delete a file'});
         const text = await airlock_describe({tools: [best.name]});
         return [best.name, total, text.includes('remove('), await fs.remove({path: 'a'})]",
    )
    .await;
    assert_eq!(
        value(&report),
        json!(["fs.remove", 2, true, {"path": "a"}]),
        "{report:?}"
    );
    let read = std::fs::read(broker.journal_path(&RunId(report.run.as_str().into()))).unwrap();
    let read = journal::read(&read).unwrap();
    let lines: Vec<String> = read
        .lines
        .iter()
        .map(|it| format!("{:?}", it.body))
        .collect();
    let settled = lines.iter().find(|it| it.starts_with("Settled")).unwrap();
    assert!(
        settled.contains("fs.remove"),
        "what was found is on record: {settled}"
    );
}

#[tokio::test]
async fn nothing_has_to_allow_them_and_what_denies_them_does() {
    const CODE: &str =
        "try { return (await airlock.search({})).total } catch (e) { return e.code }";
    for (level, pattern, expected) in [
        (Rank::AskRun, "*.*", json!(2)),
        (Rank::Deny, "fs.*", json!(0)),
        (Rank::Deny, "airlock.search", json!("denied")),
        (Rank::Deny, "*.*", json!("denied")),
    ] {
        let scratch = Scratch::new();
        let rule = Rule {
            level,
            pattern: Pattern::parse(pattern).unwrap(),
            origin: None,
        };
        let broker = builder(&scratch).rules([rule]).build().await.unwrap();
        let report = report(&broker, CODE).await;
        assert_eq!(value(&report), expected, "{pattern}: {report:?}");
        let [call] = report.calls.as_slice() else {
            panic!("{report:?}")
        };
        if expected.is_number() {
            assert_eq!(call.decision, ReportedDecision::Allow);
            assert!(call.reasons[0].contains("reaches nobody"), "{call:?}");
        }
    }
}

#[tokio::test]
async fn what_they_say_is_what_servers_wrote_and_so_untrusted() {
    let scratch = Scratch::new();
    let broker = builder(&scratch).build().await.unwrap();
    let script = Script::body("return (await airlock.search({})).total");
    let report = broker
        .run(script.carrying(Carried::default()))
        .report()
        .await;
    let carried = report.flow.unwrap();
    assert!(carried.labels.is_untrusted(), "{carried:?}");
    assert_eq!(carried.bytes, 0, "nothing went out");
}

#[tokio::test]
async fn they_are_declared_shortly_checked_like_any_tool_and_there_only_when_wanted() {
    let scratch = Scratch::new();
    let broker = builder(&scratch).build().await.unwrap();
    let own = [Pattern::parse("airlock.*").unwrap()];
    let declared = broker.declarations(Level::Full, &own);
    assert!(declared.contains("search(") && declared.contains("describe("));
    assert!(declared.len() < 900, "{} bytes: {declared}", declared.len());
    let wrong = broker
        .check(&Script::body("await airlock.search('files')"))
        .await;
    assert!(wrong.has_error(), "{wrong:?}");
    let plain = Broker::builder().state_dir(scratch.path()).build().await;
    let plain = plain.unwrap();
    assert_eq!(plain.catalog().servers().len(), 0);
}

#[tokio::test]
async fn no_server_takes_their_name() {
    let scratch = Scratch::new();
    let taken = tool("airlock", "search", "Another search.");
    let refused = builder(&scratch).tool(taken).build().await.unwrap_err();
    assert!(refused.to_string().contains("`airlock`"), "{refused}");
}
