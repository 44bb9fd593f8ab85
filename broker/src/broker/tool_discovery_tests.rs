//! Tests of airlock's own tools in runs of a broker: their replies, the rules that apply to them,
//! and their journal entries.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use airlock_core::journal;
use airlock_core::level::Level as Rank;
use airlock_core::policy::PolicyFile;
use airlock_core::report::ReportedDecision;
use airlock_core::rules::PatternRule;
use codegen::declare::Level;
use serde_json::{Value, json};

use super::*;
use crate::client_bridge::AnswerDeadline;
use crate::config::PolicyConfig;
use crate::embeddings_file;
use crate::extract::{ExtractionFuture, ExtractionRequest};
use crate::tempdir::TempDir;

fn tool(server: &str, name: &str, about: &str) -> InProcessTool {
    let description = json!({
        "name": name,
        "description": about,
        "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
    });
    InProcessTool::new(server, description, async |args: Value| Ok(args))
}

fn builder(scratch: &TempDir) -> Builder {
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
async fn run_without_session_finds_broker_tools() {
    let scratch = TempDir::new();
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
        "the journal contains the found tools: {settled}"
    );
}

#[tokio::test]
async fn own_tools_need_no_allow_rule_and_obey_deny() {
    const CODE: &str =
        "try { return (await airlock.search({})).total } catch (e) { return e.code }";
    for (level, pattern, expected) in [
        (Rank::AskRun, "*.*", json!(2)),
        (Rank::Deny, "fs.*", json!(0)),
        (Rank::Deny, "airlock.search", json!("denied")),
        (Rank::Deny, "*.*", json!("denied")),
    ] {
        let scratch = TempDir::new();
        let rule = PatternRule {
            level,
            pattern: ToolPattern::parse(pattern).unwrap(),
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
            assert!(call.reasons[0].contains("reaches no server"), "{call:?}");
        }
    }
}

#[tokio::test]
async fn own_tool_results_are_untrusted() {
    let scratch = TempDir::new();
    let broker = builder(&scratch).build().await.unwrap();
    let script = Script::body("return (await airlock.search({})).total");
    let report = broker
        .run(script.carrying(SessionFlow::default()))
        .report()
        .await;
    let carried = report.flow.unwrap();
    assert!(carried.labels.is_untrusted(), "{carried:?}");
    assert_eq!(carried.bytes, 0, "no arguments were sent");
}

#[tokio::test]
async fn own_tools_are_declared_briefly_checked_and_optional() {
    let scratch = TempDir::new();
    let broker = builder(&scratch).build().await.unwrap();
    let own = [ToolPattern::parse("airlock.*").unwrap()];
    let declared = broker.declarations(Level::Full, &own);
    assert!(declared.contains("search(") && declared.contains("describe("));
    assert!(declared.len() < 900, "{} bytes: {declared}", declared.len());
    let wrong = broker
        .check(&Script::body("await airlock.describe(1)"))
        .await;
    assert!(wrong.has_error(), "{wrong:?}");
    let plain = Broker::builder().state_dir(scratch.path()).build().await;
    let plain = plain.unwrap();
    assert_eq!(plain.catalog().servers().len(), 0);
}

