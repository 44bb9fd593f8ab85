//! The exceptions, each with its reason. One that nothing needs is a finding.

use std::fmt;

use super::{Finding, Rule};

#[derive(Debug, Clone, Copy)]
pub(super) struct Exception {
    rule: Rule,
    path: &'static str,
    /// Read by whoever reviews this list.
    reason: &'static str,
}

const EXCEPTIONS: &[Exception] = &[
    Exception {
        rule: Rule::Unsafe,
        path: "sandbox-guest/boa/src/changed/room.rs",
        reason: "a text is written behind the part that anybody reads, for which texts have no safe form",
    },
    Exception {
        rule: Rule::Unsafe,
        path: "sandbox-guest/boa/src/moving/turn.rs",
        reason: "items of an array change places within the engine's list of them, which has no other door",
    },
    Exception {
        rule: Rule::Unsafe,
        path: "sandbox-guest/boa/src/border.rs",
        reason: "symbols that a host can call have no safe form",
    },
    Exception {
        rule: Rule::Unsafe,
        path: "sandbox-guest/boa/src/heap.rs",
        reason: "an allocator has no safe form",
    },
    Exception {
        rule: Rule::Unsafe,
        path: "sandbox-guest/checker/src/lib.rs",
        reason: "symbols that a host can call have no safe form",
    },
    Exception {
        rule: Rule::Unsafe,
        path: "sandbox-guest/common/src/frames.rs",
        reason: "frames cross the guest's border as addresses and lengths",
    },
    Exception {
        rule: Rule::Unsafe,
        path: "sandbox-guest/common/src/plan.rs",
        reason: "the list of blocks is memory that the factory reads",
    },
    Exception {
        rule: Rule::Unsafe,
        path: "sandbox-guest/factory/src/main.rs",
        reason: "naming the processor features that an image may use has no safe form",
    },
    Exception {
        rule: Rule::Unsafe,
        path: "sandbox-guest/image/src/lib.rs",
        reason: "naming the link section that carries the images is unsafe",
    },
    Exception {
        rule: Rule::Unsafe,
        path: "sandbox-guest/quickjs/src/border.rs",
        reason: "symbols that a host can call have no safe form",
    },
    Exception {
        rule: Rule::Unsafe,
        path: "sandbox-guest/quickjs/src/heap.rs",
        reason: "an allocator has no safe form",
    },
    Exception {
        rule: Rule::Unsafe,
        path: "sandbox-guest/quickjs/src/heap/global.rs",
        reason: "an allocator has no safe form, nor have the C library's names for it",
    },
    Exception {
        rule: Rule::Unsafe,
        path: "sandbox-guest/quickjs/src/raw.rs",
        reason: "the engine is C, and some of what it can do has no safe form in its binding",
    },
    Exception {
        rule: Rule::Unsafe,
        path: "sandbox-guest/quickjs-image/src/lib.rs",
        reason: "naming the link section that carries the image is unsafe",
    },
    Exception {
        rule: Rule::Unsafe,
        path: "broker/src/sandbox/image.rs",
        reason: "compiled code can be trusted and not checked, and runs where it lies",
    },
    Exception {
        rule: Rule::Unsafe,
        path: "broker/src/sandbox/large_pages.rs",
        reason: "which pages lie behind a memory is up to the kernel, and is asked below the language",
    },
    Exception {
        rule: Rule::Unsafe,
        path: "broker/src/resident.rs",
        reason: "the C library returns freed memory to the system through a function of its own",
    },
    Exception {
        rule: Rule::Unsafe,
        path: "broker/src/sandbox/pool.rs",
        reason: "pages of a free slot of the pool are returned below the language's model of memory",
    },
    Exception {
        rule: Rule::Unsafe,
        path: "broker/src/sandbox/single_pages.rs",
        reason: "how pages come is asked of the kernel by an interface that has no safe form",
    },
    Exception {
        rule: Rule::Unsafe,
        path: "broker/src/sandbox/shadow_stack.rs",
        reason: "pages are given back below the language's model of memory",
    },
    Exception {
        rule: Rule::Unsafe,
        path: "tests/src/vitals.rs",
        reason: "what is freed is given back to the system by a function of the C library",
    },
    Exception {
        rule: Rule::Unsafe,
        path: "tests/tests/artefact.rs",
        reason: "the test loads the compiled guest that the binary ships",
    },
];

pub(super) fn excepts(finding: &Finding) -> bool {
    EXCEPTIONS.iter().any(|exception| exception.covers(finding))
}

pub(super) fn unused(findings: &[Finding]) -> Vec<Exception> {
    let is_unused =
        |exception: &&Exception| !findings.iter().any(|finding| exception.covers(finding));
    EXCEPTIONS.iter().filter(is_unused).copied().collect()
}

impl Exception {
    fn covers(&self, finding: &Finding) -> bool {
        self.rule == finding.rule && self.path == finding.path
    }
}

impl fmt::Display for Exception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the exception from {:?} for {} ({})",
            self.rule, self.path, self.reason
        )
    }
}
