//! Tests the values that a script returns, reads and prints.

use sandbox_protocol::{Outcome, StepState};

use crate::harness::{BOUNDS, NOW_MS, RunEnd, drive, echo, run, run_with, start};

#[track_caller]
fn gives(script: &str, expected: &str) {
    assert_eq!(run(script).value(), expected, "{script}");
}

#[test]
fn value_conversion_table_holds() {
    for (value, json) in [
        ("undefined", ""),
        ("null", "null"),
        ("NaN", "null"),
        ("-Infinity", "null"),
        ("-0", "0"),
        ("0.1 + 0.2", "0.30000000000000004"),
        ("1e21", "1e+21"),
        ("5n", "5"),
        ("2n ** 64n", "\"18446744073709551616\""),
        ("Symbol('x')", ""),
        ("() => 1", ""),
        ("[undefined, () => 1, , 1]", "[null,null,null,1]"),
        ("({ a: undefined, f() {}, b: 1 })", r#"{"b":1}"#),
        ("new Date(86400000)", "\"1970-01-02T00:00:00.000Z\""),
        ("new Date(NaN)", "null"),
        (
            "new Map([['a', { b: 1 }], ['c', 2]])",
            r#"{"a":{"b":1},"c":2}"#,
        ),
        ("new Map([[1, 2], ['x', 3]])", r#"[[1,2],["x",3]]"#),
        ("new Set(['a', 1])", r#"["a",1]"#),
        ("new Float64Array([1.5, NaN])", "[1.5,null]"),
        ("/a+/gi", "\"/a+/gi\""),
        ("Object('boxed')", "\"boxed\""),
        (
            "new TypeError('t')",
            r#"{"name":"TypeError","message":"t"}"#,
        ),
        ("new Proxy([1, 2], {})", "[1,2]"),
        ("new Proxy({ a: 1 }, {})", r#"{"a":1}"#),
        (
            "Object.create({ inherited: 1 }, { own: { value: 1, enumerable: true }, hidden: { value: 2 } })",
            r#"{"own":1}"#,
        ),
        (
            "'\\ud800 é \\u0001 \\\" \\\\ \\n'",
            "\"\u{fffd} é \\u0001 \\\" \\\\ \\n\"",
        ),
    ] {
        gives(&format!("return {value}"), json);
    }
}

#[test]
fn cycles_and_promises_are_refused_by_path() {
    let told = run("const a = { list: [{}] }; a.list[0].back = a; return a");
    assert_eq!(told.error().message, "`value.list[0].back` contains itself");
    let told = run("return { x: [logs.tail({})] }");
    assert!(
        told.error().message.contains("`value.x[0]` is a promise"),
        "{}",
        told.error().message
    );
}

#[test]
fn repeated_object_is_not_a_cycle() {
    gives(
        "const o = { a: 1 }; return [o, o, { o }]",
        r#"[{"a":1},{"a":1},{"o":{"a":1}}]"#,
    );
}

#[test]
fn value_throwing_while_read_is_a_failure() {
    assert_eq!(
        run("return { get a() { throw new RangeError('mine') } }")
            .error()
            .message,
        "mine"
    );
    assert_eq!(
        run("return { toJSON() { throw new Error('mine') } }")
            .error()
            .message,
        "mine"
    );
}

#[test]
fn oversized_or_deep_value_ends_the_run() {
    for script in [
        "return 'x'.repeat(2e6)",
        "let deep = 1; for (let i = 0; i < 5000; i++) deep = [deep]; return deep",
        "let deep = 1; for (let i = 0; i < 300; i++) deep = { deep }; return deep",
    ] {
        let told = run(script);
        let is_limit = matches!(told.end, RunEnd::State(StepState::ValueTooLarge));
        assert!(is_limit, "{script}: {:?}", told.end);
    }
}

#[test]
fn results_arrive_unchanged() {
    let json = r#"{"a":[1,-2.5,1e3,true,null,"é\n\"\u00e9\ud83d\ude00"],"__proto__":{"x":1},"0":"index","":"empty","big":12345678901234567890}"#;
    let told = run_with(
        "const r = await logs.search({}); return [JSON.stringify(r), Object.getPrototypeOf(r) === Object.prototype, Array.isArray(r.a)]",
        |_| Some(Outcome::Value(json.as_bytes().to_vec())),
    );
    assert_eq!(
        told.value(),
        r#"["{\"0\":\"index\",\"a\":[1,-2.5,1000,true,null,\"é\\n\\\"é😀\"],\"__proto__\":{\"x\":1},\"\":\"empty\",\"big\":12345678901234567000}",true,true]"#
    );
}

#[test]
fn json_parse_matches_the_specification() {
    for (text, json) in [
        ("[1,2,{\"a\":\"b\"}]", "[1,2,{\"a\":\"b\"}]"),
        (" 1 ", "1"),
        ("-0", "0"),
        ("\"\\ud83d\\ude00\"", "\"😀\""),
        ("{\"a\":1,\"a\":2}", "{\"a\":2}"),
    ] {
        gives(&format!("return JSON.parse({text:?})"), json);
    }
    for text in [
        "", "{", "[1,]", "01", "'a'", "{a:1}", "nul", "1 2", "\"\n\"", "[1}", "+1", ".5", "1.",
        "\"\\x\"",
    ] {
        let told = run(&format!(
            "try {{ JSON.parse({text:?}); return 'parsed' }} catch (e) {{ return e.name }}"
        ));
        assert_eq!(told.value(), "\"SyntaxError\"", "{text}");
    }
    gives(
        "return JSON.parse('{\"a\":[1,2]}', (k, v) => typeof v === 'number' ? v * 2 : v)",
        r#"{"a":[2,4]}"#,
    );
}

#[test]
fn console_formats_values() {
    let told = run(
        "console.log('a', 1, { b: [1, 'x'], c: null }, [undefined, true]);
         console.warn(new Map([['k', 1]]), new Set([1]), -0, 10n, Symbol('s'), () => 1);
         console.error(new Error('boom').message, new Date(0));
         console.log('%s has %d%%', 'disk', 97, 'extra');
         console.log({ get x() { logs.tail({}); return 1 } });
         const o = {}; o.o = o; console.log(o);
         console.assert(false, 'checked'); console.count(); console.count();
         console.table([{ a: 1, b: 'x' }, { a: 22 }])",
    );
    assert!(told.calls.is_empty());
    assert_eq!(
        told.console,
        [
            "a 1 { b: [ 1, 'x' ], c: null } [ undefined, true ]",
            "Map(1) { 'k' => 1 } Set(1) { 1 } -0 10n Symbol(s) [Function]",
            "boom 1970-01-01T00:00:00.000Z",
            "disk has 97% extra",
            "{ x: [Getter] }",
            "{ o: [Circular] }",
            "Assertion failed checked",
            "default: 1",
            "default: 2",
            "(index) | a  | b\n--------|----|----\n0       | 1  | 'x'\n1       | 22 |",
        ]
    );
}

#[test]
fn broken_console_is_harmless() {
    gives("console.log = null; console = {}; return 1", "1");
}

#[test]
fn time_is_constant_between_steps() {
    let told = run(
        "const a = Date.now(); for (let i = 0; i < 1e4; i++); const b = Date.now();
         await new Promise((r) => setTimeout(r, 250)); return [a, b - a, Date.now() - a, new Date().getTimezoneOffset()]",
    );
    assert_eq!(told.value(), format!("[{NOW_MS},0,250,0]"));
    assert_eq!(told.elapsed_ms, 250);
}

#[test]
fn timers_fire_in_order_and_can_be_cleared() {
    gives(
        "const seen = []; const later = (ms, x) => setTimeout((y) => seen.push(y), ms, x);
         later(20, 'c'); later(10, 'b'); later(0, 'a'); const gone = later(15, 'gone'); clearTimeout(gone);
         let n = 0; const every = setInterval(() => { if (++n === 3) clearInterval(every) }, 5);
         await new Promise((r) => setTimeout(r, 50)); return [seen, n]",
        r#"[["a","b","c"],3]"#,
    );
}

#[test]
fn error_in_timer_fails_the_run() {
    let told = run(
        "setTimeout(() => { throw new Error('late') }, 5);\nawait new Promise((r) => setTimeout(r, 50))",
    );
    assert_eq!(
        (told.error().message.as_str(), told.error().line),
        ("late", 1)
    );
}

#[test]
fn randomness_depends_only_on_seed() {
    let random = |seed| {
        let mut start = start("return [Math.random(), Math.random(), crypto.randomUUID()]");
        start.seed = seed;
        drive(&start, BOUNDS, echo).value()
    };
    assert_eq!(random(1), random(1));
    assert_ne!(random(1), random(2));
}

#[test]
fn documented_globals_exist() {
    for (script, expected) in [
        (
            "return structuredClone({ a: [new Date(0), new Map([[1, { b: 2 }]])] }).a[1].get(1)",
            r#"{"b":2}"#,
        ),
        (
            "const o = {}; o.o = o; const c = structuredClone(o); return [c !== o, c.o === c]",
            "[true,true]",
        ),
        (
            "try { structuredClone(() => 1) } catch (e) { return e.name }",
            "\"DataCloneError\"",
        ),
        (
            "return new TextDecoder().decode(new TextEncoder().encode('aé😀'))",
            "\"aé😀\"",
        ),
        ("return [...new TextEncoder().encode('é')]", "[195,169]"),
        (
            "return [btoa('hello'), atob('aGVsbG8=')]",
            r#"["aGVsbG8=","hello"]"#,
        ),
        (
            "const u = new URL('../b?x=1&y=a%20b#f', 'https://u:p@example.org:8080/a/c'); return [u.href, u.host, u.pathname, u.searchParams.get('y'), u.origin]",
            r#"["https://u:p@example.org:8080/b?x=1&y=a%20b#f","example.org:8080","/b","a b","https://example.org:8080"]"#,
        ),
        (
            "const u = new URL('https://a.example/'); u.searchParams.append('q', 'ä &'); u.pathname = '/p'; return String(u)",
            "\"https://a.example/p?q=%C3%A4+%26\"",
        ),
        (
            "return [URL.canParse('x'), new URLSearchParams({ a: 1, b: 'c d' }).toString(), [...new URLSearchParams('a=1&a=2')].length]",
            r#"[false,"a=1&b=c+d",2]"#,
        ),
        (
            "try { new URL('nope') } catch (e) { return e.name }",
            "\"TypeError\"",
        ),
        (
            "return /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(crypto.randomUUID())",
            "true",
        ),
        (
            "return crypto.getRandomValues(new Uint8Array(4)).length",
            "4",
        ),
        ("return performance.now()", "0"),
        (
            "return await new Promise((r) => queueMicrotask(() => r(1)))",
            "1",
        ),
        (
            "return await Array.fromAsync([1, Promise.resolve(2)])",
            "[1,2]",
        ),
        (
            "return [Date.parse('May 17, 2024'), Date.parse('2024/05/17'), Date.parse('2024-05-17 10:00')]",
            "[1715904000000,1715904000000,1715940000000]",
        ),
        (
            "return Object.keys(Object.groupBy([1, 2, 3], (n) => (n % 2 ? 'odd' : 'even')))",
            r#"["odd","even"]"#,
        ),
        (
            "return [0.1, 1e21, 123456789012].map(String)",
            r#"["0.1","1e+21","123456789012"]"#,
        ),
    ] {
        gives(script, expected);
    }
}

#[test]
fn timer_id_may_be_any_numeric_form() {
    for number in [
        "t",
        "t + 0.9",
        "t + 2 ** 32",
        "t - 2 ** 32",
        "`${t}`",
        "{ valueOf: () => t }",
    ] {
        let script = format!(
            "let ran = 0; const t = setTimeout(() => ran++, 5); clearTimeout({}); await new Promise((r) => setTimeout(r, 9)); return ran",
            if number.starts_with('{') {
                format!("({number})")
            } else {
                number.to_owned()
            },
        );
        gives(&script, "0");
    }
    for number in ["NaN", "Infinity", "-t", "undefined", "null", "'x'", "0"] {
        let script = format!(
            "let ran = 0; const t = setTimeout(() => ran++, 5); clearTimeout({number}); await new Promise((r) => setTimeout(r, 9)); return ran",
        );
        gives(&script, "1");
    }
}

#[test]
fn nul_character_in_script_is_ordinary() {
    for (script, expected) in [
        ("return 'a\0b'.length", "3"),
        ("'a\0b'.length", "3"),
        ("() => `a\0b`.charCodeAt(1)", "0"),
        ("return /\0/.test('a\\0b') // \0 and on\n", "true"),
        ("/* \0 */ return 1", "1"),
        ("export default 'a\0b'.length", "3"),
    ] {
        gives(script, expected);
    }
    let told = run("const a = 1;\n\0 return a");
    let error = told.error();
    assert_eq!((error.name.as_str(), error.line), ("SyntaxError", 2));
}

#[test]
fn console_calls_no_symbol_hooks() {
    let told = run(
        "let ran = 0; Object.defineProperty(Symbol.prototype, 'description', { get() { ran++; throw 1 } });
         console.log(Symbol('name'), { [Symbol('key')]: Symbol() }); return ran",
    );
    assert_eq!(told.value(), "0");
    assert_eq!(told.console, ["Symbol(name) { [Symbol(key)]: Symbol() }"]);
}

#[test]
fn weak_ref_target_lives_until_job_ends() {
    for (script, expected) in [
        ("return typeof new WeakRef({}).deref()", "\"object\""),
        (
            "let o = { a: 1 }; const w = new WeakRef(o); await 0; if (!w.deref()) return; o = null; return w.deref().a",
            "1",
        ),
        (
            "const kept = []; for (let i = 0; i < 1000; i++) kept.push(new WeakRef({ i })); return kept.reduce((sum, w) => sum + w.deref().i, 0)",
            "499500",
        ),
    ] {
        gives(script, expected);
    }
}

#[test]
fn long_list_can_be_spread_into_call() {
    for script in [
        "const a = []; a.push(...new Array(200000).fill(1)); return a.length",
        "return Math.max(...Array.from({ length: 200000 }, (_, n) => n + 1))",
        "return ((...all) => all.length)(...new Array(200000))",
        "return ((...all) => all.length).bind(null).apply(null, new Array(20000)) * 10",
    ] {
        gives(script, "200000");
    }
}

#[test]
fn list_copies_read_items_without_has_checks() {
    gives(
        "const asked = []; const list = new Proxy([3, , 1], {
           get(target, key) { if (typeof key !== 'symbol' && key >= 0) asked.push(key); return target[key] },
           has(target, key) { asked.push('has'); return key in target },
         });
         return [list.toSorted(), list.toReversed(), list.with(0, 1), list.toSpliced(0, 1), asked.join('')]",
        r#"[[1,3,null],[1,null,3],[1,null,1],[null,1],"0122101212"]"#,
    );
}

/// Each of these scripts once ended at a limit, or took a minute.
#[test]
fn long_lists_can_be_consumed_from_both_ends() {
    gives(
        "let s = 'ab'.repeat(20000), n = 0; while (s.length > 2) { s = s.slice(2); n++ } return n",
        "19999",
    );
    gives(
        "let s = 'a line\\n'.repeat(20000), n = 0; \
         for (let at; (at = s.indexOf('\\n')) >= 0; n++) s = s.slice(at + 1); return [n, s]",
        r#"[20000,""]"#,
    );
    gives(
        "let s = ' €'.repeat(20000), n = 0; while (s) { s = s.trim().substring(1); n++ } return n",
        "20000",
    );
    gives(
        "const a = []; for (let i = 0; i < 5000; i++) a.unshift(i); let sum = a[0]; \
         while (a.length > 1) sum += a.splice(1, 1)[0]; return [sum, a]",
        "[12497500,[4999]]",
    );
    gives(
        "const m = new Map(), s = new Set(); for (let i = 0; i < 20000; i++) { m.set(i, i); s.add(i); \
         if (m.size > 3) m.delete(m.keys().next().value) } let n = 0; \
         while (s.size > 0) { const [first] = s; s.delete(first); n += first } return [[...m.keys()], n]",
        "[[19997,19998,19999],199990000]",
    );
    gives(
        "let t = ''; for (let i = 0; i < 200000; i++) t = `${t}line ${i}\n`; return t.length",
        "2288890",
    );
    gives(
        "const s = new Set([1, 2, 3, 4]), seen = []; for (const v of s) { seen.push(v); s.delete(v); \
         if (v < 3) s.add(v + 10); s.delete(3) } return [seen, [...s]]",
        "[[1,2,4,11,12],[]]",
    );
}
