//! Memory runs out at blocks of every size, and wherever a script can ask for one: the host is
//! unharmed each time, and the next run is right.

use airlock::sandbox::GuestBounds;
use airlock_core::effect::GuestStop;
use airlock_core::limits::Limit;

use crate::harness::{BOUNDS, End, drive, echo, run, start};

/// What a guest has beyond its image, and how much of it is taken before sizes are tried.
const ROOM_BYTES: u64 = 4 * 1024 * 1024;
const BALLAST: &str = "const ballast = new Uint8Array(2.5 * 1024 * 1024); let kept;";

/// Lists of small blocks end here in either guest, and step by this much at most.
const SMALL_BYTES_MAX: usize = 1_056;
const CLASS_BYTES: usize = 8;

/// Things of about so many bytes.
const MAKERS: [&str; 6] = [
    "new Uint8Array(BYTES)",
    "new Array(BYTES >> 3).fill(at)",
    "Object.fromEntries(Array.from({ length: BYTES >> 4 }, (_, n) => [`k${n}`, at]))",
    "new Map(Array.from({ length: BYTES >> 5 }, (_, n) => [n, at]))",
    "(1n << BigInt(BYTES * 8)) + BigInt(at)",
    "JSON.parse(JSON.stringify({ list: new Array(BYTES >> 4).fill({ at }) }))",
];

fn bounds() -> GuestBounds {
    GuestBounds {
        memory_bytes_max: run("return 1").usage.memory_bytes_peak + ROOM_BYTES,
        cpu_ms_max: 60_000,
        ..BOUNDS
    }
}

fn starve(script: &str, bounds: GuestBounds) {
    match drive(&start(script), bounds, echo).end {
        End::Stopped(GuestStop::Limit {
            limit: Limit::Memory,
            ..
        }) => {}
        other => panic!("{script}: {other:?}"),
    }
    assert_eq!(run("return [1, 2].map((n) => n * 2)").value(), "[2,4]");
}

/// Keeps one thing after the other until there is no room, whatever the script catches.
fn keeping(made: &str, bytes: usize) -> String {
    let made = made.replace("BYTES", &bytes.to_string());
    format!(
        "{BALLAST} for (let at = 0; ; at++) {{ try {{ kept = {{ made: {made}, kept }} }} catch {{}} }}"
    )
}

#[test]
fn memory_that_runs_out_at_a_block_of_any_class_ends_the_run_as_its_limit() {
    let bounds = bounds();
    for bytes in (0..=SMALL_BYTES_MAX).step_by(CLASS_BYTES) {
        starve(&keeping("'x'.repeat(BYTES) + at", bytes), bounds);
    }
}

#[test]
fn memory_that_runs_out_at_a_large_block_ends_the_run_as_its_limit() {
    let bounds = bounds();
    for made in MAKERS {
        for bytes in [1_000, 3_000, 10_000, 30_000, 100_000] {
            starve(&keeping(made, bytes), bounds);
        }
    }
    for bytes in (20..=31).map(|bits| (1_usize << bits) - 100) {
        starve(
            &keeping("new Uint8Array(Math.min(BYTES, 1e9))", bytes),
            bounds,
        );
    }
}

/// Another amount is left each time, so that it ends at another of the blocks that these take.
#[test]
fn memory_that_runs_out_anywhere_in_what_a_script_does_ends_the_run_as_its_limit() {
    let bounds = bounds();
    for step in 0..40 {
        let left = step * 13_691;
        starve(
            &format!(
                "{BALLAST} const more = new Uint8Array({left});
                 const keep = (made) => (kept = {{ made, kept }});
                 for (let at = 0; ; at++) {{
                   keep(`text ${{at}}`.split(' ')); keep(new Map([[at, more]])); keep(() => at);
                   keep(/a(b)/.exec('ab')); keep(class {{ #at = at; }}); keep(Promise.resolve(at).then(keep));
                   keep(structuredClone({{ at: [at] }})); keep(JSON.parse(`{{\"at\":[${{at}}]}}`));
                   keep(new Error('at', {{ cause: at }})); keep([...'letters'].sort()); keep(logs.tail({{ at }}));
                   keep(new URL(`https://example.org/${{at}}`)); keep(new Date(at).toISOString());
                 }}"
            ),
            bounds,
        );
    }
}

/// What nobody has any more takes no memory, however large it was.
#[test]
fn what_was_dropped_is_no_memory() {
    for (script, value) in [
        (
            "const list = Array.from({ length: 20_000 }, (_, i) => i); let all = 0; \
             for (let i = 0; i < 500; i++) all += list.concat([i]).length; return all",
            "10000500",
        ),
        (
            "const list = Array.from({ length: 20_000 }, (_, i) => i); let all = 0; \
             for (let i = 0; i < 400; i++) all += [...list, i].length; return all",
            "8000400",
        ),
        (
            "const o = {}; for (let i = 0; i < 2_000; i++) o['k' + i] = i; let all = 0; \
             for (let i = 0; i < 700; i++) all += { ...o, more: i }.more; return all",
            "244650",
        ),
        (
            "const o = {}; for (let i = 0; i < 2_000; i++) o['k' + i] = i; let all = 0; \
             for (let i = 0; i < 700; i++) { const { k1, ...rest } = o; all += rest.k2 } return all",
            "1400",
        ),
        (
            "let all = 0; for (let i = 0; i < 200; i++) \
             { const row = []; for (let j = 0; j < 20_000; j++) row[j] = j; all += row.length } return all",
            "4000000",
        ),
        (
            "let all = 0; for (let i = 0; i < 500; i++) all += new Array(20_000).fill(i).length; return all",
            "10000000",
        ),
        (
            "let all = 0; for (let i = 0; i < 100; i++) all += new Uint8Array(1_000_000).length; return all",
            "100000000",
        ),
        (
            "const keys = (o, i) => ({ ...o, ['k' + i]: i }); \
             return Object.keys(Array.from({ length: 1_500 }, (_, i) => i).reduce(keys, {})).length",
            "1500",
        ),
    ] {
        let bounds = GuestBounds {
            cpu_ms_max: 20_000,
            ..BOUNDS
        };
        assert_eq!(
            drive(&start(script), bounds, echo).value(),
            value,
            "{script}"
        );
    }
}
