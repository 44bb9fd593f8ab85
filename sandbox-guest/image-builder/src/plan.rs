//! Finds the blocks of an image that runs write, so that the guest can place them side by side; the
//! guest's own `plan` module describes this.

use std::collections::BTreeSet;

use sandbox_protocol::codec::{FRAME_BYTES_MAX, decode_step, encode_resume, encode_start};
use sandbox_protocol::{
    CallOutcome, GuestLimits, Outcome, Resume, ServerStubs, Start, Step, ToolStub,
};
use wasmtime::{Instance, Memory, Module, Result, Store, TypedFunc, bail};

use crate::callees::Callees;
use crate::marking::{CALLED, PLACES_MAX, WORD_BYTES, WORDS_MAX, WRITTEN};

/// The maximum number of blocks in a plan, and the offsets of the plan's words, as in the guest.
const BLOCKS_MAX: usize = 256 * 1024;
const MADE_AT: usize = 0;
const LIST_AT: usize = 4;
const WRITTEN_AT: usize = 8;
const BY_ALL_AT: usize = WRITTEN_AT + BLOCKS_MAX / 8;

const PAGE_BYTES: usize = 64 * 1024;
const ENTRY_BYTES: usize = 8;

/// Typical actions of scripts, one per script. All their calls get the same result.
const RUNS: [&str; 6] = [
    include_str!("../runs/call.js"),
    include_str!("../runs/loop.js"),
    include_str!("../runs/together.js"),
    include_str!("../runs/text.js"),
    include_str!("../runs/caught.js"),
    include_str!("../runs/module.js"),
];
const RESULT: &str =
    r#"{"items":[{"id":1,"name":"a","open":true},{"id":2,"name":"b"}],"next":null}"#;

/// The numbers of the blocks that runs write, and the number of allocated blocks.
pub(crate) struct Plan {
    written: BTreeSet<usize>,
    /// Blocks that every run writes.
    by_all: BTreeSet<usize>,
    made: u32,
    pub(crate) callees: Callees,
}

impl Plan {
    /// Runs the scripts, each in a new guest.
    pub(crate) fn find(module: &Module) -> Result<Self> {
        let mut plan = Self {
            written: BTreeSet::new(),
            by_all: BTreeSet::new(),
            made: 0,
            callees: Callees::default(),
        };
        for (number, script) in RUNS.iter().enumerate() {
            let written = plan.watch(module, script)?;
            match number {
                0 => plan.by_all = written.clone(),
                _ => plan.by_all.retain(|block| written.contains(block)),
            }
            plan.written.extend(written);
        }
        Ok(plan)
    }

    /// Writes the plan into a guest that is not yet initialised.
    pub(crate) fn tell(&self, guest: &mut FreshGuest) -> Result<()> {
        let plan = guest.plan()?;
        for (at, blocks) in [(WRITTEN_AT, &self.written), (BY_ALL_AT, &self.by_all)] {
            let mut bits = vec![0_u8; BLOCKS_MAX / 8];
            for number in blocks {
                if let Some(byte) = bits.get_mut(number / 8) {
                    *byte |= 1 << (number % 8);
                }
            }
            guest.memory.write(&mut guest.store, plan + at, &bits)?;
        }
        Ok(())
    }

    /// Checks that a guest allocated the same number of blocks as in the first build; otherwise the
    /// plan would not match.
    pub(crate) fn check(&self, guest: &mut FreshGuest) -> Result<()> {
        let made = guest.word(MADE_AT)?;
        if made != self.made {
            bail!(
                "the guest allocated {made} blocks, but {} in the first build",
                self.made
            );
        }
        Ok(())
    }

    /// Returns the blocks that a run writes.
    fn watch(&mut self, module: &Module, script: &str) -> Result<BTreeSet<usize>> {
        let mut guest = FreshGuest::new(module)?;
        let list = guest.keep_list()?;
        guest.init()?;
        self.made = guest.word(MADE_AT)?;
        let entries = guest.entries(list, self.made)?;
        guest.forget_marks()?;
        let mut step = guest.start(script)?;
        let mut now_ms = 1_000;
        while !step.calls.is_empty() {
            now_ms += 10;
            step = guest.answer(&step, now_ms)?;
        }
        self.callees.note(guest.called.data(&guest.store));
        Ok(written_blocks(&entries, guest.written.data(&guest.store)))
    }
}

