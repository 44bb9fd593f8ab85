//! No built-in of ours takes time that grows faster than what it works on, times its
//! logarithm. Time is counted in instructions of the guest, so it is the same each
//! time and on every machine. One that moves or fills memory counts by how much that is.
//!
//! The guest is the frozen module beside the newest image below this target folder.

#![expect(clippy::unwrap_used, reason = "a test, in several files")]

#[path = "growth/moved.rs"]
mod moved;
#[path = "growth/uses.rs"]
mod uses;

use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use sandbox_protocol::codec::{decode_step, encode_start};
use sandbox_protocol::{GuestLimits, ServerStubs, Start, StepState, ToolStub};
use wasmtime::{Config, Engine, Instance, Memory, Module, OptLevel, Store};

use uses::{MOVES, USES};

const N: u64 = 500;
/// From n to 4n, n log n grows to less than five times as much where n is this large; the
/// square grows to sixteen times as much.
const GROWTH_MAX: f64 = 5.5;

/// So many bytes are moved in the time of an instruction.
const BYTES_AT_ONCE: u64 = 8;

/// An item of a list. [`MOVES`] move `N` of them `N` times at most.
const ITEM_BYTES: u64 = 8;

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
    for (name, script) in MOVES {
        let [once, four_times] = [N, N * 4].map(|n| spent(&module, start_of(script, n)));
        let growth = four_times.instructions as f64 / once.instructions as f64;
        println!(
            "{name}: {growth:.2} times as many instructions, {} bytes",
            four_times.moved_bytes
        );
        assert!(growth < GROWTH_MAX, "{name}: {growth:.2}");
        let bytes_max = (N * 4).pow(2) * ITEM_BYTES;
        assert!(
            four_times.moved_bytes < bytes_max,
            "{name}: more than {bytes_max} bytes"
        );
    }
    // What does grow faster is noticed: a loop within a loop, and moving much.
    let script = "for (let s = 'ab'.repeat(N * 50), i = 0; i < N; i++) (s + i).length;";
    let moved = growth(&module, script).2;
    assert!(moved > GROWTH_MAX, "{moved}");
    let script = "for (let i = 0; i < N; i++) for (let j = 0; j < N; j++);";
    let (_, _, growth) = growth(&module, script);
    assert!(growth > GROWTH_MAX, "{growth}");
}