#[tokio::test]
async fn extract_accepts_positional_values() {
    let scratch = TempDir::new();
    let builder = builder(&scratch).extractor(Reads).allow("*.*").unwrap();
    let broker = builder.build().await.unwrap();
    let own = [ToolPattern::parse("airlock.*").unwrap()];
    let declared = broker.declarations(Level::Full, &own);
    for line in [
        "extract(a: { value: any; schema: ",
        "extract(value: any, schema: ",
        "declare const extract: typeof airlock.extract\n",
        "search(a?: string | {",
    ] {
        assert!(declared.contains(line), "{line}: {declared}");
    }
    let code = "const found = await airlock.search('delete a file');
        const texts = ['a', {b: 1}];
        const read = await Promise.all(texts.map((it) => extract(it, {type: 'object'})));
        return [found.tools[0].name, read]";
    let report = report(&broker, code).await;
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    assert_eq!(
        value(&report),
        json!(["fs.remove", [{"saw": "a"}, {"saw": {"b": 1}}]])
    );
    let called: Vec<String> = report.calls.iter().map(|it| it.tool.to_string()).collect();
    assert_eq!(
        called,
        ["airlock.search", "airlock.extract", "airlock.extract"]
    );
    for (wrong, expected) in [
        ("await extract('a')", "needs `schema`"),
        ("await extract('a', 'b')", "`schema` of `airlock.extract`"),
        ("await extract('a', {}, 1)", "takes only"),
        ("return extract('a', {}).name", "await"),
        ("await airlock.search(5)", "`query` of `airlock.search`"),
        ("await airlock.search('a', 'b')", "takes only"),
        ("await airlock.search(['a'])", "not an array"),
    ] {
        let checked = broker.check(&Script::body(wrong)).await;
        let [found] = checked.findings.as_slice() else {
            panic!("{wrong}: {checked:?}")
        };
        assert!(found.message.contains(expected), "{wrong}: {found:?}");
    }
}

#[tokio::test]
async fn script_defined_extract_takes_precedence() {
    let scratch = TempDir::new();
    let builder = builder(&scratch).extractor(Reads);
    let broker = builder.build().await.unwrap();
    let code = "function extract(a) { return a } return extract(1)";
    let report = report(&broker, code).await;
    assert_eq!((value(&report), report.calls.len()), (json!(1), 0));
}

#[tokio::test]
async fn search_with_model_matches_synonyms() {
    const CODE: &str =
        "return (await airlock.search({query: 'peruses it'})).tools.map((it) => it.name)";
    let scratch = TempDir::new();
    let plain = builder(&scratch).build().await.unwrap();
    assert_eq!(value(&report(&plain, CODE).await), json!([]));
    embeddings_file::tests::tiny(scratch.path());
    let knowing = builder(&scratch).embeddings(scratch.path());
    let knowing = knowing.build().await.unwrap();
    assert_eq!(
        value(&report(&knowing, CODE).await),
        json!(["fs.read_file"])
    );
    let words = "return (await airlock.search({query: 'deletes'})).tools[0].name";
    assert_eq!(value(&report(&knowing, words).await), "fs.remove");
    scratch.file("model.safetensors", "garbage garbage");
    let refused = builder(&scratch).embeddings(scratch.path()).build().await;
    let BuildError::Embeddings(problem) = refused.unwrap_err() else {
        panic!()
    };
    assert!(problem.why.contains("not a safetensors file"), "{problem}");
}

struct Reads;

impl Extractor for Reads {
    fn extract(&self, wanted: ExtractionRequest, _: AnswerDeadline) -> ExtractionFuture<'_> {
        Box::pin(std::future::ready(Ok(
            json!({"saw": wanted.value}).to_string()
        )))
    }
}

const READS: &str = "try { return await airlock.extract({value: [1], schema: {type: 'object'}}) }
    catch (e) { return e.code }";

#[tokio::test]
async fn extract_needs_an_allow_rule() {
    for (rule, expected) in [
        (None, json!("denied")),
        (Some("fs.*"), json!("denied")),
        (Some("airlock.extract"), json!({"saw": [1]})),
    ] {
        let scratch = TempDir::new();
        let builder = builder(&scratch).extractor(Reads);
        let builder = match rule {
            Some(pattern) => builder.allow(pattern).unwrap(),
            None => builder,
        };
        let broker = builder.build().await.unwrap();
        let report = report(&broker, READS).await;
        assert_eq!(value(&report), expected, "{rule:?}: {report:?}");
        assert_eq!(report.calls.len(), 1);
    }
}