/// A block of an image: its address, its number, and its length.
type Entry = (usize, usize, usize);

/// Returns the block number of every marked word.
fn written_blocks(blocks: &[Entry], marks: &[u8]) -> BTreeSet<usize> {
    let mut written = BTreeSet::new();
    for (index, mark) in marks.iter().enumerate() {
        if *mark == 0 {
            continue;
        }
        let at = index * WORD_BYTES;
        // If several blocks started at one address, the last one is still in use.
        let next = blocks.partition_point(|block| block.0 <= at);
        let block = next.checked_sub(1).and_then(|last| blocks.get(last));
        if let Some(&(start, number, bytes)) = block
            && at < start + bytes.next_multiple_of(8)
        {
            written.insert(number);
        }
    }
    written
}

fn word(bytes: &[u8; WORD_BYTES]) -> usize {
    u32::from_le_bytes(*bytes) as usize
}

/// A guest before and after its initialisation.
pub(crate) struct FreshGuest {
    pub(crate) store: Store<()>,
    pub(crate) instance: Instance,
    memory: Memory,
    /// The memory of marks; see the `marking` module.
    called: Memory,
    written: Memory,
}

impl FreshGuest {
    pub(crate) fn new(module: &Module) -> Result<Self> {
        let mut store = Store::new(module.engine(), ());
        let instance = Instance::new(&mut store, module, &[])?;
        let Some(memory) = instance.get_memory(&mut store, "memory") else {
            bail!("the guest exports no memory");
        };
        let marks = [CALLED, WRITTEN].map(|name| instance.get_memory(&mut store, name));
        let [Some(called), Some(written)] = marks else {
            bail!("the guest has no memory for marks");
        };
        Ok(Self {
            store,
            instance,
            memory,
            called,
            written,
        })
    }

    /// Runs the initialisation. An error contains the message that the guest left.
    pub(crate) fn init(&mut self) -> Result<()> {
        let done = self
            .function::<(), ()>("init")
            .and_then(|init| init.call(&mut self.store, ()));
        done.map_err(|error| {
            let told = self.told().unwrap_or_default();
            error.context(told)
        })
    }

    /// Returns the message that the guest left; the `panic_message` module of `guest-common`
    /// describes its layout.
    fn told(&mut self) -> Option<String> {
        let landmark = self.function::<(), u32>("landmark").ok()?;
        let address = usize::try_from(landmark.call(&mut self.store, ()).ok()?).ok()?;
        let memory = self.memory.data(&self.store);
        let length = word(memory.get(address + 8..)?.first_chunk::<4>()?);
        let text = memory.get(address + 12..)?.get(..length)?;
        Some(String::from_utf8_lossy(text).into_owned())
    }

    fn function<P: wasmtime::WasmParams, R: wasmtime::WasmResults>(
        &mut self,
        name: &str,
    ) -> Result<TypedFunc<P, R>> {
        self.instance.get_typed_func(&mut self.store, name)
    }

    fn plan(&mut self) -> Result<usize> {
        let plan = self.function::<(), u32>("plan")?;
        Ok(plan.call(&mut self.store, ())? as usize)
    }

