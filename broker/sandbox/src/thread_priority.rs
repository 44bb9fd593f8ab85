//! Controls how soon the system lets a thread run. Threads that answer requests, and threads of
//! short runs, interrupt the threads of long runs.
//!
//! Each thread of Linux may state how long it wants to run at a time. From Linux 6.12 on, a
//! thread that wakes up interrupts a thread with a longer time at once. Without this, the
//! thread waits some milliseconds, until the time of the other thread is used up. Nice values
//! would have a lasting effect, since a thread cannot raise its priority again, and a thread of
//! low priority can hold a lock of the kernel for long.

#[cfg(target_os = "linux")]
pub use linux::{give_way, run_soon};

/// Does nothing: this system has no such setting.
#[cfg(not(target_os = "linux"))]
pub fn run_soon() {}

/// Does nothing: this system has no such setting.
#[cfg(not(target_os = "linux"))]
pub fn give_way() {}

#[cfg(target_os = "linux")]
mod linux {
    use std::cell::Cell;

    const SHORT_NS: u64 = 500_000;

    /// The time that the system chooses.
    const USUAL: u64 = 0;

    thread_local! {
        static RUNS_SOON: Cell<bool> = const { Cell::new(false) };
    }

    /// The settings of a thread, as the kernel reads them.
    #[repr(C)]
    struct Attributes {
        size: u32,
        policy: u32,
        flags: u64,
        nice: i32,
        priority: u32,
        runtime_ns: u64,
        deadline_ns: u64,
        period_ns: u64,
    }

    /// Lets this thread, and threads that it starts later, interrupt threads that give way.
    pub fn run_soon() {
        if !RUNS_SOON.replace(true) {
            set(SHORT_NS);
        }
    }

    /// Lets other threads interrupt this thread.
    pub fn give_way() {
        if RUNS_SOON.replace(false) {
            set(USUAL);
        }
    }

    /// Sets the time of this thread. If the kernel refuses, nothing changes.
    fn set(runtime_ns: u64) {
        let attributes = Attributes {
            size: size_of::<Attributes>() as u32,
            policy: libc::SCHED_OTHER as u32,
            flags: 0,
            // On Linux, this is the value of the calling thread.
            nice: rustix::process::getpriority_process(None).unwrap_or(0),
            priority: 0,
            runtime_ns,
            deadline_ns: 0,
            period_ns: 0,
        };
        let (this_thread, no_flags) = (0, 0);
        #[expect(unsafe_code, reason = "the standard library has no such system call")]
        // SAFETY: the kernel only reads the attributes, which have the size that they state.
        unsafe {
            libc::syscall(
                libc::SYS_sched_setattr,
                this_thread,
                &raw const attributes,
                no_flags,
            );
        }
    }
}
