//! Link settings of the guest that the host needs to know.

/// Size of the shadow stack at the beginning of the guest's memory. The stack ends a little after a
/// two-mebibyte boundary. So the part that a run writes shares a page table with the data after the
/// stack, and the kernel has one table fewer to search for written pages.
pub const SHADOW_STACK_BYTES: usize = 4 * 1024 * 1024 + 64 * 1024;
