//! No built-in of ours takes time that grows faster than what it works on, times its
//! logarithm. Time is counted in instructions of the guest, so it is the same each
//! time and on every machine.
//!
//! The guest is the frozen module beside the newest image below this target folder.

use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use sandbox_protocol::codec::{decode_step, encode_start};
use sandbox_protocol::{GuestLimits, Start, StepState};
use wasmtime::{Config, Engine, Instance, Module, OptLevel, Store};

/// One use of each, on a text or a list whose length goes with `N`.
const USES: [(&str, &str); 49] = [
    ("split", "'a,b;'.repeat(N).split(',').length"),
    ("split, all of it", "','.repeat(N).split(',').length"),
    (
        "split, a long separator",
        "('x'.repeat(40) + ',').repeat(N).split('x'.repeat(20) + ',').length",
    ),
    (
        "split by an expression",
        "'a, b; '.repeat(N).split(/[,;]\\s*/).length",
    ),
    ("split by groups", "'a1b'.repeat(N).split(/(\\d)/).length"),
    (
        "indexOf, from find to find",
        "for (let t = 'ab '.repeat(N), at = 0; (at = t.indexOf(' ', at)) >= 0; at++);",
    ),
    (
        "indexOf, almost everywhere",
        "'a'.repeat(N * 4).indexOf('a'.repeat(N) + 'b')",
    ),
    ("lastIndexOf", "('b' + 'a'.repeat(N * 4)).lastIndexOf('b')"),
    (
        "lastIndexOf, almost everywhere",
        "'a'.repeat(N * 4).lastIndexOf('b' + 'a'.repeat(N))",
    ),
    ("includes", "'ab'.repeat(N).includes('abb')"),
    ("includes, wide", "'a€'.repeat(N).includes('€€')"),
    ("replace", "('a'.repeat(N) + 'b').replace('b', '$`').length"),
    (
        "replaceAll",
        "'a-b'.repeat(N).replaceAll('-', '$&+').length",
    ),
    (
        "replaceAll by a function",
        "'a-b'.repeat(N).replaceAll('-', (found, at) => at).length",
    ),
    (
        "replaceAll of nothing",
        "'a€'.repeat(N).replaceAll('', '.').length",
    ),
    (
        "replace by an expression",
        "'a1b'.repeat(N).replace(/(\\d)/g, '<$1>').length",
    ),
    (
        "replace by an expression and a function",
        "'a1b'.repeat(N).replace(/\\d/g, (found) => found + found).length",
    ),
    (
        "exec, from find to find",
        "for (let r = /\\d/g, t = 'a1'.repeat(N); r.exec(t););",
    ),
    (
        "test, from find to find",
        "for (let r = /\\d/gy, t = '1'.repeat(N); r.test(t););",
    ),
    ("match", "'a1b'.repeat(N).match(/\\d/g).length"),
    (
        "matchAll",
        "[...'a1b'.repeat(N).matchAll(/(\\d)b/g)].length",
    ),
    (
        "compile",
        "for (let i = 0; i < N / 8; i++) /a/.compile('b' + i % 7)",
    ),
    (
        "sort numbers",
        "many(i => i * 7919 % 10007).sort((a, b) => a - b)[0]",
    ),
    (
        "sort by a member",
        "many(i => ({ n: i * 7919 % 10007 })).sort((a, b) => b.n - a.n)[0].n",
    ),
    (
        "sort by anything",
        "many(i => i * 7919 % 10007).sort((a, b) => (a < b ? -1 : 1))[0]",
    ),
    (
        "sort in place",
        "many(i => i * 7919 % 10007 + 0.5).sort()[0]",
    ),
    (
        "make by counting",
        "Array.from({ length: N * 4 }, (_, i) => i).length",
    ),
    ("sort texts", "many(i => 'k' + i * 7919 % 10007).sort()[0]"),
    (
        "toSorted",
        "many(i => i * 7919 % 10007).toSorted((a, b) => a - b)[0]",
    ),
    (
        "parse rows",
        "JSON.parse('[' + '{\"a\":1,\"b\":\"x\"},'.repeat(N) + '0]').length",
    ),
    (
        "parse keys",
        "Object.keys(JSON.parse('{' + many(i => `\"k${i}\":${i}`).join() + '}')).length",
    ),
    (
        "stringify rows",
        "JSON.stringify(many(i => ({ id: i, name: 'n' + i, tags: ['a', 'b'] }))).length",
    ),
    (
        "stringify texts",
        "JSON.stringify(['a\"\\n'.repeat(N), 'é€'.repeat(N)], null, 2).length",
    ),
    (
        "append",
        "(() => { let s = ''; for (let i = 0; i < N * 8; i++) s += '0123456789'; return s.length })()",
    ),
    (
        "append, wide",
        "(() => { let s = '€'; for (let i = 0; i < N * 8; i++) s += i; return s.length })()",
    ),
    (
        "append, two by turns, kept",
        "(() => { let a = '', b = ''; const all = []; for (let i = 0; i < N * 4; i++) { a += 'abc'; b += 'x€'; all.push(a, b) } return all.length })()",
    ),
    ("repeat", "'ab'.repeat(N).length"),
    ("padStart", "'ab'.padStart(N, 'xy').length"),
    ("padEnd", "'ab'.padEnd(N, 'xy').length"),
    (
        "localeCompare, long texts",
        "'Añ-1 '.repeat(N).localeCompare('añ-1 '.repeat(N))",
    ),
    (
        "localeCompare, long numbers",
        "'12'.repeat(N).localeCompare('12'.repeat(N) + '3', 'en', { numeric: true })",
    ),
    (
        "sort by localeCompare",
        "many(i => 'k' + i * 7919 % 10007).sort((a, b) => a.localeCompare(b))[0]",
    ),
    (
        "sort by a collator",
        "many(i => 'k' + i * 7919 % 10007).sort(new Intl.Collator('en', { numeric: true }).compare)[0]",
    ),
    (
        "numbers as texts",
        "many(i => (i * 1234.5).toLocaleString('en-US', { style: 'currency', currency: 'USD' })).length",
    ),
    (
        "a long number as a text",
        "(10n ** BigInt(N)).toLocaleString().length",
    ),
    ("a list as a text", "many(i => i).toLocaleString().length"),
    (
        "dates as texts",
        "many(i => new Date(i * 1e9).toLocaleString('en-US', { dateStyle: 'full' })).length",
    ),
    (
        "dates from texts",
        "many(i => Date.parse('Nov ' + (i % 28 + 1) + ', 2026 10:00 PM')).length",
    ),
    (
        "a list in words",
        "new Intl.ListFormat('en').format(many(i => 'w' + i)).length",
    ),
];