    fn word(&mut self, at: usize) -> Result<u32> {
        let at = self.plan()? + at;
        let mut bytes = [0; WORD_BYTES];
        self.memory.read(&self.store, at, &mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    /// Makes room for a list of all blocks and returns its address.
    fn keep_list(&mut self) -> Result<usize> {
        let pages = (BLOCKS_MAX * ENTRY_BYTES).div_ceil(PAGE_BYTES);
        let list = self.memory.grow(&mut self.store, pages as u64)? as usize * PAGE_BYTES;
        let at = self.plan()? + LIST_AT;
        let address = u32::try_from(list)?.to_le_bytes();
        self.memory.write(&mut self.store, at, &address)?;
        Ok(list)
    }

    /// Returns the allocated blocks, by address.
    fn entries(&mut self, list: usize, made: u32) -> Result<Vec<Entry>> {
        let made = (made as usize).min(BLOCKS_MAX);
        let mut bytes = vec![0; made * ENTRY_BYTES];
        self.memory.read(&self.store, list, &mut bytes)?;
        let words = bytes.as_chunks::<WORD_BYTES>().0;
        let mut entries: Vec<Entry> = words
            .as_chunks::<2>()
            .0
            .iter()
            .enumerate()
            .map(|(number, [at, bytes])| (word(at), number, word(bytes)))
            .collect();
        entries.sort_unstable();
        Ok(entries)
    }

    /// Clears the marks, so that only later writes are recorded.
    fn forget_marks(&mut self) -> Result<()> {
        self.called.write(&mut self.store, 0, &[0; PLACES_MAX])?;
        self.written
            .write(&mut self.store, 0, &vec![0; WORDS_MAX])?;
        Ok(())
    }

    fn start(&mut self, script: &str) -> Result<Step> {
        let stub = |name: &str| ToolStub {
            member: name.to_owned(),
            flat: format!("files_{name}"),
            short: String::new(),
            order: Vec::new(),
            hidden: false,
        };
        let start = Start {
            script: script.to_owned(),
            script_name: "script.js".to_owned(),
            stubs: vec![ServerStubs {
                name: "files".to_owned(),
                tools: ["list", "read", "write", "move"].map(stub).to_vec(),
            }],
            input: b"{}".to_vec(),
            seed: 1,
            now_ms: 1_000,
            limits: GuestLimits {
                console_bytes_max: 256 * 1024,
                console_flood_bytes_max: 16 * 1024 * 1024,
                args_bytes_max: 4 * 1024 * 1024,
                value_bytes_max: 4 * 1024 * 1024,
                json_depth_max: 128,
                recursion_max: 500,
            },
        };
        self.turn(&encode_start(&start)?, "start")
    }

    fn answer(&mut self, step: &Step, now_ms: u64) -> Result<Step> {
        let outcomes = step.calls.iter().map(|call| CallOutcome {
            ticket: call.ticket,
            outcome: Outcome::Value(RESULT.as_bytes().to_vec()),
        });
        let resume = Resume {
            now_ms,
            outcomes: outcomes.collect(),
        };
        self.turn(&encode_resume(&resume)?, "resume")
    }

    fn turn(&mut self, frame: &[u8], name: &str) -> Result<Step> {
        let alloc = self.function::<u32, u32>("alloc")?;
        let run = self.function::<(), u64>(name)?;
        let at = alloc.call(&mut self.store, u32::try_from(frame.len())?)? as usize;
        self.memory.write(&mut self.store, at, frame)?;
        let answer = run.call(&mut self.store, ())?;
        let (at, bytes) = ((answer >> 32) as usize, answer as u32 as usize);
        let mut frame = vec![0; bytes.min(FRAME_BYTES_MAX)];
        self.memory.read(&self.store, at, &mut frame)?;
        Ok(decode_step(&frame)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_of_the_last_block_that_was_made_around_it() {
        // By address: block 0 was freed, block 2 has its address, and block 1 ends before the
        // fourth word.
        let blocks = [(0, 1, 10), (16, 0, 16), (16, 2, 8)];
        let written = |words: &[usize]| {
            let marks: Vec<u8> = (0..12).map(|at| u8::from(words.contains(&at))).collect();
            Vec::from_iter(written_blocks(&blocks, &marks))
        };
        assert_eq!(written(&[]), [] as [usize; 0]);
        assert_eq!(written(&[2, 3]), [1]);
        assert_eq!(written(&[0, 4]), [1, 2]);
        assert_eq!(written(&[6, 11]), [] as [usize; 0]);
    }
}
