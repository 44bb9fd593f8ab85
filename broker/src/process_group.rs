//! A process that ends with all that it started.

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;

/// Started in a group of its own, which is killed with this value.
pub(crate) struct Group(pub(crate) Child);

impl Group {
    /// `child` was started with `process_group(0)`.
    pub(crate) fn new(child: Child) -> Self {
        Self(child)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let id = self.0.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        if let Some(id) = id {
            // It fails when the group is empty already, which is what we want.
            let _ = kill_process_group(id, Signal::KILL);
        }
    }
}
