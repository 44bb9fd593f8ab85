//! Alters journals in many ways. With the signed heads and the public key, every alteration is
//! found. Without them, two kinds of alterations are not found, as docs/journal.md explains:
//! alterations after which the chain and the digests were recomputed, and alterations of the last
//! line that contradict nothing.
//!
//! `AIRLOCK_ALTERED=5000` sets the number of alterations.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use airlock::core::id::Digest;
use codegen::canonical;
use serde_json::{Value, json};
use tests::command::Home;

use crate::demo;

const ALTERATIONS: usize = 500;

/// A small random number generator (xorshift) with a fixed seed, so that each run alters the same
/// places.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % end as u64).unwrap()
    }
}

/// A journal as it was written.
struct Original {
    run: String,
    text: String,
}

impl Original {
    fn lines(&self) -> Vec<String> {
        self.text.lines().map(str::to_owned).collect()
    }
}

/// The input of one alteration: the original, another journal, and random numbers for the place.
struct AlterationInput<'a> {
    own: &'a Original,
    other: &'a Original,
    numbers: &'a mut Numbers,
}

type Alter = fn(&mut AlterationInput<'_>) -> Vec<u8>;

/// The kinds of alterations. The flag says whether the chain and the digests are recomputed
/// afterwards.
const KINDS: [(&str, bool, Alter); 22] = [
    ("digit changed", false, |it| {
        it.byte(
            |b| b.is_ascii_digit(),
            |b| b"0123456789"[usize::from(b - b'0' + 1) % 10],
        )
    }),
    ("letter changed", false, |it| {
        it.byte(
            |b| b.is_ascii_lowercase(),
            |b| if b == b'z' { b'a' } else { b + 1 },
        )
    }),
    ("case changed", false, |it| {
        it.byte(|b| b.is_ascii_alphabetic(), |b| b ^ 0x20)
    }),
    ("punctuation changed", false, |it| {
        it.byte(
            |b| b.is_ascii_punctuation(),
            |b| if b == b'.' { b',' } else { b'.' },
        )
    }),
    ("bit flipped", false, |it| it.byte(|_| true, |b| b ^ 1)),
    ("byte made invalid", false, |it| it.byte(|_| true, |_| 0xff)),
    ("byte made zero", false, |it| it.byte(|_| true, |_| 0)),
    ("byte removed", false, |it| {
        let mut bytes = it.bytes();
        let at = it.numbers.below(bytes.len());
        bytes.remove(at);
        bytes
    }),
    ("byte inserted", false, |it| {
        let mut bytes = it.bytes();
        let at = it.numbers.below(bytes.len() + 1);
        bytes.insert(at, b" 1a\n"[at % 4]);
        bytes
    }),
    ("bytes swapped", false, |it| {
        let mut bytes = it.bytes();
        let at = it.numbers.below(bytes.len() - 1);
        if bytes[at] == bytes[at + 1] {
            bytes[at] ^= 1
        }
        bytes.swap(at, at + 1);
        bytes
    }),
    ("line dropped", false, |it| {
        it.lines(|lines, numbers| {
            lines.remove(numbers.below(lines.len()));
        })
    }),
    ("line repeated", false, |it| {
        it.lines(|lines, numbers| {
            let at = numbers.below(lines.len());
            lines.insert(at, lines[at].clone());
        })
    }),
    ("lines swapped", false, |it| {
        it.lines(|lines, numbers| {
            let at = numbers.below(lines.len() - 1);
            lines.swap(at, at + 1);
        })
    }),
    ("cut at a byte", false, |it| {
        let mut bytes = it.bytes();
        bytes.truncate(it.numbers.below(bytes.len()));
        bytes
    }),
    ("cut at a line", false, |it| {
        it.lines(|lines, numbers| lines.truncate(numbers.below(lines.len())))
    }),
    ("spliced with another journal", false, |it| {
        let other = it.other.lines();
        it.lines(|lines, numbers| {
            let at = 1 + numbers.below(lines.len().min(other.len()) - 1);
            lines.splice(at.., other[at..].iter().cloned());
        })
    }),
    ("another journal", false, |it| {
        it.other.text.clone().into_bytes()
    }),
    ("last line changed", false, |it| {
        it.lines(|lines, numbers| {
            let last = lines.pop().unwrap();
            lines.push(last.replacen(
                "\"wall_ms\":",
                &format!("\"wall_ms\":{}", 1 + numbers.below(9)),
                1,
            ));
        })
    }),
    ("time changed, chain recomputed", true, |it| {
        it.entries(|entries, numbers| {
            let at = numbers.below(entries.len());
            entries[at]["at_ms"] = json!(numbers.below(1_000_000));
        })
    }),
    ("script changed, chain recomputed", true, |it| {
        it.entries(|entries, numbers| {
            content(
                &mut entries[0],
                "script",
                json!(format!("return {}", numbers.below(1_000_000))),
            )
        })
    }),
    ("arguments changed, chain recomputed", true, |it| {
        it.entries(|entries, numbers| {
            let at = of_kind(entries, "decided", numbers);
            content(
                &mut entries[at],
                "args",
                json!({"a": numbers.below(1_000_000)}),
            );
        })
    }),
    ("result changed, chain recomputed", true, |it| {
        it.entries(|entries, numbers| {
            let at = of_kind(entries, "settled", numbers);
            content(
                &mut entries[at],
                "payload",
                json!(format!("[{}]", numbers.below(1_000_000))),
            );
        })
    }),
];

impl AlterationInput<'_> {
    fn bytes(&self) -> Vec<u8> {
        self.own.text.clone().into_bytes()
    }

    /// Changes one random byte that belongs to this class.
    fn byte(&mut self, class: impl Fn(u8) -> bool, change: impl Fn(u8) -> u8) -> Vec<u8> {
        let mut bytes = self.bytes();
        let places: Vec<usize> = (0..bytes.len()).filter(|at| class(bytes[*at])).collect();
        let at = places[self.numbers.below(places.len())];
        bytes[at] = change(bytes[at]);
        bytes
    }

    fn lines(&mut self, change: impl FnOnce(&mut Vec<String>, &mut Numbers)) -> Vec<u8> {
        let mut lines = self.own.lines();
        change(&mut lines, self.numbers);
        lines
            .iter()
            .flat_map(|line| [line, "\n"])
            .collect::<String>()
            .into_bytes()
    }

    /// Changes entries, and computes the chain again.
    fn entries(&mut self, change: impl FnOnce(&mut Vec<Value>, &mut Numbers)) -> Vec<u8> {
        let lines = self.own.lines();
        let parse = |line: &String| serde_json::from_str(line).unwrap();
        let mut entries: Vec<Value> = lines.iter().map(parse).collect();
        change(&mut entries, self.numbers);
        let (mut bytes, mut prev) = (Vec::new(), Value::Null);
        for mut entry in entries {
            entry["prev"] = prev;
            let line = canonical::canonical(&entry);
            prev = json!(Digest::sha256(&line));
            bytes.extend(line);
            bytes.push(b'\n');
        }
        bytes
    }
}

