//! Giving back the shadow stack of a guest that waits: parsing a script needs
//! much of it, and a thousand guests that wait would hold it for nothing.

/// Makes the guest's shadow stack what it was before the guest ran. To be called
/// only while none of the guest's functions runs.
#[cfg(target_os = "linux")]
pub(super) fn release(memory: &mut [u8], stack_bytes: usize) {
    use rustix::mm::{Advice, madvise};

    let Some(stack) = memory.get_mut(..stack_bytes) else {
        return;
    };
    // SAFETY: the range is inside the guest's memory, which is mapped privately and
    // begins at a page's boundary. It stays mapped and readable: its pages read as the
    // image has them, or as zeros. Nobody holds a reference into it, and to the guest
    // everything below its stack pointer is dead, which is all of it.
    #[expect(unsafe_code, reason = "what is mapped there changes without a write")]
    let released = unsafe {
        madvise(
            stack.as_mut_ptr().cast(),
            stack.len(),
            Advice::LinuxDontNeed,
        )
    };
    // A kernel that refuses keeps the pages, and the guest is none the wiser.
    let _ = released;
}

#[cfg(not(target_os = "linux"))]
pub(super) fn release(_memory: &mut [u8], _stack_bytes: usize) {}
