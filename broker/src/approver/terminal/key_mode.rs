//! Makes the terminal deliver each key at once, while a question waits for one key. The earlier mode
//! is restored when the question has an answer, is withdrawn, or fails.

use std::fs::File;
use std::io;
use std::sync::Arc;

use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};

pub(super) struct KeyMode {
    screen: Arc<File>,
    /// The mode to restore. `None` if it was not changed.
    before: Option<Termios>,
}

impl KeyMode {
    /// Changes nothing while this process is in the background, because that would stop it. Keys
    /// then need Enter.
    pub(super) fn begin(
        screen: &Arc<File>,
        is_in_foreground: impl Fn() -> bool,
    ) -> io::Result<Self> {
        let mut mode = Self {
            screen: Arc::clone(screen),
            before: None,
        };
        if is_in_foreground() {
            let before = tcgetattr(&**screen)?;
            let mut keys = before.clone();
            keys.local_modes.remove(LocalModes::ICANON);
            keys.special_codes[SpecialCodeIndex::VMIN] = 1;
            keys.special_codes[SpecialCodeIndex::VTIME] = 0;
            tcsetattr(&**screen, OptionalActions::Now, &keys)?;
            mode.before = Some(before);
        }
        Ok(mode)
    }

    /// Restores the earlier mode, and discards what was typed and not read.
    pub(super) fn end_and_forget(mut self) {
        self.restore(OptionalActions::Flush);
    }

    fn restore(&mut self, when: OptionalActions) {
        if let Some(before) = self.before.take() {
            // Without a terminal there is nothing to restore.
            let _ = tcsetattr(&*self.screen, when, &before);
        }
    }
}

impl Drop for KeyMode {
    fn drop(&mut self) {
        self.restore(OptionalActions::Now);
    }
}
