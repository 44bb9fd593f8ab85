//! Releases the shadow stack of a guest that waits. Parsing a script uses much of the shadow stack,
//! and a thousand waiting guests would keep that memory without using it.

/// Restores the guest's shadow stack to its state before the guest ran. Must be called only while
/// none of the guest's functions runs.
#[cfg(target_os = "linux")]
pub(super) fn release(memory: &mut [u8], stack_bytes: usize) {
    use rustix::mm::{Advice, madvise};

    let Some(stack) = memory.get_mut(..stack_bytes) else {
        return;
    };
    // SAFETY: the range is inside the guest's memory, which is mapped privately and begins at a
    // page boundary. It stays mapped and readable: its pages read as in the image, or as zeros. No
    // reference into it exists. The guest uses nothing below its stack pointer, which is at the end
    // of the range.
    #[expect(unsafe_code, reason = "the kernel changes memory that Rust owns")]
    let released = unsafe {
        madvise(
            stack.as_mut_ptr().cast(),
            stack.len(),
            Advice::LinuxDontNeed,
        )
    };
    // If the kernel refuses, the pages stay resident, and the guest does not notice.
    let _ = released;
}

#[cfg(not(target_os = "linux"))]
pub(super) fn release(_memory: &mut [u8], _stack_bytes: usize) {}
