//! Returns unused memory of this process to the system, and reads how much is resident.

/// Returns the resident memory of this process in bytes, or `None` if the system does not report
/// it.
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
    /// `malloc_trim` takes only a number. It may be called at any time and from any thread.
    safe fn malloc_trim(pad: usize) -> std::ffi::c_int;
}

/// Makes the allocator return its freed memory. It scans all of that memory: if many threads freed
/// a gigabyte together, this takes some milliseconds.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn return_freed() {
    let _ = malloc_trim(0);
}

/// Does nothing: other allocators return freed memory by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn return_freed() {}
