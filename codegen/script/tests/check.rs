//! `check/NAME.cases` contains scripts, and `NAME.txt` next to it the findings of each. With
//! `AIRLOCK_BLESS=1` the findings are rewritten instead of compared. The scripts of `right.cases`
//! have no findings; every other script has at least one.
#![expect(clippy::disallowed_methods, reason = "cases are files")]
#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot read its input has failed"
)]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use codegen::check::{Absent, CheckResult, Finding, Surface, ToolMention};
use codegen::description::Description;
use codegen::message::Reply;
use codegen::stub::StubTable;
use codegen_script::Checker;
use sandbox_protocol::codec::CodecError;
use serde_json::Value;

struct Case {
    name: String,
    script: String,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/check")
}

fn cases(path: &Path) -> Vec<Case> {
    let text = format!("\n{}", fs::read_to_string(path).unwrap());
    let blocks = text.split("\n=== ").skip(1);
    let case = |block: &str| {
        let (name, script) = block.split_once('\n').unwrap();
        Case {
            name: name.to_owned(),
            script: script.to_owned(),
        }
    };
    blocks.map(case).collect()
}

fn descriptions() -> Vec<Description> {
    let tools: Value =
        serde_json::from_slice(&fs::read(folder().join("tools.json")).unwrap()).unwrap();
    let mut descriptions = Vec::new();
    for (server, listed) in tools.as_object().unwrap() {
        for tool in listed.as_array().unwrap() {
            descriptions.push(Description::parse(server, tool).unwrap());
        }
    }
    descriptions
}

/// Runs the check natively, without a sandbox around it.
fn check(name: &str, text: &str, surface: &Surface<'_>) -> CheckResult {
    let ask = |request: &[u8]| -> Result<Reply, CodecError> {
        Reply::decode(&Checker::default().start(request)?)
    };
    surface.check(name, text, ask).unwrap()
}

fn checked(script: &str) -> CheckResult {
    let descriptions = descriptions();
    let table = StubTable::build(&descriptions);
    check("script", script, &Surface::new(&table, &descriptions))
}

fn told(case: &Case) -> String {
    let checked = checked(&case.script);
    let mut text = format!("=== {}\n", case.name);
    for it in &checked.findings {
        let (severity, code) = (it.severity.as_str(), it.code.as_str());
        writeln!(
            text,
            "{}:{} {severity} {code}: {}",
            it.line, it.column, it.message
        )
        .unwrap();
        let line = case.script.lines().nth(it.line as usize - 1).unwrap_or("");
        let column = it.column as usize - 1;
        if line.len() < 160 {
            writeln!(text, "    {line}\n    {}^", " ".repeat(column)).unwrap();
        }
        if let Some(suggestion) = &it.suggestion {
            writeln!(text, "    {suggestion}").unwrap();
        }
    }
    text
}

#[test]
fn wrong_scripts_match_goldens() {
    let bless = std::env::var("AIRLOCK_BLESS").is_ok_and(|it| it == "1");
    let mut count = 0;
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let is_wrong = path.extension().is_some_and(|it| it == "cases")
            && path.file_name().is_some_and(|it| it != "right.cases");
        if !is_wrong {
            continue;
        }
        let text = cases(&path).iter().map(told).collect::<Vec<_>>();
        for told in &text {
            assert!(told.lines().count() > 1, "no finding in {told}");
        }
        count += text.len();
        let golden = path.with_extension("txt");
        if bless {
            fs::write(&golden, text.concat()).unwrap();
        } else {
            let expected = fs::read_to_string(&golden).unwrap_or_default();
            assert_eq!(
                text.concat(),
                expected,
                "{} differs; AIRLOCK_BLESS=1 rewrites it",
                golden.display()
            );
        }
    }
    assert!(count >= 60, "{count}");
}

#[test]
fn correct_scripts_have_no_findings() {
    let cases = cases(&folder().join("right.cases"));
    assert!(cases.len() >= 40, "{}", cases.len());
    for case in cases {
        assert_eq!(told(&case), format!("=== {}\n", case.name));
    }
}

/// Findings of a script with very many errors are counted, and only a limited number gets a
/// suggestion.
#[test]
fn thoroughly_wrong_script_reports_first_findings() {
    let name = |n: usize| format!("{n:04}{}", "x".repeat(74));
    let names =
        |letter: &str| -> Vec<_> { (0..400).map(|n| letter.to_owned() + &name(n)).collect() };
    let script = format!(
        "let {};\nreturn [{}]",
        names("a").join(","),
        names("b").join(",")
    );
    let keys: Vec<_> = (0..5_000).map(|n| format!("wrong{n}: 1")).collect();
    let call = format!("return forge.list_issues({{ {} }})", keys.join(", "));
    let [many, call] = [checked(&script), checked(&call)];
    assert_eq!((many.findings.len(), many.findings_dropped), (50, 350));
    let guesses = many.findings.iter().filter(|it| it.suggestion.is_some());
    assert!((1..20).contains(&guesses.count()), "{:?}", many.findings);
    assert_eq!(call.findings.len(), 50);
    assert!(
        (1..500).contains(&call.findings_dropped),
        "{}",
        call.findings_dropped
    );
}