const N: u64 = 500;
/// From n to 4n, n log n grows to less than five times as much where n is this large; the
/// square grows to sixteen times as much.
const GROWTH_MAX: f64 = 5.5;

#[test]
fn no_built_in_of_ours_grows_faster_than_n_log_n() {
    let module = guest();
    let mut grown = Vec::new();
    for (name, script) in USES {
        let (once, four_times, growth) = growth(&module, script);
        println!("{name}: {once} and {four_times}, {growth:.2} times as much");
        if growth > GROWTH_MAX {
            grown.push(format!("{name}: {growth:.2}"));
        }
    }
    assert!(grown.is_empty(), "{grown:#?}");
    // What does grow faster is noticed: a loop within a loop.
    let script = "for (let i = 0; i < N; i++) for (let j = 0; j < N; j++);";
    let (_, _, growth) = growth(&module, script);
    assert!(growth > GROWTH_MAX, "{growth}");
}

/// Scripts that are as long as it takes.
#[test]
fn reading_a_script_takes_time_that_goes_with_its_length() {
    // Functions are left out: with their number the engine's own time grows faster.
    let scripts = [
        ("appends on one line", "s+='a';"),
        ("appends on one line, wide", "s+='é';"),
        ("appends, one a line", "s+='a';\n"),
    ];
    let module = guest();
    for (name, script) in scripts {
        let script = |n| format!("let s='';{}return 0", script.repeat(n));
        let fuel = |n| spent(&module, start(script(n))).fuel;
        let nothing = fuel(1);
        let [once, four_times] = [1_000, 4_000].map(|n| fuel(n) - nothing);
        let times = four_times as f64 / once as f64;
        println!("{name}: {once}, {four_times}, {times:.2} times");
        assert!(
            times < 5.0,
            "{name}: {times:.2} times as much for four times the script"
        );
    }
}

