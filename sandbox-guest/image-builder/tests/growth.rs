//! Tests that every replaced built-in needs at most n log n time for n items. Time is counted in
//! instructions of the guest, so it is the same on every machine. An instruction that copies or
//! fills memory counts by the size of that memory.
//!
//! The guest is the frozen module next to the newest image below this target folder.

#![expect(clippy::unwrap_used, reason = "a test in several files")]

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
/// Maximum ratio of the cost at 4n to the cost at n. For large n, n log n grows by a factor below
/// five, and n² by sixteen.
const GROWTH_MAX: f64 = 5.5;

/// Number of moved bytes that count as one instruction.
const BYTES_AT_ONCE: u64 = 8;

/// Size of a list item in bytes. The programs in [`MOVES`] move `N` items at most `N` times.
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
    // Tests that quadratic growth is detected: a loop within a loop, and many moves.
    let script = "for (let s = 'ab'.repeat(N * 50), i = 0; i < N; i++) (s + i).length;";
    let moved = growth(&module, script).2;
    assert!(moved > GROWTH_MAX, "{moved}");
    let script = "for (let i = 0; i < N; i++) for (let j = 0; j < N; j++);";
    let (_, _, growth) = growth(&module, script);
    assert!(growth > GROWTH_MAX, "{growth}");
}

/// Compares scripts of 1,000 and of 4,000 lines.
#[test]
fn reading_a_script_takes_time_that_goes_with_its_length() {
    // A `#` is replaced by the line number, so that each line has different names.
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

/// Limits the pages that a run writes before it waits for a tool; 1,000 such runs may wait at once.
#[test]
fn a_run_that_waits_has_written_few_pages() {
    const PAGE_BYTES: usize = 4 * 1024;
    // The value was 45 when this limit was set, 25 of them for the stack. Changes of the guest
    // change it a little.
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
            hidden: false,
        }],
    }];
    let mut guest = StartedGuest::of(&guest());
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

/// Returns the cost at n and at 4n, and their ratio.
fn growth(module: &Module, script: &str) -> (u64, u64, f64) {
    let nothing = spent(module, start_of("0", N)).fuel();
    let [once, four_times] =
        [N, N * 4].map(|n| spent(module, start_of(script, n)).fuel() - nothing);
    (once, four_times, four_times as f64 / once as f64)
}

/// The cost of a run from start to end.
struct RunCost {
    instructions: u64,
    moved_bytes: u64,
    memory_bytes: usize,
}

impl RunCost {
    /// Returns the number of instructions, with moved bytes counted as instructions.
    fn fuel(&self) -> u64 {
        self.instructions + self.moved_bytes / BYTES_AT_ONCE
    }
}

const TANK: u64 = 1 << 50;

/// A guest with its memory.
struct StartedGuest {
    store: Store<()>,
    guest: Instance,
    memory: Memory,
}

impl StartedGuest {
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

    /// Starts a script and runs it until it ends or waits.
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

fn spent(module: &Module, start: Start) -> RunCost {
    let mut started = StartedGuest::of(module);
    let state = started.start(&start);
    assert!(
        matches!(state, StepState::Done { .. }),
        "{:.200}: {state:?}",
        start.script
    );
    let StartedGuest {
        mut store,
        guest,
        memory,
    } = started;
    let moved = guest.get_global(&mut store, moved::MOVED).unwrap();
    let moved = moved.get(&mut store).i64().unwrap() as u64;
    RunCost {
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
            // The images of other guests are here too.
            let wasm = image.join("boa.wasm");
            if let (true, Ok(built)) = (wasm.exists(), fs::metadata(image.join("built"))) {
                guests.push((built.modified().unwrap(), wasm));
            }
        }
    }
    guests.sort();
    guests
        .pop()
        .expect("an image below this target folder; building the broker makes one")
        .1
}
