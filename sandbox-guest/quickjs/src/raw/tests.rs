//! Compares this guest's JSON parser and writer with the engine's own.

use guest_common::not_json;
use rquickjs::{Context, Ctx, Function, Runtime, Value};

use super::{JsonReadError, from_json, install_json, plain_json};

const DEPTH_MAX: u32 = 40;

/// Texts, most of them valid JSON; variations of them are parsed too.
const TEXTS: &[&str] = &[
    "null",
    "true",
    "false",
    "0",
    "-0",
    "-0.0",
    "7",
    "-12",
    "2147483647",
    "2147483648",
    "-2147483648",
    "9007199254740993",
    "123456789012345678901234567890",
    "0.1",
    "-1.5e3",
    "1e400",
    "5e-324",
    "1E+2",
    "0.30000000000000004",
    "4.35",
    "123456.789e-3",
    "999999999999999999",
    "0.0000000000000000000000012",
    "01",
    "+1",
    "1.",
    ".5",
    "1e",
    "- 1",
    "0x10",
    "1_0",
    "Infinity",
    "NaN",
    "tru",
    "nullx",
    "",
    "\"\"",
    "\"plain\"",
    "\"seven b\"",
    "\"eight by\"",
    "\"nine byte\"",
    "\"a longer text of some thirty bytes\"",
    r#""\"\\\/\b\f\n\r\t""#,
    r#""\u0041\u00e9\u20ac\ud83d\ude00""#,
    r#""\ud800 alone""#,
    r#""é ü""#,
    "\"€ and ≠\"",
    "\"😀\"",
    "\"tab\there\"",
    "\"open",
    r#""\x41""#,
    r#""\u12""#,
    "\"\u{7f}\"",
    "'a'",
    "[]",
    "[ ]",
    "[1,2,3]",
    "[1,]",
    "[,]",
    "[1 2]",
    "[[[[]]]]",
    " [ 1 , \"a\" , null ] ",
    "[1]]",
    "[",
    "{}",
    "{ }",
    r#"{"a":1}"#,
    r#"{"a":1,"b":{"a":[{}]},"c":""}"#,
    r#"{"a":1,"a":2}"#,
    r#"{"a":1,}"#,
    r#"{"__proto__":{"x":1},"constructor":2,"toString":null}"#,
    r#"{"2":"b","1":"a","x":0,"01":1}"#,
    r#"{"\u0061":1,"é":2,"€":3,"":4}"#,
    r#"{"a" : 1 , "b":2}"#,
    r#"{a:1}"#,
    r#"{"a"}"#,
    r#"{"a":}"#,
    r#"[{"a":1,"b":2},{"a":3,"b":4},{"a":5,"b":6}]"#,
    r#"[{"a":1,"b":2},{"a":3},{"a":5,"b":6,"c":7},{"a":1,"c":2},{"b":1},{"a":8,"b":9},{"a":1,"c":3}]"#,
    r#"[{"a":1,"b":2},{"b":1,"a":2},{"a":1,"b":2,"a":3},{"a":1,"b":2},{},{"a":[{"a":1,"b":2}],"b":2}]"#,
    r#"[{"k":"é"},{"k":"e"},{"k":"€"},{"k":1.5},{"k":-0},{"k":[]},{"k":{"k":{}}},{"k":null}]"#,
    r#"{"rows":[{"id":1,"1":2},{"id":2,"1":3},{"id":3,"1":4}],"next":null}"#,
    "\u{feff}[]",
    "[1]\u{a0}",
    "[1]\n\n",
    "/**/1",
    "[1]//",
];