#[test]
fn script_naming_absent_server_gets_reason() {
    let absent = |global: &str| Absent {
        global: global.to_owned(),
        why: "cannot be reached now: it does not answer".to_owned(),
        next: "Run the script again later.".to_owned(),
    };
    let absent = [absent("maps"), absent("maps_old")];
    let told = |script: &str| -> Vec<String> {
        let table = StubTable::default();
        let surface = Surface::new(&table, &[]).without(&absent);
        let checked = check("script", script, &surface);
        let line = |it: &Finding| {
            let suggestion = it.suggestion.as_deref().unwrap_or_default();
            format!(
                "{} {}: {} {suggestion}",
                it.line,
                it.severity.as_str(),
                it.message
            )
        };
        checked.findings.iter().map(line).collect()
    };
    let of = |global: &str| {
        format!(
            "error: the server `{global}` cannot be reached now: it does not answer Run the script again later."
        )
    };
    for (script, global) in [
        ("return await maps.route({})", "maps"),
        ("return await maps_route({})", "maps"),
        ("return await maps_old.route({})", "maps_old"),
        ("return await maps_old_route({})", "maps_old"),
        ("const it = maps; return it", "maps"),
    ] {
        assert_eq!(told(script), [format!("1 {}", of(global))], "{script}");
    }
    for script in [
        "if (typeof maps === 'undefined') return 1",
        "const maps = {route: () => 1}; return maps.route()",
    ] {
        assert_eq!(told(script), Vec::<String>::new(), "{script}");
    }
    // Another unknown name gets the usual finding.
    assert!(told("return await mapsx.route({})")[0].contains("there is no server `mapsx`"));
}

#[test]
fn denied_tool_is_in_no_finding() {
    let descriptions = descriptions();
    let table = StubTable::build(&descriptions);
    let denied = ["list_issues", "get-user"];
    let mention = |it: &Description| match denied.contains(&&*it.name) {
        true => ToolMention::Nothing,
        false => ToolMention::Everything,
    };
    let mentions: Vec<_> = descriptions.iter().map(mention).collect();
    let all = Surface::new(&table, &descriptions);
    let told = |script: &str, surface: &Surface<'_>| -> Vec<String> {
        let findings = check("script", script, surface).findings.into_iter();
        findings
            .map(|it| format!("{it} {:?}", it.suggestion))
            .collect()
    };
    for script in [
        "return await forge.list_isues({})",
        "return await forge.list.issues({})",
        "return await forge['get-usr']({})",
        "return await forge.qqqq({})",
        "return await files.list_issues({})",
        "return await forge_list_isues({})",
        "return await list_issues({})",
        "const { list_isues } = forge; return await list_isues({})",
    ] {
        let names = |it: &String| it.contains("`list_issues`") || it.contains("get_user");
        let names_flat = |it: &String| it.contains("list_issues`?") || names(it);
        let found = told(script, &all);
        assert!(found.iter().any(names_flat), "{script}: {found:?}");
        let found = told(script, &all.mentioning(&mentions));
        assert!(!found.is_empty(), "{script}");
        // What the script itself contains may be quoted, but not suggested.
        let suggested: Vec<_> = found.iter().map(|it| it.split_once("Some(")).collect();
        let suggests = |it: &Option<(&str, &str)>| {
            it.is_some_and(|(_, it)| it.contains("list_issues") || it.contains("get_user"))
        };
        assert!(!suggested.iter().any(suggests), "{script}: {found:?}");
    }
    // If the script knows the name, the run denies the call. The check does not reveal anything about
    // its arguments.
    let known = "return await forge.list_issues({ nonsense: 1 })";
    assert!(!told(known, &all).is_empty());
    assert_eq!(
        told(known, &all.mentioning(&mentions)),
        Vec::<String>::new()
    );
}

#[test]
fn check_asks_for_the_shape_of_a_tool_whose_name_the_script_escapes() {
    let descriptions = descriptions();
    let table = StubTable::build(&descriptions);
    let surface = Surface::new(&table, &descriptions);
    let told = |script: &str| {
        let mut requests = 0;
        let ask = |request: &[u8]| -> Result<Reply, CodecError> {
            requests += 1;
            Reply::decode(&Checker::default().start(request)?)
        };
        let checked = surface.check("script", script, ask).unwrap();
        let messages = checked.findings.iter().map(|it| it.message.clone());
        (messages.collect::<Vec<_>>(), requests)
    };
    let plain = told("return await forge.list_issues({ nonsense: 1 })");
    let escaped = told("return await forge.list_iss\\u0075es({ nonsense: 1 })");
    assert_eq!(plain.0, escaped.0);
    assert_eq!((plain.1, escaped.1), (1, 2));
    assert!(!plain.0.is_empty());
}