/// Replaces content together with its digest and length.
fn content(entry: &mut Value, name: &str, new: Value) {
    let bytes = match &new {
        Value::String(text) => text.clone().into_bytes(),
        new => canonical::canonical(new),
    };
    entry[format!("{name}_digest")] = json!(Digest::sha256(&bytes));
    if name == "payload" {
        entry["payload_bytes"] = json!(bytes.len());
    }
    entry[name] = new;
}

fn of_kind(entries: &[Value], kind: &str, numbers: &mut Numbers) -> usize {
    let places: Vec<usize> = (0..entries.len())
        .filter(|at| entries[*at]["kind"] == kind)
        .collect();
    places[numbers.below(places.len())]
}

/// Runs some scripts, and returns their journals.
fn originals(home: &Home) -> Vec<Original> {
    let scripts = [
        "await demo.logs_services({}); return 1",
        "const all = []; for (const level of ['error', 'warn']) all.push(await demo.logs_query({ level })); return all.length",
        "await demo.logs_services({}); try { await demo.flaky_report({}) } catch {} return 'caught'",
        "await demo.logs_services({}); await demo.flaky_report({})",
    ];
    let run = |script: &&str| {
        let report = demo(home, script, &[]).json();
        let run = report["run"].as_str().unwrap().to_owned();
        let path = home.runs_dir().join(format!("{run}.jsonl"));
        let text = fs::read_to_string(path).unwrap();
        Original { run, text }
    };
    scripts.iter().map(run).collect()
}

