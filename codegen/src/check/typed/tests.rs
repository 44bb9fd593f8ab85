//! Tests of the findings from a compiler's output. They do not run a compiler.

use crate::check::ToolMention;
use codegen_script::Checker;
use codegen_shared::message::Reply;
use sandbox_protocol::codec::CodecError;
use serde_json::json;

use super::*;
use crate::description::Description;
use crate::stub::StubTable;

fn forge() -> Vec<Description> {
    let schema =
        json!({"type": "object", "properties": {"repo": {"type": "string"}}, "required": ["repo"]});
    let tool = json!({"name": "list", "description": "Lists.", "inputSchema": schema});
    vec![Description::parse("forge", &tool).unwrap()]
}

/// Runs the check outside the sandbox.
fn check(name: &str, text: &str, surface: &Surface<'_>) -> CheckResult {
    let ask = |request: &[u8]| -> Result<Reply, CodecError> {
        Reply::decode(&Checker::default().start(request)?)
    };
    surface.check(name, text, ask).unwrap()
}

fn found(name: &str, script: &str, said: &str) -> Result<TypedFindings, BadTscOutput> {
    let descriptions = forge();
    let table = StubTable::build(&descriptions);
    let surface = Surface::new(&table, &descriptions);
    let checked = check(name, script, &surface);
    let page = Page::new(name, script, &checked, &surface).unwrap();
    page.findings(said, &checked.findings)
}

fn check_said(script: &str, said: &str, expected: &[&str]) {
    let found = found("a.js", script, said).unwrap();
    let found = found.kept.iter().map(|it| {
        let suggestion = it.suggestion.as_deref().unwrap_or("-");
        format!(
            "{}:{} {} {} | {suggestion}",
            it.line, it.column, it.code, it.message
        )
    });
    assert_eq!(found.collect::<Vec<_>>(), expected, "{said}");
}

#[test]
fn error_maps_to_script_position() {
    let script = "const a = await forge.list({ repo: \"r\" });\n\"😀\"; return a.x;";
    check_said(
        script,
        "script.js(3,14): error TS2339: Property 'x' does not exist on type '{ y: string; }'.\n",
        &["2:13 ts2339 property 'x' does not exist on type '{ y: string; }' | -"],
    );
    let function = "async () => {\n  return 1;\n}";
    check_said(
        function,
        "script.js(2,3): error TS2551: Property 'x' does not exist on type 'A'. Did you mean 'xs'?\n",
        &["2:3 ts2551 property 'x' does not exist on type 'A' | Did you mean `xs`?"],
    );
    // Errors after the end of the script, and in another file.
    check_said(
        function,
        "script.js(5,1): error TS2339: Property 'x' is not.\n",
        &[],
    );
    check_said(
        function,
        "tools.d.ts(1,1): error TS2339: Property 'x' is not.\n",
        &[],
    );
}

#[test]
fn innermost_reason_is_reported_and_long_types_cut() {
    let long = "x:string;".repeat(30);
    let said = format!(
        "script.js(2,12): error TS2345: Argument of type '{{ {long} }}' is not assignable to parameter of type 'B'.\n  \
         Types of property 'a' are incompatible.\n    Type 'C' is not assignable to type 'D'.\n"
    );
    let cut: String = format!("{{ {long}").chars().take(79).collect();
    let expected = format!(
        "1:12 ts2345 argument of type '{cut}…' is not assignable to parameter of type 'B': type 'C' is not assignable to type 'D' | -"
    );
    check_said("forge; let a = 1; return a;", &said, &[&expected]);
}

#[test]
fn duplicate_and_harmless_errors_are_dropped() {
    let script = "let a;\nawait forge.list({ rep: \"r\" });\nreturn 1;";
    let said = [
        "script.js(3,20): error TS2561: Object literal may only specify known properties, but 'rep' does not exist in type '{ repo: string; }'. Did you mean to write 'repo'?",
        "script.js(2,1): error TS1108: A 'return' statement can only be used within a function body.",
        "script.js(2,1): error TS2304: Cannot find name 'zz'.",
        "script.js(2,1): error TS7006: Parameter 'a' implicitly has an 'any' type.",
        "script.js(2,1): error TS2322: Type 'string' is not assignable to type '\"a\" | \"b\"'.",
        "script.js(2,1): error TS2339: Property 'x' does not exist on type 'never'.",
    ];
    check_said(script, &said.join("\n"), &[]);
}

#[test]
fn invalid_compiler_output_is_rejected() {
    let said = |text: &str| found("a.js", "return 1", text).map(|it| it.kept.len());
    assert_eq!(said("\n\n"), Ok(0));
    for text in [
        "error TS5023: Unknown compiler option '--noResolve'.",
        "Segmentation fault",
        "script.js(x,1): error TS2339: a",
        "\u{1b}[31mscript.js\u{1b}[0m:1:1",
    ] {
        let error = said(text).unwrap_err().to_string();
        assert!(
            error.starts_with("unexpected compiler output: `") && !error.contains('\u{1b}'),
            "{error}"
        );
    }
}

#[test]
fn excess_errors_are_counted() {
    let line = |n: usize| {
        format!("script.js(2,{n}): error TS2339: Property 'p{n}' does not exist on type 'T'.\n")
    };
    let said: String = (1..=50).map(line).collect();
    let found = found("a.js", &format!("return \"{}\"", "x".repeat(80)), &said).unwrap();
    assert_eq!((found.kept.len(), found.dropped), (FINDINGS_MAX, 30));
}

#[test]
fn every_script_form_becomes_a_module() {
    let descriptions = forge();
    let table = StubTable::build(&descriptions);
    let surface = Surface::new(&table, &descriptions);
    let page = |name: &str, text: &'static str| {
        let checked = check(name, text, &surface);
        Page::new(name, text, &checked, &surface).map(|it| it.files[2].clone())
    };
    for (name, text, file, expected) in [
        (
            "a.js",
            "return 1",
            "script.js",
            "async function script() {\nreturn 1\n}\n",
        ),
        (
            "a.ts",
            "return 1",
            "script.ts",
            "async function script() {\nreturn 1\n}\n",
        ),
        (
            "a",
            "let a: 1 = 1",
            "script.ts",
            "async function script() {\nlet a: 1 = 1\n}\n",
        ),
        ("a", "async () => 1", "script.js", "async () => 1\n"),
        (
            "a",
            "/* a */ async function () {}",
            "script.js",
            "export default (\n/* a */ async function () {}\n)\n",
        ),
        ("a", "export default 1", "script.js", "export default 1\n"),
    ] {
        assert_eq!(
            page(name, text),
            Some((file, expected.to_owned())),
            "{text}"
        );
    }
    assert_eq!(page("a.js", "return ]"), None);
}

#[test]
fn undisclosed_tool_is_not_declared() {
    let descriptions = forge();
    let table = StubTable::build(&descriptions);
    let told = Surface::new(&table, &descriptions).declarations();
    assert!(
        told.contains("repo: string")
            && told.contains("declare const forge_list: typeof forge[\"list\"]"),
        "{told}"
    );
    let hidden = Surface::new(&table, &descriptions)
        .mentioning(&[ToolMention::Name])
        .declarations();
    assert!(
        !hidden.contains("repo") && !hidden.contains("Lists") && hidden.contains("list(a"),
        "{hidden}"
    );
    let denied = Surface::new(&table, &descriptions)
        .mentioning(&[ToolMention::Nothing])
        .declarations();
    assert!(
        !denied.contains("list") && !denied.contains("Lists"),
        "{denied}"
    );
}
