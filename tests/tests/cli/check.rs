//! Tests the check before a run, and the removal of types from TypeScript.

use serde_json::{Value, json};
use tests::command::Home;
use tests::engine::by_engine;

fn findings(report: &Value) -> Vec<String> {
    let words = |it: &Value| {
        format!(
            "{}:{} {} {}",
            it["line"],
            it["column"],
            it["severity"].as_str().unwrap_or_default(),
            it["code"].as_str().unwrap_or_default()
        )
    };
    report["findings"]
        .as_array()
        .map(|all| all.iter().map(words).collect())
        .unwrap_or_default()
}

#[test]
fn certain_error_starts_nothing() {
    let home = Home::new();
    let script = "await demo.tickets_create({title: 'a', body: 'b'});\nawait demo.logs_qery({});";
    let report = crate::demo(&home, script, &[]).expect_code(20).json();
    assert_eq!(
        (&report["status"], &report["code"]),
        (&json!("failed"), &json!("check-failed"))
    );
    assert_eq!(report["calls"], json!([]));
    assert_eq!(report["usage"]["guest_ms"], 0);
    assert_eq!(
        (&report["error"]["line"], &report["error"]["column"]),
        (&json!(2), &json!(12))
    );
    assert_eq!(findings(&report), ["2:12 error unknown-tool"]);
    home.verify_all();
    let told = home
        .run(["run", "--demo", "--allow", "demo.*", "-e", script])
        .expect_code(20)
        .stderr;
    for part in ["logs_qery", "Did you mean `logs_query`?", "check-failed"] {
        assert!(told.contains(part), "no {part} in\n{told}");
    }
}

#[test]
fn warning_is_in_report_and_run_continues() {
    let home = Home::new();
    let script = "demo.logs_services({});\nreturn 1;";
    let report = crate::demo(&home, script, &[]).expect_code(0).json();
    assert_eq!(report["value"], 1);
    assert_eq!(findings(&report), ["1:1 warning not-awaited"]);
    let script = "await demo.nothing_like_it({});";
    let report = crate::demo(&home, script, &["--check", "warn"])
        .expect_code(20)
        .json();
    assert_eq!(report["code"], "script-error");
    assert_eq!(findings(&report), ["1:12 error unknown-tool"]);
}

#[test]
fn check_command_runs_nothing() {
    let home = Home::new();
    let ended = home
        .run(["check", "--demo", "-e", "return demo.logs_qery({})"])
        .expect_code(20);
    for part in [
        "error: -e:1:13:",
        "return demo.logs_qery",
        "            ^",
        "unknown-tool",
    ] {
        assert!(ended.stdout.contains(part), "no {part} in\n{ended}");
    }
    let right = "return demo.logs_query({ level: 'error' })";
    home.run(["check", "--demo", "-e", right]).expect_code(0);
    home.write(
        "fs.json",
        r#"{"tools": [{"name": "read", "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}}]}"#,
    );
    let report = home
        .run([
            "check",
            "--from",
            "fs.json",
            "--json",
            "-e",
            "const a: string = await fs.read({ path: 5 });",
        ])
        .expect_code(20)
        .json();
    assert_eq!(findings(&report), ["1:41 error wrong-type"]);
    assert_eq!(
        (&report["ok"], &report["form"], &report["language"]),
        (&json!(false), &json!("body"), &json!("typescript"))
    );
}

#[test]
fn uncheckable_parts_are_reported() {
    let home = Home::new();
    home.write("empty.js", " \n");
    home.write("list.json", "[1");
    home.write("binary.js", "\u{0}\u{1}\u{2}");
    for (args, code) in [
        (vec!["check"], 2),
        (vec!["check", "nowhere.js"], 2),
        (vec!["check", "empty.js"], 2),
        (vec!["check", "-e", "1", "--from", "nowhere.json"], 2),
        (vec!["check", "-e", "1", "--from", "list.json"], 2),
        (vec!["check", "-e", "1", "--demo", "--from", "list.json"], 2),
        (vec!["check", "binary.js"], 20),
    ] {
        let ended = home.run(args).expect_code(code);
        let said = format!("{}{}", ended.stdout, ended.stderr);
        assert!(said.contains("error:"), "{ended}");
    }
}