#[test]
fn a_text_that_was_appended_to_and_is_no_more_takes_no_room() {
    let module = guest();
    let memory = |rounds| {
        let script = format!(
            "const piece = 'x'.repeat(65536)\nfor (let i = 0; i < {rounds}; i++) {{ let s = ''; while (s.length < 4e7) s += piece }}"
        );
        spent(&module, start(script)).memory_bytes
    };
    let [one, six] = [memory(1), memory(6)];
    println!("{one} bytes for one, {six} for six");
    assert!(six < one * 3 / 2, "{one} bytes for one, {six} for six");
}

fn guest() -> Module {
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .cranelift_opt_level(OptLevel::None)
        .max_wasm_stack(2 * 1024 * 1024);
    Module::from_file(&Engine::new(&config).unwrap(), newest_guest()).unwrap()
}

/// What it takes at n and at 4n, and how many times as much that is.
fn growth(module: &Module, script: &str) -> (u64, u64, f64) {
    let nothing = spent(module, start_of("0", N)).fuel;
    let [once, four_times] = [N, N * 4].map(|n| spent(module, start_of(script, n)).fuel - nothing);
    (once, four_times, four_times as f64 / once as f64)
}

/// What a run takes from its start to its end.
struct Spent {
    /// Instructions.
    fuel: u64,
    memory_bytes: usize,
}

fn spent(module: &Module, start: Start) -> Spent {
    const TANK: u64 = 1 << 50;
    let mut store = Store::new(module.engine(), ());
    store.set_fuel(TANK).unwrap();
    let guest = Instance::new(&mut store, module, &[]).unwrap();
    let memory = guest.get_memory(&mut store, "memory").unwrap();
    let alloc = guest
        .get_typed_func::<u32, u32>(&mut store, "alloc")
        .unwrap();
    let begin = guest
        .get_typed_func::<(), u64>(&mut store, "start")
        .unwrap();
    let frame = encode_start(&start).unwrap();
    let at = alloc.call(&mut store, frame.len() as u32).unwrap();
    memory.write(&mut store, at as usize, &frame).unwrap();
    let answer = begin.call(&mut store, ()).unwrap();
    let mut step = vec![0; answer as u32 as usize];
    memory
        .read(&store, (answer >> 32) as usize, &mut step)
        .unwrap();
    let state = decode_step(&step).unwrap().state;
    assert!(
        matches!(state, StepState::Done { .. }),
        "{:.200}: {state:?}",
        start.script
    );
    Spent {
        fuel: TANK - store.get_fuel().unwrap(),
        memory_bytes: memory.data_size(&store),
    }
}

fn start_of(script: &str, n: u64) -> Start {
    let body = match script.starts_with("for") {
        true => script.to_owned(),
        false => format!("return {script}"),
    };
    start(format!(
        "const N = {n}, many = (f) => Array.from({{ length: N }}, (_, i) => f(i));\n{body}"
    ))
}

fn start(script: String) -> Start {
    Start {
        script,
        script_name: "script.js".to_owned(),
        stubs: Vec::new(),
        input: Vec::new(),
        seed: 1,
        now_ms: 0,
        limits: GuestLimits {
            console_bytes_max: 0,
            console_flood_bytes_max: 0,
            args_bytes_max: 0,
            value_bytes_max: 1024 * 1024,
            json_depth_max: 128,
            recursion_max: 500,
        },
    }
}

fn newest_guest() -> PathBuf {
    let exe = std::env::current_exe().unwrap();
    let target = exe.ancestors().nth(3).unwrap();
    let mut guests: Vec<(SystemTime, PathBuf)> = Vec::new();
    for host in fs::read_dir(target.join("images")).unwrap() {
        for image in fs::read_dir(host.unwrap().path()).unwrap() {
            let image = image.unwrap().path();
            if let Ok(pressed) = fs::metadata(image.join("pressed")) {
                guests.push((pressed.modified().unwrap(), image.join("boa.wasm")));
            }
        }
    }
    guests.sort();
    guests
        .pop()
        .expect("an image below this target folder; building the broker makes one")
        .1
}
