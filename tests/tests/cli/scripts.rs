//! Tests the sources, forms and output of scripts.

use tests::command::Home;

fn value(home: &Home, args: &[&str]) -> String {
    let ended = home.run(args).expect_code(0);
    ended.stdout
}

#[test]
fn stdout_carries_only_the_value() {
    let home = Home::new();
    let check = |code: &str, expected: &str| {
        assert_eq!(value(&home, &["run", "-e", code]), expected, "{code}")
    };
    check("return 1 + 1", "2\n");
    check("return 'plain text'", "plain text\n");
    check(
        "return [1, {a: null}]",
        "[\n  1,\n  {\n    \"a\": null\n  }\n]\n",
    );
    check("return undefined", "");
    check("const nothing = 1", "");
    check("console.log('to stderr'); return true", "true\n");
}

#[test]
fn typescript_top_level_await_works_like_javascript() {
    let home = Home::new();
    for types in ["", ": number"] {
        for code in [
            "const n@ = await 3; return n",
            "let n@ = 0; for await (const x of [1, Promise.resolve(2)]) n += x; return n",
            "async function main() { let n@ = 0; for await (const x of [3]) n += x; return n }",
        ] {
            let code = code.replace('@', types);
            assert_eq!(value(&home, &["run", "-e", &code]), "3\n", "{code}");
        }
    }
}

#[test]
fn console_lines_go_to_stderr_in_order() {
    let home = Home::new();
    let ended = home
        .run([
            "run",
            "-e",
            "console.log('first'); console.warn('second', {n: 1}); return 3",
        ])
        .expect_code(0);
    let (first, second) = (ended.stderr.find("first"), ended.stderr.find("second"));
    assert!(first.is_some() && first < second, "{ended}");
    assert_eq!(ended.stdout, "3\n");
}

#[test]
fn quiet_leaves_console_lines_only() {
    let ended = Home::new()
        .run(["run", "--quiet", "-e", "console.log('x'); return 1"])
        .expect_code(0);
    assert_eq!(
        (ended.stdout.as_str(), ended.stderr.as_str()),
        ("1\n", "x\n")
    );
}

#[test]
fn script_comes_from_file_stdin_or_command_line() {
    let home = Home::new();
    home.write("three.js", "return 3;");
    assert_eq!(value(&home, &["run", "three.js"]), "3\n");
    assert_eq!(value(&home, &["run", "-e", "return 4"]), "4\n");
    assert_eq!(
        home.run_with_stdin(["run", "-"], "return 5")
            .expect_code(0)
            .stdout,
        "5\n"
    );
}

#[test]
fn three_common_script_forms_run() {
    let home = Home::new();
    for code in [
        "const n = await Promise.resolve(41); return n + 1;",
        "async () => 42",
        "async () => { const n = await Promise.resolve(41); return n + 1; }",
        "(async () => 42)",
        "async function main() { return 42; }",
        "function () { return 42; }",
        "async function (input) { return 42; };",
        "() => 42",
        "export default 42;",
        "export default async () => 42;",
        "export default async function main() { return 42 }",
        "const n = await Promise.resolve(42);\nexport default n;",
    ] {
        assert_eq!(value(&home, &["run", "-e", code]), "42\n", "{code}");
    }
}

#[test]
fn function_is_called_with_input() {
    let home = Home::new();
    let input = ["run", "--input", r#"{"n":41}"#, "-e"];
    for code in [
        "({ n }) => n + 1",
        "export default ({ n }) => n + 1",
        "return input.n + 1",
    ] {
        assert_eq!(
            value(&home, &[&input[..], &[code]].concat()),
            "42\n",
            "{code}"
        );
    }
    home.write("input.json", r#"{"n": 1}"#);
    assert_eq!(
        value(
            &home,
            &["run", "--input", "@input.json", "-e", "return input.n + 1"]
        ),
        "2\n"
    );
    assert_eq!(
        value(&home, &["run", "-e", "return typeof input"]),
        "undefined\n"
    );
}

#[test]
fn same_seed_gives_same_random_numbers() {
    let home = Home::new();
    let code = "return [Math.random(), crypto.randomUUID()]";
    let draw = |seed: &str| value(&home, &["run", "--seed", seed, "-e", code]);
    assert_eq!(draw("7"), draw("7"));
    assert_ne!(draw("7"), draw("8"));
}

#[test]
fn tools_are_callable_in_both_spellings() {
    let home = Home::new();
    let code = "const a = await demo.slow_echo({ms: 1, value: 'a'}); \
                const b = await demo_slow_echo({ms: 1, value: 'b'}); return [a.value, b.value]";
    let ended = home
        .run(["run", "--demo", "--allow", "demo.*", "-e", code])
        .expect_code(0);
    assert_eq!(ended.stdout, "[\n  \"a\",\n  \"b\"\n]\n", "{ended}");
}

#[test]
fn terminal_escapes_are_neutralised_on_stderr() {
    let code = r"console.log('a\x1b[2Jb\x07c\u202ed\u{e0041}e\rf'); return 1";
    let ended = Home::new().run(["run", "-e", code]).expect_code(0);
    let obeyed = |c: char| matches!(c, '\x1b' | '\x07' | '\r' | '\u{202e}' | '\u{e0041}');
    assert!(!ended.stderr.contains(obeyed), "{ended:?}");
    for part in ["a", "b", "c", "d", "e", "f"] {
        assert!(ended.stderr.contains(part));
    }
}
