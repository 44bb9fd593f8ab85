//! Returns unused memory of this process to the system, and reads how much is resident.

/// What is in memory of this process; none where the system does not say.
pub(crate) fn bytes() -> Option<u64> {
    let told = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = told.split_ascii_whitespace().nth(1)?.parse().ok()?;
    pages.checked_mul(rustix::param::page_size() as u64)
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(
    unsafe_code,
    reason = "a function of the C library without a safe form"
)]
unsafe extern "C" {
    /// It takes a number, and may be called at any time and from any thread.
    safe fn malloc_trim(pad: usize) -> std::ffi::c_int;
}

/// Has the allocator return what it keeps of freed memory. It looks through all of it: many
/// threads that freed a gigabyte between them take some milliseconds.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn return_freed() {
    let _ = malloc_trim(0);
}

/// Other allocators return it by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn return_freed() {}