#[tokio::test]
async fn extracted_value_counts_as_sent_and_policy_can_name_it() {
    let scratch = TempDir::new();
    let broker = builder(&scratch).extractor(Reads).allow("*.*").unwrap();
    let broker = broker.build().await.unwrap();
    let script = Script::body(READS).carrying(SessionFlow::default());
    let report = broker.run(script).report().await;
    let carried = report.flow.unwrap();
    assert!(
        carried.bytes > 0 && carried.labels.is_empty(),
        "{carried:?}"
    );
    let forbids = "@id(\"no-model-sees-private\") @owner(\"o\") @reason(\"r\")
        forbid(principal, action == Action::\"airlock.extract\", resource)
        when { context.writes.external };";
    let scratch = TempDir::new();
    let config = PolicyConfig {
        files: vec![PolicyFile {
            name: "own.cedar".into(),
            text: forbids.into(),
            tightens: true,
        }],
        ..PolicyConfig::default()
    };
    let broker = builder(&scratch).extractor(Reads).policies(config);
    let broker = broker.allow("*.*").unwrap().build().await.unwrap();
    let report = self::report(&broker, READS).await;
    assert_eq!(value(&report), "denied", "{report:?}");
    assert!(report.calls[0].reasons[0].contains("no-model-sees-private"));
}

#[tokio::test]
async fn extract_with_invalid_schema_is_refused_before_decision() {
    let scratch = TempDir::new();
    let broker = builder(&scratch).extractor(Reads).allow("*.*").unwrap();
    let broker = broker.build().await.unwrap();
    let code = "const schema = JSON.parse('{\"type\": \"sting\"}');
        try { return await airlock.extract({value: 1, schema}) } catch (e) { return [e.code, e.message] }";
    let report = report(&broker, code).await;
    let told = value(&report);
    assert_eq!(told[0], "invalid-arguments", "{report:?}");
    assert!(told[1].as_str().unwrap().contains("schema"), "{told}");
}

#[tokio::test]
async fn server_cannot_take_reserved_name() {
    let scratch = TempDir::new();
    let taken = tool("airlock", "search", "Another search.");
    let refused = builder(&scratch).tool(taken).build().await.unwrap_err();
    assert!(refused.to_string().contains("`airlock`"), "{refused}");
}

/// A tool discovery whose searches take `each` and cannot be stopped.
struct Slow {
    searches: AtomicUsize,
    each: Duration,
}

impl ToolDiscovery for Slow {
    fn search(&self, _: &serde_json::Map<String, Value>) -> Result<Value, String> {
        self.searches.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(self.each);
        Ok(json!({"tools": [], "total": 0}))
    }

    fn describe(&self, _: &serde_json::Map<String, Value>) -> Result<DescribedTools, String> {
        Err("nothing is described here".into())
    }
}

#[tokio::test]
async fn concurrent_searches_end_at_run_deadline() {
    let mut begun = searches_begun_within(200).await;
    if begun == 0 {
        // A busy machine may use up the time of the run, so the test tries again with more time.
        begun = searches_begun_within(6_000).await;
    }
    assert!((1..=5).contains(&begun), "{begun} searches");
}

/// Returns how many of thirty searches began, when three searches take all the time of their run.
async fn searches_begun_within(run_wall_ms_max: u64) -> usize {
    let scratch = TempDir::new();
    let limits = Limits {
        run_wall_ms_max,
        ..Limits::default()
    };
    let broker = builder(&scratch).limits(limits).build().await.unwrap();
    let slow = Arc::new(Slow {
        searches: AtomicUsize::new(0),
        each: Duration::from_millis(run_wall_ms_max * 3 / 10),
    });
    let context = RunContext {
        discovery: Some(slow.clone() as Arc<dyn ToolDiscovery>),
        ..RunContext::default()
    };
    let script = "const all = Array.from({length: 30}, () => airlock.search({}));
                  return await Promise.all(all)";
    let report = broker.run_in(context, Script::body(script)).report().await;
    assert_eq!(report.code, Some(airlock_core::code::Code::LimitTime));
    slow.searches.load(Ordering::Relaxed)
}
