//! The program that opens an address in the person's browser.

use std::path::Path;
use std::process::Stdio;

use tokio::process::Command;

use super::Environment;

/// Variables without which a desktop's programs do not find the desktop.
const PASSED_ON: [&str; 13] = [
    "PATH",
    "HOME",
    "LANG",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
    "XDG_CURRENT_DESKTOP",
    "XDG_CONFIG_HOME",
    "XDG_CONFIG_DIRS",
    "XDG_DATA_HOME",
    "XDG_DATA_DIRS",
    "DBUS_SESSION_BUS_ADDRESS",
];

/// A program that gets an address or a file as its only argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrowserCommand {
    program: String,
    env: Vec<(String, String)>,
}

impl BrowserCommand {
    /// Returns the first program in `BROWSER`, or else the opener of the desktop. Returns `None` if
    /// there is no desktop.
    pub(super) fn find(environment: &Environment) -> Option<Self> {
        let chosen = environment.text("BROWSER").and_then(|it| {
            let mut programs = it.split(':').map(str::trim);
            programs.find(|it| !it.is_empty())
        });
        let has_desktop = || {
            let displays = ["DISPLAY", "WAYLAND_DISPLAY"];
            displays.iter().any(|it| environment.text(it).is_some())
        };
        let program = match chosen {
            Some(program) => program,
            None if cfg!(target_os = "macos") => "open",
            None if has_desktop() => "xdg-open",
            None => return None,
        };
        Some(Self::of(program.to_owned(), environment))
    }

    /// Returns a program that the person chose.
    pub(crate) fn of(program: String, environment: &Environment) -> Self {
        let passed_on = |name: &&str| {
            let value = environment.text(name)?;
            Some(((*name).to_owned(), value.to_owned()))
        };
        Self {
            program,
            env: PASSED_ON.iter().filter_map(passed_on).collect(),
        }
    }

    /// Opens a file or an address. The browser is not ended with airlock, because the person may have other pages
    /// open in it. Must be called inside a tokio runtime.
    pub(crate) fn open(&self, target: &Path) -> std::io::Result<()> {
        let mut command = Command::new(&self.program);
        command
            .arg(target)
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        // The runtime waits for the process after the handle is dropped.
        command.spawn().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browser_is_chosen_or_that_of_the_desktop() {
        fn find<const N: usize>(pairs: [(&str, &str); N]) -> Option<String> {
            BrowserCommand::find(&Environment::from(pairs)).map(|it| it.program)
        }
        let chosen = find([("BROWSER", "firefox:lynx"), ("DISPLAY", ":0")]);
        assert_eq!(chosen.as_deref(), Some("firefox"));
        if cfg!(target_os = "linux") {
            assert_eq!(find([("PATH", "/bin")]), None);
            assert_eq!(find([("DISPLAY", ":0")]).as_deref(), Some("xdg-open"));
            let wayland = [("WAYLAND_DISPLAY", "wayland-0"), ("BROWSER", " ")];
            assert_eq!(find(wayland).as_deref(), Some("xdg-open"));
        }
    }
}
