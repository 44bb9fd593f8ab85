//! The exceptions, each with its reason. An exception without a finding is itself a finding.

use std::fmt;

use super::{Finding, Rule};

#[derive(Debug, Clone, Copy)]
pub(super) struct Exception {
    rule: Rule,
    path: &'static str,
    /// The reason, for reviewers of this list.
    reason: &'static str,
}

const EXCEPTIONS: &[Exception] = &[
    Exception {
        rule: Rule::Unsafe,
        path: "sandbox-guest/boa/src/rope.rs",
        reason: "appends to a string's buffer, for which Rust strings have no safe form",
    },
    Exception {
        rule: Rule::Unsafe,
        path: "sandbox-guest/boa/src/splice/turn.rs",
        reason: "moves items within the engine's array storage, which has no safe access",
    },
    Exception {
        rule: Rule::Unsafe,
        path: "sandbox-guest/boa/src/abi.rs",
        reason: "exports functions to the host, which needs an unsafe attribute",
    },
    Exception {
        rule: Rule::Unsafe,
        path: "sandbox-guest/boa/src/heap.rs",
        reason: "implements a memory allocator, which has no safe form",
    },
    Exception {
        rule: Rule::Unsafe,
        path: "sandbox-guest/checker/src/lib.rs",
        reason: "exports functions to the host, which needs an unsafe attribute",
    },
    Exception {
        rule: Rule::Unsafe,
        path: "sandbox-guest/common/src/frames.rs",
        reason: "exchanges frames with the host as addresses and lengths",
    },
    Exception {
        rule: Rule::Unsafe,
        path: "sandbox-guest/common/src/plan.rs",
        reason: "exports a list of memory blocks that the image builder reads",
    },
    Exception {
        rule: Rule::Unsafe,
        path: "sandbox-guest/image-builder/src/main.rs",
        reason: "selects the processor features of an image, which has no safe form",
    },
    Exception {
        rule: Rule::Unsafe,
        path: "sandbox-guest/image/src/lib.rs",
        reason: "names the link section of the images, which needs an unsafe attribute",
    },
    Exception {
        rule: Rule::Unsafe,
        path: "sandbox-guest/quickjs/src/abi.rs",
        reason: "exports functions to the host, which needs an unsafe attribute",
    },
    Exception {
        rule: Rule::Unsafe,
        path: "sandbox-guest/quickjs/src/heap.rs",
        reason: "implements a memory allocator, which has no safe form",
    },
    Exception {
        rule: Rule::Unsafe,
        path: "sandbox-guest/quickjs/src/heap/global.rs",
        reason: "registers the allocator for Rust and C, which has no safe form",
    },
    Exception {
        rule: Rule::Unsafe,
        path: "sandbox-guest/quickjs/src/raw.rs",
        reason: "calls functions of the C engine for which its binding has no safe form",
    },
    Exception {
        rule: Rule::Unsafe,
        path: "sandbox-guest/quickjs-image/src/lib.rs",
        reason: "names the link section of the image, which needs an unsafe attribute",
    },
    Exception {
        rule: Rule::Unsafe,
        path: "broker/sandbox/src/image.rs",
        reason: "loads compiled code, which can be trusted but not checked, and makes it executable",
    },
    Exception {
        rule: Rule::Unsafe,
        path: "broker/sandbox/src/large_pages.rs",
        reason: "requests large pages by `madvise`, which has no safe form",
    },
    Exception {
        rule: Rule::Unsafe,
        path: "broker/src/resident.rs",
        reason: "calls `malloc_trim`, a function of the C library",
    },
    Exception {
        rule: Rule::Unsafe,
        path: "broker/sandbox/src/thread_priority.rs",
        reason: "tells the kernel how long a thread runs at a time, which has no safe form",
    },
    Exception {
        rule: Rule::Unsafe,
        path: "broker/sandbox/src/pool.rs",
        reason: "returns the pages of free memories by `madvise`, which has no safe form",
    },
    Exception {
        rule: Rule::Unsafe,
        path: "broker/sandbox/src/single_pages.rs",
        reason: "registers memory by `userfaultfd`, which has no safe form",
    },
    Exception {
        rule: Rule::Unsafe,
        path: "broker/sandbox/src/shadow_stack.rs",
        reason: "returns the pages of the shadow stack by `madvise`, which has no safe form",
    },
    Exception {
        rule: Rule::Unsafe,
        path: "tests/src/vitals.rs",
        reason: "calls `malloc_trim`, a function of the C library",
    },
    Exception {
        rule: Rule::Unsafe,
        path: "tests/tests/artefact.rs",
        reason: "loads the compiled guest from the binary",
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
