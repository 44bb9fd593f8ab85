//! Where scripts come from, in which forms, and where their words go.

use tests::command::Home;

fn value(home: &Home, args: &[&str]) -> String {
    let ended = home.run(args).expect_code(0);
    ended.stdout
}

#[test]
fn standard_output_carries_the_value_and_nothing_else() {
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
fn a_script_with_types_waits_at_its_top_in_every_way_that_one_without_has() {
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
fn console_lines_go_to_standard_error_in_their_order() {
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
fn quiet_leaves_only_console_lines_on_standard_error() {
    let ended = Home::new()
        .run(["run", "--quiet", "-e", "console.log('x'); return 1"])
        .expect_code(0);
    assert_eq!(
        (ended.stdout.as_str(), ended.stderr.as_str()),
        ("1\n", "x\n")
    );
}

#[test]
fn a_script_comes_from_a_file_from_standard_input_or_from_the_command_line() {
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
fn the_three_forms_that_models_write_all_run() {
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
fn a_function_is_called_with_the_input() {
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
fn the_same_seed_gives_the_same_chance() {
    let home = Home::new();
    let code = "return [Math.random(), crypto.randomUUID()]";
    let draw = |seed: &str| value(&home, &["run", "--seed", seed, "-e", code]);
    assert_eq!(draw("7"), draw("7"));
    assert_ne!(draw("7"), draw("8"));
}

#[test]
fn tools_are_called_in_both_spellings() {
    let home = Home::new();
    let code = "const a = await demo.slow_echo({ms: 1, value: 'a'}); \
                const b = await demo_slow_echo({ms: 1, value: 'b'}); return [a.value, b.value]";
    let ended = home
        .run(["run", "--demo", "--allow", "demo.*", "-e", code])
        .expect_code(0);
    assert_eq!(ended.stdout, "[\n  \"a\",\n  \"b\"\n]\n", "{ended}");
}

#[test]
fn what_a_terminal_would_obey_is_escaped_on_standard_error() {
    let code = r"console.log('a\x1b[2Jb\x07c\u202ed\u{e0041}e\rf'); return 1";
    let ended = Home::new().run(["run", "-e", code]).expect_code(0);
    let obeyed = |c: char| matches!(c, '\x1b' | '\x07' | '\r' | '\u{202e}' | '\u{e0041}');
    assert!(!ended.stderr.contains(obeyed), "{ended:?}");
    for part in ["a", "b", "c", "d", "e", "f"] {
        assert!(ended.stderr.contains(part));
    }
}
