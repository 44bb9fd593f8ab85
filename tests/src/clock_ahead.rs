//! Lets a process see a later date. A small library that is loaded before libc adds the difference
//! to the wall clock; all waiting takes as long as before.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;

const SOURCE: &str = r"
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *time) {
  int failed = syscall(SYS_clock_gettime, clock, time);
  if (!failed && clock == CLOCK_REALTIME) time->tv_sec += 24 * 60 * 60;
  return failed;
}
";

/// Returns the library, for `LD_PRELOAD`. The linker of Rust programs compiles it.
#[must_use]
pub fn a_day() -> PathBuf {
    static LIBRARY: OnceLock<TempDir> = OnceLock::new();
    let folder = LIBRARY.get_or_init(|| {
        let folder = TempDir::with_prefix("airlock-clock-").expect("a temporary folder");
        let source = folder.path().join("clock.c");
        std::fs::write(&source, SOURCE).expect("a source file");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-o"]);
        compiler.arg(folder.path().join("clock.so")).arg(source);
        assert!(compiler.status().expect("a C compiler").success());
        folder
    });
    folder.path().join("clock.so")
}
