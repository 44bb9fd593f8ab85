//! Finds out how much memory this process can use.

use std::path::Path;

/// Returns the memory of the machine, or the limit of the process if that is lower.
pub(super) fn memory_bytes() -> Option<u64> {
    let whole = whole();
    let allowed = allowed();
    match (whole, allowed) {
        (Some(whole), Some(allowed)) => Some(whole.min(allowed)),
        (whole, allowed) => whole.or(allowed),
    }
}

fn whole() -> Option<u64> {
    let told = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kib = told.lines().find_map(|it| it.strip_prefix("MemTotal:"))?;
    let kib: u64 = kib.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Returns the lowest limit of the control groups that contain the process.
fn allowed() -> Option<u64> {
    let told = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = told.lines().find_map(|it| it.strip_prefix("0::/"))?;
    let root = Path::new("/sys/fs/cgroup");
    let groups = Path::new(group).ancestors().map(|it| root.join(it));
    let limits = groups.filter_map(|it| std::fs::read_to_string(it.join("memory.max")).ok());
    limits.filter_map(|it| it.trim().parse().ok()).min()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_some_memory() {
        let bytes = memory_bytes().unwrap();
        assert!(bytes > 64 * 1024 * 1024, "{bytes}");
        assert!(bytes <= whole().unwrap());
    }
}