/// How journals are verified: with the signed heads, or with an empty index.
struct Verifier {
    home: Home,
    key: String,
    index: PathBuf,
    nothing: PathBuf,
}

impl Verifier {
    fn code(&self, journal: &Path, index: &Path) -> i32 {
        let (journal, index) = (journal.to_str().unwrap(), index.to_str().unwrap());
        let args = [
            "runs", "verify", journal, "--key", &self.key, "--index", index,
        ];
        let ended = self.home.run(args);
        assert!(matches!(ended.code, Some(0 | 26 | 27 | 31)), "{ended}");
        ended.code.unwrap()
    }
}

/// The results for one kind: the number of alterations, how many were found with the key, and how
/// many counted as intact, incomplete or broken without the key.
#[derive(Default)]
struct Counts {
    all: usize,
    found: usize,
    intact: usize,
    incomplete: usize,
    broken: usize,
}

#[test]
fn altered_journals_are_found_with_key_and_documented_ones_pass_without() {
    let home = Home::new();
    let originals = originals(&home);
    let key = home.run(["runs", "key"]).expect_code(0).stdout;
    let verifier = Verifier {
        key: key.trim().to_owned(),
        index: home.path().join(".local/state/airlock/index.jsonl"),
        nothing: home.write("nothing", ""),
        home: Home::new(),
    };
    let number = std::env::var("AIRLOCK_ALTERED").ok();
    let number = number.map_or(ALTERATIONS, |it| {
        it.parse().expect("AIRLOCK_ALTERED is a number")
    });
    let numbers: Vec<usize> = (0..number).collect();
    let half = number.div_ceil(2);
    let counted = std::thread::scope(|scope| {
        let halves = numbers.chunks(half).enumerate();
        let threads: Vec<_> = halves
            .map(|(part, numbers)| {
                let (verifier, originals) = (&verifier, &originals);
                scope.spawn(move || alter(verifier, originals, part, numbers))
            })
            .collect();
        threads
            .into_iter()
            .map(|it| it.join().unwrap())
            .collect::<Vec<_>>()
    });
    let mut counts: BTreeMap<usize, Counts> = BTreeMap::new();
    for (kind, one) in counted.into_iter().flatten() {
        let sum = counts.entry(kind).or_default();
        sum.all += one.all;
        sum.found += one.found;
        sum.intact += one.intact;
        sum.incomplete += one.incomplete;
        sum.broken += one.broken;
    }
    println!(
        "{:38} {:>5} {:>9}   without: {:>6} {:>10} {:>6}",
        "alteration", "all", "with key", "intact", "incomplete", "broken"
    );
    for (kind, it) in &counts {
        println!(
            "{:38} {:>5} {:>9}            {:>6} {:>10} {:>6}",
            KINDS[*kind].0, it.all, it.found, it.intact, it.incomplete, it.broken
        );
    }
    assert_eq!(counts.values().map(|it| it.all).sum::<usize>(), number);
}

