//! Tests that the host survives when memory runs out, at blocks of every size and at every kind of
//! allocation in a script. The next run must be correct.

use airlock_core::effect::GuestStop;
use airlock_core::limits::Limit;
use airlock_sandbox::GuestBounds;

use crate::harness::{BOUNDS, RunEnd, drive, echo, run, start};

/// The memory of a guest in addition to that of a trivial run. Most of it is taken by the ballast.
const ROOM_BYTES: u64 = 4 * 1024 * 1024;
const BALLAST: &str = "const ballast = new Uint8Array(2.5 * 1024 * 1024); let kept;";

/// The largest small block of both guests' allocators, and the largest step between their sizes.
const SMALL_BYTES_MAX: usize = 1_056;
const CLASS_BYTES: usize = 8;

/// Expressions whose values take about `BYTES` bytes.
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
        RunEnd::Stopped(GuestStop::Limit {
            limit: Limit::Memory,
            ..
        }) => {}
        other => panic!("{script}: {other:?}"),
    }
    assert_eq!(run("return [1, 2].map((n) => n * 2)").value(), "[2,4]");
}

/// Returns a script that allocates values until memory runs out, and catches every error.
fn keeping(made: &str, bytes: usize) -> String {
    let made = made.replace("BYTES", &bytes.to_string());
    format!(
        "{BALLAST} for (let at = 0; ; at++) {{ try {{ kept = {{ made: {made}, kept }} }} catch {{}} }}"
    )
}

#[test]
fn out_of_memory_at_any_small_block_ends_as_limit() {
    let bounds = bounds();
    for bytes in (0..=SMALL_BYTES_MAX).step_by(CLASS_BYTES) {
        starve(&keeping("'x'.repeat(BYTES) + at", bytes), bounds);
    }
}

#[test]
fn out_of_memory_at_large_block_ends_as_limit() {
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

/// Each script has another amount of memory left, so it runs out at another allocation.
#[test]
fn out_of_memory_anywhere_in_script_ends_as_limit() {
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

#[test]
fn freed_memory_is_reused() {
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