/// Scripts that are as long as it takes.
#[test]
fn reading_a_script_takes_time_that_goes_with_its_length() {
    // A # is the number of the line, so that each has names of its own.
    let scripts = [
        ("appends on one line", "s+='a';"),
        ("appends on one line, wide", "s+='é';"),
        ("appends, one a line", "s+='a';\n"),
        ("functions", "function f#(a){return a+#}\n"),
        ("functions without names", "s=(a)=>a+#;\n"),
        ("constants that are used", "const c#=#;c#+s;\n"),
        ("variables", "var v#=#;\n"),
        ("functions that see all", "const f#=()=>s+#;\n"),
    ];
    let module = guest();
    for (name, script) in scripts {
        let lines = |n| (0..n).map(|at: usize| script.replace('#', &at.to_string()));
        let script = |n| format!("let s='';{}return 0", lines(n).collect::<String>());
        let fuel = |n| spent(&module, start(script(n))).fuel();
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

/// What a run that calls a tool and waits has written; another 1,000 of them are kept beside it.
#[test]
fn a_run_that_waits_has_written_few_pages() {
    const PAGE_BYTES: usize = 4 * 1024;
    // 45 as this was written, 25 of them the stack; a change of the guest moves some.
    const PAGES_MAX: usize = 54;
    let script = "const names = await files.list({ path: '/', deep: true });\nreturn names.length;";
    let mut waits = start(script.to_owned());
    waits.limits.args_bytes_max = 1024;
    waits.stubs = vec![ServerStubs {
        name: "files".to_owned(),
        tools: vec![ToolStub {
            member: "list".to_owned(),
            flat: "files_list".to_owned(),
            short: String::new(),
            order: Vec::new(),
        }],
    }];
    let mut guest = Started::of(&guest());
    let before = guest.memory();
    let state = guest.start(&waits);
    assert!(matches!(state, StepState::Waiting { .. }), "{state:?}");
    let after = guest.memory();
    let pages = before.chunks(PAGE_BYTES).zip(after.chunks(PAGE_BYTES));
    let written = pages.filter(|(before, after)| before != after).count();
    println!("{written} pages");
    assert!(written <= PAGES_MAX, "{written} pages");
    assert_eq!(before.len(), after.len());
}

fn guest() -> Module {
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .cranelift_opt_level(OptLevel::None)
        .max_wasm_stack(2 * 1024 * 1024);
    let wasm = moved::counting(&fs::read(newest_guest()).unwrap());
    Module::new(&Engine::new(&config).unwrap(), wasm).unwrap()
}

/// What it takes at n and at 4n, and how many times as much that is.
fn growth(module: &Module, script: &str) -> (u64, u64, f64) {
    let nothing = spent(module, start_of("0", N)).fuel();
    let [once, four_times] =
        [N, N * 4].map(|n| spent(module, start_of(script, n)).fuel() - nothing);
    (once, four_times, four_times as f64 / once as f64)
}

/// What a run takes from its start to its end.
struct Spent {
    instructions: u64,
    moved_bytes: u64,
    memory_bytes: usize,
}

impl Spent {
    /// Instructions, and what is moved in the time of as many.
    fn fuel(&self) -> u64 {
        self.instructions + self.moved_bytes / BYTES_AT_ONCE
    }
}

const TANK: u64 = 1 << 50;

/// A guest with its memory.
struct Started {
    store: Store<()>,
    guest: Instance,
    memory: Memory,
}

impl Started {
    fn of(module: &Module) -> Self {
        let mut store = Store::new(module.engine(), ());
        store.set_fuel(TANK).unwrap();
        let guest = Instance::new(&mut store, module, &[]).unwrap();
        let memory = guest.get_memory(&mut store, "memory").unwrap();
        Self {
            store,
            guest,
            memory,
        }
    }

    fn memory(&self) -> Vec<u8> {
        self.memory.data(&self.store).to_vec()
    }

    /// Runs a script as far as it goes.
    fn start(&mut self, start: &Start) -> StepState {
        let (guest, store) = (&self.guest, &mut self.store);
        let alloc = guest
            .get_typed_func::<u32, u32>(&mut *store, "alloc")
            .unwrap();
        let begin = guest
            .get_typed_func::<(), u64>(&mut *store, "start")
            .unwrap();
        let frame = encode_start(start).unwrap();
        let at = alloc.call(&mut *store, frame.len() as u32).unwrap();
        self.memory.write(&mut *store, at as usize, &frame).unwrap();
        let answer = begin.call(&mut *store, ()).unwrap();
        let mut step = vec![0; answer as u32 as usize];
        self.memory
            .read(&*store, (answer >> 32) as usize, &mut step)
            .unwrap();
        decode_step(&step).unwrap().state
    }
}

fn spent(module: &Module, start: Start) -> Spent {
    let mut started = Started::of(module);
    let state = started.start(&start);
    assert!(
        matches!(state, StepState::Done { .. }),
        "{:.200}: {state:?}",
        start.script
    );
    let Started {
        mut store,
        guest,
        memory,
    } = started;
    let moved = guest.get_global(&mut store, moved::MOVED).unwrap();
    let moved = moved.get(&mut store).i64().unwrap() as u64;
    Spent {
        instructions: TANK - store.get_fuel().unwrap(),
        moved_bytes: moved,
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
            // Images of other guests lie here too.
            let wasm = image.join("boa.wasm");
            if let (true, Ok(pressed)) = (wasm.exists(), fs::metadata(image.join("pressed"))) {
                guests.push((pressed.modified().unwrap(), wasm));
            }
        }
    }
    guests.sort();
    guests
        .pop()
        .expect("an image below this target folder; building the broker makes one")
        .1
}
