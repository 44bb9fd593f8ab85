//! The environment variables of the process, read once. No other module reads them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

/// The environment variables of this process. Tests create their own.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<String, OsString>);

impl std::fmt::Debug for Environment {
    /// Formats only the names, because values may be secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Environment {
    #[must_use]
    pub fn of_process() -> Self {
        Self(
            std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
                .collect(),
        )
    }

    /// Returns these variables and others, which win.
    pub(crate) fn with(mut self, more: impl IntoIterator<Item = (String, String)>) -> Self {
        let more = more.into_iter();
        self.0
            .extend(more.map(|(name, value)| (name, value.into())));
        self
    }

    /// Returns the value of a variable if it is UTF-8 and not empty.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.to_str().filter(|value| !value.is_empty())
    }

    pub(crate) fn variables(&self) -> impl Iterator<Item = (&str, &std::ffi::OsStr)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_os_str()))
    }

    /// Returns the value of a variable as a path. A relative path counts as absent, as the XDG
    /// specification requires.
    #[must_use]
    pub fn directory(&self, name: &str) -> Option<PathBuf> {
        self.0
            .get(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    }

    /// Returns `AIRLOCK_STATE_DIR`, or the XDG state directory, or its default in the home
    /// directory.
    #[must_use]
    pub fn state_dir(&self) -> Option<PathBuf> {
        let named = self
            .0
            .get("AIRLOCK_STATE_DIR")
            .filter(|value| !value.is_empty())
            .map(PathBuf::from);
        named
            .or_else(|| Some(self.directory("XDG_STATE_HOME")?.join("airlock")))
            .or_else(|| Some(self.directory("HOME")?.join(".local/state/airlock")))
    }

    /// Returns why there is no state directory.
    pub(crate) fn no_state_dir(&self) -> String {
        let relative = ["XDG_STATE_HOME", "HOME"].into_iter().find_map(|name| {
            let value = self.text(name)?;
            Some(format!(
                "{name} is `{value}`, which is not an absolute path"
            ))
        });
        relative.unwrap_or_else(|| {
            "neither AIRLOCK_STATE_DIR nor XDG_STATE_HOME nor HOME is set".to_owned()
        })
    }

    /// Returns the path of the user's own configuration file, which may not exist. Returns `None`
    /// if neither `XDG_CONFIG_HOME` nor `HOME` is set.
    #[must_use]
    pub fn config_file(&self) -> Option<PathBuf> {
        let folder = self
            .directory("XDG_CONFIG_HOME")
            .or_else(|| Some(self.directory("HOME")?.join(".config")))?;
        Some(folder.join("airlock/config.toml"))
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Environment {
    fn from(variables: [(&str, &str); N]) -> Self {
        Self(
            variables
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value.into()))
                .collect(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_directory_takes_most_explicit_setting() {
        for (environment, expected) in [
            (
                Environment::from([
                    ("AIRLOCK_STATE_DIR", "/s"),
                    ("XDG_STATE_HOME", "/x"),
                    ("HOME", "/h"),
                ]),
                Some("/s"),
            ),
            (
                Environment::from([("XDG_STATE_HOME", "/x"), ("HOME", "/h")]),
                Some("/x/airlock"),
            ),
            (
                Environment::from([("XDG_STATE_HOME", "relative"), ("HOME", "/h")]),
                Some("/h/.local/state/airlock"),
            ),
            (Environment::default(), None),
        ] {
            assert_eq!(
                environment.state_dir(),
                expected.map(PathBuf::from),
                "{environment:?}"
            );
        }
    }

    #[test]
    fn debug_output_hides_values() {
        assert_eq!(
            format!("{:?}", Environment::from([("TOKEN", "hush")])),
            r#"{"TOKEN"}"#
        );
    }
}