fn alter(
    verifier: &Verifier,
    originals: &[Original],
    part: usize,
    numbers: &[usize],
) -> BTreeMap<usize, Counts> {
    let mut counts: BTreeMap<usize, Counts> = BTreeMap::new();
    let mut random = Numbers(0x9e37_79b9_7f4a_7c15 ^ (part as u64 + 1));
    for number in numbers {
        let kind = number % KINDS.len();
        let (name, is_recomputed, change) = KINDS[kind];
        let own = &originals[random.below(originals.len())];
        let others: Vec<_> = originals.iter().filter(|it| it.run != own.run).collect();
        let other = others[random.below(others.len())];
        let altered = change(&mut AlterationInput {
            own,
            other,
            numbers: &mut random,
        });
        assert_ne!(altered, own.text.as_bytes(), "{name} changed nothing");
        let path = verifier
            .home
            .write(&format!("{part}/{}.jsonl", own.run), &altered);
        let shown = || format!("{name}:\n{}", String::from_utf8_lossy(&altered));
        assert_eq!(
            verifier.code(&path, &verifier.index),
            31,
            "with the key, {}",
            shown()
        );
        let without = verifier.code(&path, &verifier.nothing);
        let count = counts.entry(kind).or_default();
        count.all += 1;
        count.found += 1;
        match without {
            26 => count.incomplete += 1,
            27 => count.intact += 1,
            _ => count.broken += 1,
        }
        let is_documented = is_recomputed || changes_only_last_line(own, &altered);
        assert!(without != 27 || is_documented, "without a key, {}", shown());
        assert!(
            without == 27 || !is_recomputed,
            "the chain was not recomputed, {}",
            shown()
        );
    }
    counts
}

/// Whether all lines but the last are the original ones.
fn changes_only_last_line(own: &Original, altered: &[u8]) -> bool {
    let end = own.text.trim_end().rfind('\n').unwrap() + 1;
    altered.starts_with(&own.text.as_bytes()[..end])
}

/// An index that was changed, or written anew with another key, proves nothing.
#[test]
fn altered_index_is_found() {
    let home = Home::new();
    let originals = originals(&home);
    let key = home.run(["runs", "key"]).expect_code(0).stdout;
    let state = home.path().join(".local/state/airlock");
    let index = fs::read_to_string(state.join("index.jsonl")).unwrap();
    let verifier = Verifier {
        key: key.trim().to_owned(),
        index: home.path().join("index"),
        nothing: PathBuf::new(),
        home: Home::new(),
    };
    let path = home.runs_dir().join(format!("{}.jsonl", originals[1].run));
    let code = |index: &[u8]| {
        fs::write(&verifier.index, index).unwrap();
        verifier.code(&path, &verifier.index)
    };
    assert_eq!(code(index.as_bytes()), 0);
    let lines: Vec<&str> = index.lines().collect();
    let own = index.find(lines[1]).unwrap()..index.find(lines[2]).unwrap();
    for at in own.clone().step_by(3) {
        let mut bytes = index.clone().into_bytes();
        bytes[at] ^= 1;
        assert_eq!(code(&bytes), 31, "{}", String::from_utf8_lossy(&bytes));
    }
    let joined = |lines: &[&str]| format!("{}\n", lines.join("\n")).into_bytes();
    assert_eq!(code(&joined(&[lines[0], lines[2], lines[3]])), 31);
    assert_eq!(code(&joined(&[lines[0], lines[2], lines[1], lines[3]])), 31);
    assert_eq!(code(&joined(&[lines[0], lines[1], lines[1]])), 31);
    // Without the last lines of the index, their runs count as unsigned.
    assert_eq!(code(&joined(&lines[..1])), 27);
    // Another key signs the same run again.
    fs::remove_file(state.join("signing.key")).unwrap();
    fs::remove_file(state.join("index.jsonl")).unwrap();
    demo(&home, "return 1", &[]).expect_code(0);
    let forged = fs::read(state.join("index.jsonl")).unwrap();
    assert_eq!(code(&forged), 27);
}