fn with_engine(test: impl FnOnce(&Ctx<'_>)) {
    let runtime = Runtime::new().unwrap();
    let context = Context::full(&runtime).unwrap();
    context.with(|ctx| test(&ctx));
}

/// Returns a script function that describes a value as text, including all differences that a
/// script could observe.
fn told<'js>(ctx: &Ctx<'js>) -> Function<'js> {
    ctx.eval(
        "(value) => {
           const tell = (value) => {
             if (value === null || typeof value !== 'object') {
               return Object.is(value, -0) ? '-0' : typeof value + ':' + JSON.stringify(String(value));
             }
             if (Array.isArray(value)) return '[' + value.map(tell).join() + ']';
             if (Object.getPrototypeOf(value) !== Object.prototype) return 'foreign';
             return '{' + Reflect.ownKeys(value).map((key) => {
               const { writable, enumerable, configurable, value: inner } =
                 Object.getOwnPropertyDescriptor(value, key);
               return JSON.stringify(key) + [writable, enumerable, configurable] + tell(inner);
             }).join() + '}';
           };
           return tell(value);
         }",
    )
    .unwrap()
}

/// Returns the result of each parser: the description of the value, or `None` on an error.
fn both<'js>(
    ctx: &Ctx<'js>,
    tell: &Function<'js>,
    text: &[u8],
) -> (Option<String>, Option<String>) {
    let told = |value| -> String { tell.call((value,)).unwrap() };
    let engine = ctx.json_parse(text).ok().map(told);
    if engine.is_none() {
        ctx.catch();
    }
    let ours = match from_json(ctx, &mut text.to_vec(), DEPTH_MAX) {
        Ok(value) => Some(told(value)),
        Err(JsonReadError::Unsure | JsonReadError::TooDeep) => None,
        Err(JsonReadError::Thrown(error)) => panic!("{error} for {text:?}"),
    };
    (ours, engine)
}

#[test]
fn what_is_read_is_what_the_engine_reads() {
    with_engine(|ctx| {
        let tell = told(ctx);
        let (mut read, mut chance) = (0, 3_u32);
        for text in TEXTS {
            let (ours, engine) = both(ctx, &tell, text.as_bytes());
            assert_eq!(ours, engine, "{text}");
            // Variations with a byte removed, doubled, or replaced.
            for _ in 0..200 {
                let mut bytes = text.as_bytes().to_vec();
                for _ in 0..=chance % 3 {
                    chance = chance.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    let Some(at) = (chance as usize >> 8).checked_rem(bytes.len()) else {
                        break;
                    };
                    match chance >> 30 {
                        0 => drop(bytes.remove(at)),
                        1 => bytes.insert(at, bytes[at]),
                        2 => bytes[at] = b"{}[],:\"\\ -.e0a1\x00\x1f"[(chance >> 3) as usize % 17],
                        _ => bytes.swap(at, 0),
                    }
                }
                let Ok(varied) = String::from_utf8(bytes) else {
                    continue;
                };
                let (ours, engine) = both(ctx, &tell, varied.as_bytes());
                let wrong = not_json::describe(varied.as_bytes());
                assert_eq!(wrong.is_none(), engine.is_some(), "{varied:?}: {wrong:?}");
                if ours.is_some() {
                    read += 1;
                    assert_eq!(ours, engine, "{varied:?}");
                }
            }
        }
        assert!(read > 1_000, "only {read} variations were read");
    });
}

#[test]
fn nothing_that_is_json_is_left_to_the_engine() {
    with_engine(|ctx| {
        let tell = told(ctx);
        let json: Vec<_> = TEXTS
            .iter()
            .filter(|text| ctx.json_parse(**text).is_ok())
            .collect();
        assert!(json.len() > 50);
        for text in json {
            assert!(both(ctx, &tell, text.as_bytes()).0.is_some(), "{text}");
        }
    });
}