#[test]
fn typescript_errors_have_original_positions() {
    let home = Home::new();
    for (name, script, line, column) in [
        (
            "annotation",
            "const a: number = 1; throw new Error('x')",
            1,
            22,
        ),
        (
            "generics",
            "function f<T extends { a: string }>(x: T): T { throw new Error('x') }\nf<{ a: string }>({ a: 'b' })",
            1,
            48,
        ),
        (
            "as",
            "const a = { b: 1 } as unknown as { b: string }; throw new Error(a.b)",
            1,
            49,
        ),
        (
            "satisfies",
            "const a = { b: 1 } satisfies Record<string, number>; throw new Error('x')",
            1,
            54,
        ),
        (
            "non-null",
            "const a = input!?.b!; throw new Error('x')",
            1,
            23,
        ),
        (
            "overloads",
            "function f(a: string): void;\nfunction f(a: number): void;\nfunction f(a: any): void { throw new Error('x') }\nf(1)",
            3,
            28,
        ),
        (
            "imports",
            "import type { A } from 'a';\nexport type B = string;\nthrow new Error('x')",
            3,
            1,
        ),
        (
            "classes",
            "interface I { n: number }\nabstract class A implements I {\n  private readonly n: number = 1;\n  declare m: string;\n  protected abstract f(): void;\n  [key: string]: any;\n  constructor(public_: string) { throw new Error('x') }\n}\nclass B extends A { f() {} }\nnew B('')",
            7,
            34,
        ),
        (
            "this",
            "function f(this: any, a?: number) { throw new Error('x') }\nf(1)",
            1,
            37,
        ),
        (
            "arrows",
            "const f = async <T,>(a: T): Promise<T> => { throw new Error('x') };\nawait f(1)",
            1,
            45,
        ),
        (
            "wide letters",
            "const a: 'äöü€' | '日本' = '日本'; throw new Error('x')",
            1,
            32,
        ),
        (
            "semicolons",
            "let f = 5 as any\n(() => { throw new Error('x') })()",
            2,
            10,
        ),
        (
            "type between",
            "let f = 5\ntype A = string\n;[1].forEach(() => { throw new Error('x') })",
            3,
            22,
        ),
        (
            "definite",
            "let a!: number; a = 1; throw new Error('x')",
            1,
            24,
        ),
        (
            "calls",
            "const id = <T>(x: T) => x;\nid<string>('a'); throw new Error('x')",
            2,
            18,
        ),
        (
            "a function",
            "type In = { a: 1 };\nasync (input: In): Promise<void> => { throw new Error('x') }",
            2,
            39,
        ),
        (
            "a module",
            "export default async (input: any): Promise<void> => {\n  throw new Error('x')\n}",
            2,
            3,
        ),
        (
            "lines",
            "const f = (\n  a: {\n    b: string\n  }\n): {\n  c: string\n} => { throw new Error('x') };\nf({ b: '' })",
            7,
            8,
        ),
    ] {
        let report = home
            .run(["run", "--json", "-e", script])
            .expect_code(20)
            .json();
        let error = &report["error"];
        assert_eq!(
            error["message"],
            if name == "as" { json!("1") } else { json!("x") },
            "{name}: {error}"
        );
        // Boa reports the position at which the error's constructor is called.
        let found = (error["line"].as_u64(), error["column"].as_u64());
        // QuickJS reports that position, or the position of the last argument.
        let thrown = "throw ".len() as u64;
        let behind = by_engine(vec![0, thrown], (0..20).collect());
        let columns: Vec<_> = behind.iter().map(|it| Some(column + it)).collect();
        assert!(
            found.0 == Some(line) && columns.contains(&found.1),
            "{name}: {found:?}, not {line}:{column}"
        );
    }
}

#[test]
fn reported_form_is_the_one_that_runs() {
    let home = Home::new();
    for (script, form, value) in [
        ("return 1 + 1", "body", json!(2)),
        ("1; 2", "body", json!(null)),
        ("async (input) => 3", "function", json!(3)),
        ("async function () { return 4 }", "function", json!(4)),
        ("function main() { return 5 }", "function", json!(5)),
        ("(async () => 6)()", "expression", json!(6)),
        ("1 + 6", "expression", json!(7)),
        ("const a = 8;\nexport default a", "module", json!(8)),
        ("async () => 1\nreturn 9", "body", json!(9)),
        (
            "type A = 1;\nasync (x: A): Promise<number> => 10",
            "function",
            json!(10),
        ),
        ("interface A {}\nreturn 11 as number", "body", json!(11)),
        (
            "function f(a: 1): void;\nfunction f(a: any) { return 12 }",
            "function",
            json!(12),
        ),
        (
            "f(() => { return 1 });\nfunction f(g) { return g() }",
            "body",
            json!(null),
        ),
    ] {
        let checked = home
            .run(["check", "--json", "-e", script])
            .expect_code(0)
            .json();
        assert_eq!(checked["form"], form, "{script}");
        let report = home
            .run(["run", "--json", "-e", script])
            .expect_code(0)
            .json();
        assert_eq!(report["value"], value, "{script}");
    }
}

#[test]
fn check_knows_every_engine_global() {
    let home = Home::new();
    let script = "return Object.getOwnPropertyNames(globalThis)";
    let report = home
        .run(["run", "--json", "-e", script])
        .expect_code(0)
        .json();
    let names: Vec<&str> = report["value"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .collect();
    assert!(names.contains(&"Promise") && names.len() > 40, "{names:?}");
    let script = format!("return [{}].length", names.join(", "));
    home.run(["check", "-e", &script]).expect_code(0);
}
