//! How the guest is linked, which the host has to know.

/// The shadow stack at the beginning of the guest's memory. It ends a little behind a boundary of
/// two mebibytes: so what a run writes of it lies under the same table of pages as the data behind
/// it, and the kernel has one table fewer to go through when it looks for what was written.
pub const SHADOW_STACK_BYTES: usize = 4 * 1024 * 1024 + 64 * 1024;