#[test]
fn an_object_keeps_its_kind_whatever_lies_in_it() {
    with_engine(|ctx| {
        let tell = told(ctx);
        for nesting in 0..20 {
            for kinds in 1..=12 {
                let inner: Vec<String> = (0..kinds)
                    .map(|kind| format!(r#"{{"k{kind}":1,"b":"{}"}}"#, "t".repeat(370)))
                    .collect();
                let inner = inner.join(",");
                let (open, close) = ("[".repeat(nesting), "]".repeat(nesting));
                let text = format!(
                    r#"[{{"a":1,"b":2}},{{"a":{open}{inner}{close},"b":2}},{{"a":3,"b":4}}]"#
                );
                // Without brackets, a text can contain only one value.
                if nesting == 0 && kinds > 1 {
                    continue;
                }
                let (ours, engine) = both(ctx, &tell, text.as_bytes());
                assert!(ours.is_some(), "{nesting} levels, {kinds} kinds");
                assert_eq!(ours, engine, "{nesting} levels, {kinds} kinds");
            }
        }
    });
}

#[test]
fn what_is_nested_too_deeply_is_a_syntax_error_that_can_be_caught() {
    with_engine(|ctx| {
        install_json(ctx).unwrap();
        let told: String = ctx
            .eval(
                "const tried = (depth, ...more) => {
                   try { JSON.parse('['.repeat(depth) + ']'.repeat(depth), ...more); return 'read' }
                   catch (e) { return e.name }
                 };
                 const broken = (() => { try { JSON.parse('{\"[[\":'.repeat(9000)) } catch (e) { return e.name } })();
                 [tried(512), tried(513), tried(100000), tried(512, (k, v) => v),
                  tried(100000, (k, v) => v), broken].join()",
            )
            .unwrap();
        assert_eq!(
            told,
            "read,SyntaxError,SyntaxError,read,SyntaxError,SyntaxError"
        );
    });
}

#[test]
fn rows_of_a_large_text_share_shapes_and_short_texts() {
    let rows: Vec<String> = (0..2_000)
        .map(|id| match id % 5 {
            0 => format!(r#"{{"id":{id},"level":"warn"}}"#),
            1 => format!(r#"{{"id":{id},"level":"info","extra":[{id}]}}"#),
            2 => format!(r#"{{"level":"warn","id":{id},"2":null}}"#),
            3 => format!(r#"{{"id":{id},"at":{{"x":{id}.25,"y":"a text that is longer"}}}}"#),
            _ => format!(r#"{{"k{id}":{id}}}"#),
        })
        .collect();
    let text = format!("[{}]", rows.join(", "));
    with_engine(|ctx| {
        let (ours, engine) = both(ctx, &told(ctx), text.as_bytes());
        assert!(ours.is_some());
        assert_eq!(ours, engine);
        // Changing one row does not change the others.
        let changed: bool = {
            let value = from_json(ctx, &mut text.clone().into_bytes(), DEPTH_MAX).unwrap();
            let change: Function<'_> = ctx
                .eval(
                    "(rows) => {
                       rows[0].level += '!'; rows[5].added = 1; delete rows[10].id;
                       return rows[15].level === 'warn' && !('added' in rows[15]) && rows[15].id === 15
                         && rows[5].added === 1 && Object.keys(rows[10]).join() === 'level';
                     }",
                )
                .unwrap();
            change.call((value,)).unwrap()
        };
        assert!(changed);
    });
}

/// Memory runs out at each of the allocations of the parser in turn.
#[test]
fn without_memory_reading_is_an_exception_and_then_right_again() {
    let runtime = Runtime::new().unwrap();
    let context = Context::full(&runtime).unwrap();
    let rows: Vec<String> = (0..40)
        .map(|id| {
            format!(
                r#"{{"id":{id},"new{}":["a\n","é"],"at":{{"x":0.5}}}}"#,
                id % 7
            )
        })
        .collect();
    let text = format!("[{}]{}", rows.join(","), " ".repeat(20_000));
    let read_by_both = || context.with(|ctx| both(&ctx, &told(&ctx), text.as_bytes()));
    let expected = read_by_both().1;
    let (mut failed, mut done) = (0, 0);
    for more in (0..40_000).step_by(24) {
        let used = usize::try_from(runtime.memory_usage().malloc_size).unwrap();
        runtime.set_memory_limit(used + more);
        context.with(|ctx| {
            match from_json(&ctx, &mut text.clone().into_bytes(), DEPTH_MAX) {
                Ok(_) => done += 1,
                Err(JsonReadError::Thrown(_) | JsonReadError::Unsure) => failed += 1,
                Err(other) => panic!("{other:?}"),
            }
            ctx.catch();
        });
        runtime.set_memory_limit(0);
        if more % 100 == 0 {
            assert_eq!(read_by_both().0, expected, "after {more} bytes");
        }
    }
    assert!(failed > 100 && done > 10, "{failed} failed, {done} done");
}

#[test]
fn depth_is_bounded() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    with_engine(|ctx| {
        let read = |levels| from_json(ctx, &mut nested(levels).into_bytes(), DEPTH_MAX);
        assert!(read(DEPTH_MAX as usize).is_ok());
        assert!(matches!(
            read(DEPTH_MAX as usize + 1),
            Err(JsonReadError::TooDeep)
        ));
        let object = "{\"a\":".repeat(60) + "1" + &"}".repeat(60);
        let read = from_json(ctx, &mut object.into_bytes(), DEPTH_MAX);
        assert!(matches!(read, Err(JsonReadError::TooDeep)));
    });
}

#[test]
fn the_scripts_own_json_parse_has_the_words_of_all_guests_and_its_reviver() {
    with_engine(|ctx| {
        let tells = "(() => [
            JSON.parse.name, JSON.parse.length, JSON.parse(' [1, {\"a\": 2}] ')[1].a,
            JSON.parse('[1,2]', (key, value) => Array.isArray(value) ? value : value + 1).join(),
            JSON.parse({ toString: () => '\"é\"' }), JSON.parse('3', null),
          ].join('|'))()";
        let before: String = ctx.eval(tells).unwrap();
        install_json(ctx).unwrap();
        assert_eq!(ctx.eval::<String, _>(tells).unwrap(), before);
        assert_eq!(before, "parse|2|2|2,3|é|3");
        let refused = "[['{\"a\":1'], [''], ['[1,]'], [undefined], ['é x', (key, value) => value],
            ['[1]', () => { throw new SyntaxError('own') }], ['1', () => null.x]]
          .map(([text, reviver]) => {
            try { return JSON.parse(text, reviver) } catch (error) { return error.name + ': ' + error.message }
          }).join('\\n')";
        assert_eq!(
            ctx.eval::<String, _>(refused).unwrap(),
            "SyntaxError: expected `,` or `}` in JSON at line 1 column 7
SyntaxError: unexpected end in JSON at line 1 column 1
SyntaxError: unexpected character in JSON at line 1 column 4: `]`
SyntaxError: unexpected character in JSON at line 1 column 1: `undefined`
SyntaxError: unexpected character in JSON at line 1 column 1: `é x`
SyntaxError: own
TypeError: cannot read property 'x' of null"
        );
        let deep = "try { JSON.parse('['.repeat(1e6)) } catch (error) { error.name }";
        assert!(["RangeError", "SyntaxError"].contains(&&*ctx.eval::<String, _>(deep).unwrap()));
    });
}

/// Expressions of values that are entirely plain.
const PLAIN: &[&str] = &[
    "({})",
    "[]",
    "({ a: 1, b: -0, c: 0.1, d: 1e21, e: -2147483648, f: 2 ** 31, g: 5e-324 })",
    "({ t: true, f: false, n: null, u: undefined, s: '' })",
    "[undefined, null, [[]], { a: { b: [{}] } }]",
    r#"['"\\/\b\f\n\r\t\v\0\u001f\u007f', 'é ü', '€ \u2028', '😀', '\ud83d\ude00x']"#,
    r#"({ 'é': 1, '€"': 2, '': 3, 'a b': 4, '01': 5, '-1': 6, '__proto__x': 7 })"#,
    "({ ['__proto__']: { x: 1 } })",
    "Object.assign(Object.create(null), { a: 1 })",
    "Object.assign(Object.create({ inherited: 1 }), { a: 1 })",
    "Object.defineProperty({ a: 1 }, 'hidden', { get() { ran++ }, enumerable: false })",
    "({ a: 1, [Symbol.iterator]: 2, b: 3 })",
    "(() => { const o = { a: 1, b: 2, c: 3 }; delete o.b; o.d = 4; return o })()",
    "(() => { const items = [1, 2, 3]; items.extra = 4; items.length = 2; return items })()",
    "Array.from({ length: 500 }, (_, id) => ({ id, name: `name ${id}`, even: id % 2 === 0 }))",
    "[('long text ' + Math.PI).repeat(200) + 'é'.repeat(9000) + 'end']",
    "['x'.repeat(9000) + '\\n'.repeat(9000)]",
    "'0123456789'.repeat(40).split('').map((digit) => digit.repeat(30).slice(3, 20))",
];

/// Expressions of values whose conversion runs code of the script, or that JSON cannot express.
const NOT_PLAIN: &[&str] = &[
    "({ get a() { ran++; return 1 } })",
    "({ toJSON() { ran++; return 1 } })",
    "({ toJSON: 1 })",
    "new (class { toJSON() { ran++; return 1 } })()",
    "[1, { a: new Date(0) }]",
    "Object.assign([1], { toJSON() { ran++; return 1 } })",
    "new Proxy({}, { ownKeys() { ran++; return [] } })",
    "({ a: new Proxy([], { get() { ran++ } }) })",
    "Object.create(new Proxy({}, { get() { ran++ } }))",
    "new Map([[1, 2]])",
    "new Set([1])",
    "/x/",
    "new Error('x')",
    "new Uint8Array(2)",
    "[1, , 3]",
    "(() => { const items = [1]; items.length = 3; return items })()",
    "Object.defineProperty([1, 2], 0, { get() { ran++ } })",
    "({ 2: 'b', 1: 'a' })",
    "({ 4294967294: 1 })",
    "[NaN]",
    "[-Infinity]",
    "[1n]",
    "[Symbol.iterator]",
    "({ a() {} })",
    "[new String('x')]",
    "['\\ud800']",
    "['€\\udc00']",
    "(() => { const it = {}; it.it = it; return it })()",
    "Array.from({ length: 41 }).reduce((inner) => [inner], 0)",
    "(function () { return arguments })(1)",
];

#[test]
fn what_is_written_is_what_the_engine_writes() {
    with_engine(|ctx| {
        let _: i32 = ctx.eval("globalThis.ran = 0").unwrap();
        for expression in PLAIN {
            let value: Value<'_> = ctx.eval(*expression).unwrap();
            let expected = ctx.json_stringify(value.clone()).unwrap().unwrap();
            let expected = expected.to_string().unwrap().into_bytes();
            let whole = plain_json(&value, expected.len(), DEPTH_MAX).unwrap();
            assert_eq!(whole.as_ref(), Some(&expected), "{expression}");
            let cut = plain_json(&value, expected.len() - 1, DEPTH_MAX).unwrap();
            assert_eq!(cut, None, "{expression}");
        }
        assert_eq!(ctx.eval::<i32, _>("ran").unwrap(), 0);
    });
}

#[test]
fn what_the_script_would_be_asked_for_is_left_alone() {
    with_engine(|ctx| {
        let _: i32 = ctx.eval("globalThis.ran = 0").unwrap();
        for expression in NOT_PLAIN {
            let value: Value<'_> = ctx.eval(*expression).unwrap();
            let written = plain_json(&value, 1_000_000, DEPTH_MAX).unwrap();
            assert_eq!(written, None, "{expression}");
        }
        let on_prototypes = "Object.prototype.toJSON = function () { ran++; return 1 }; [{}]";
        let value: Value<'_> = ctx.eval(on_prototypes).unwrap();
        assert_eq!(plain_json(&value, 1_000_000, DEPTH_MAX).unwrap(), None);
        assert!(!ctx.has_exception());
        assert_eq!(ctx.eval::<i32, _>("ran").unwrap(), 0);
    });
}
