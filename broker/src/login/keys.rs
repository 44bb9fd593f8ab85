//! The key that seals the stored logins, and the places where it can be stored.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use airlock_core::id::Digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::keyring::{Keyring, KeyringError};
use super::settings::KeyChoice;
use super::store_error::StoreError;
use crate::command_source::CommandSource;
use crate::private_file;

pub(super) const KEY_BYTES: usize = 32;
const SERVICE: &str = "airlock";
/// Maximum wait for another process that makes the key in the keyring.
const LOCK_WALL: Duration = Duration::from_secs(15);

/// Where the key of a stored login is. It is written into each file, and never changed silently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum KeyPlace {
    Keyring,
    File,
    Command,
}

impl KeyPlace {
    pub(crate) const ALL: [Self; 3] = [Self::Keyring, Self::File, Self::Command];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Keyring => "keyring",
            Self::File => "file",
            Self::Command => "command",
        }
    }

    pub(super) fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == word)
    }
}

pub(super) struct Keys {
    folder: PathBuf,
    choice: KeyChoice,
    keyring: Keyring,
    command: CommandSource,
    /// The keys that were already read. A keyring may ask the person each time.
    read: Mutex<BTreeMap<KeyPlace, [u8; KEY_BYTES]>>,
}

/// Omits the keys.
impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys({:?})", self.choice)
    }
}

impl Keys {
    pub(super) fn new(
        folder: PathBuf,
        choice: KeyChoice,
        keyring: Keyring,
        command: CommandSource,
    ) -> Self {
        Self {
            folder,
            choice,
            keyring,
            command,
            read: Mutex::default(),
        }
    }

    /// Returns the place and the key for a new login. A missing key is made.
    pub(super) fn for_new(&self) -> Result<(KeyPlace, [u8; KEY_BYTES]), StoreError> {
        let place = match &self.choice {
            KeyChoice::Keyring => KeyPlace::Keyring,
            KeyChoice::File => KeyPlace::File,
            KeyChoice::Command(_) => KeyPlace::Command,
            KeyChoice::Auto => match self.in_keyring() {
                Ok(key) => return Ok((KeyPlace::Keyring, key)),
                // Without a keyring, the choice is clear. A keyring that fails is an error, because
                // it may hold the key of earlier logins.
                Err(StoreError::Keyring(KeyringError::Absent(_))) => KeyPlace::File,
                Err(StoreError::Keyring(KeyringError::Refused(why))) if has_no_service(&why) => {
                    KeyPlace::File
                }
                Err(error) => return Err(error),
            },
        };
        let key = match place {
            KeyPlace::Keyring => self.in_keyring()?,
            KeyPlace::File => self.file(true)?,
            KeyPlace::Command => self.of_command()?,
        };
        Ok((place, self.remember(place, key)))
    }

    /// Returns the key of a stored login. A missing key is an error.
    pub(super) fn existing(&self, place: KeyPlace) -> Result<[u8; KEY_BYTES], StoreError> {
        if let Some(key) = self.known(place) {
            return Ok(key);
        }
        let key = match place {
            KeyPlace::Keyring => decoded(&self.keyring.read(SERVICE, &self.account())?)?,
            KeyPlace::File => self.file(false)?,
            KeyPlace::Command => self.of_command()?,
        };
        Ok(self.remember(place, key))
    }

    fn known(&self, place: KeyPlace) -> Option<[u8; KEY_BYTES]> {
        self.read.lock().ok().and_then(|it| it.get(&place).copied())
    }

    fn remember(&self, place: KeyPlace, key: [u8; KEY_BYTES]) -> [u8; KEY_BYTES] {
        if let Ok(mut read) = self.read.lock() {
            read.insert(place, key);
        }
        key
    }

    /// Two state directories have two keys.
    fn account(&self) -> String {
        let digest = Digest::sha256(self.folder.as_os_str().as_encoded_bytes()).to_string();
        let short: String = digest.chars().skip("sha256:".len()).take(16).collect();
        format!("logins-{short}")
    }

    /// Returns the key in the keyring. A missing key is made.
    fn in_keyring(&self) -> Result<[u8; KEY_BYTES], StoreError> {
        if let Some(key) = self.known(KeyPlace::Keyring) {
            return Ok(key);
        }
        // A keyring has no lock. Without one, two first logins would each make a key, and one of
        // them could never be read again.
        let path = self.folder.join("key.lock");
        let failed = |error: std::io::Error| {
            StoreError::Key(format!("{} cannot be locked: {error}", path.display()))
        };
        private_file::make_private(&self.folder).map_err(failed)?;
        let _one = private_file::lock(&path, LOCK_WALL).map_err(failed)?;
        let key = self.make_in_keyring()?;
        Ok(self.remember(KeyPlace::Keyring, key))
    }

    fn make_in_keyring(&self) -> Result<[u8; KEY_BYTES], StoreError> {
        let account = self.account();
        match self.keyring.read(SERVICE, &account) {
            Ok(text) => decoded(&text),
            Err(KeyringError::NoEntry(_)) => {
                let mut key = [0; KEY_BYTES];
                getrandom::fill(&mut key).map_err(|error| StoreError::Key(error.to_string()))?;
                self.keyring
                    .write(SERVICE, &account, &STANDARD.encode(key))?;
                Ok(key)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn file(&self, may_create: bool) -> Result<[u8; KEY_BYTES], StoreError> {
        let path = self.folder.join("key");
        let invalid = |why: String| StoreError::Key(format!("{}: {why}", path.display()));
        if !may_create && !Path::exists(&path) {
            return Err(invalid("the file is missing".to_owned()));
        }
        let bytes = private_file::read_or_create_secret(&path, KEY_BYTES);
        let bytes = bytes.map_err(|error| invalid(error.to_string()))?;
        bytes
            .try_into()
            .map_err(|_| invalid("wrong length".to_owned()))
    }

    fn of_command(&self) -> Result<[u8; KEY_BYTES], StoreError> {
        let KeyChoice::Command(command) = &self.choice else {
            let why = "the login was stored with `keys = \"command:…\"`, which is not configured";
            return Err(StoreError::Key(why.to_owned()));
        };
        let text = self.command.output(command);
        let text = text.map_err(|why| StoreError::Key(format!("the command for the key {why}")))?;
        decoded(&text)
    }
}

/// Whether `secret-tool` reports that no keyring runs at all.
fn has_no_service(why: &str) -> bool {
    [
        "autolaunch",
        "not provided by any",
        "Cannot spawn",
        "Could not connect",
    ]
    .iter()
    .any(|it| why.contains(it))
}

fn decoded(text: &str) -> Result<[u8; KEY_BYTES], StoreError> {
    let bytes = STANDARD.decode(text.trim()).ok();
    let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or_else(|| StoreError::Key(format!("the key is not base64 text of {KEY_BYTES} bytes")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::Environment;
    use crate::tempdir::TempDir;

    /// Returns the keys of one process, with this program as `secret-tool`.
    fn keys(scratch: &TempDir, choice: KeyChoice, tool: &str) -> Keys {
        let text = scratch.file("tool.sh", &format!("#!/bin/sh\n{tool}"));
        // Another program writes it: this process could pass the open file on to a child of another
        // test, and a program that is open for writing cannot be started.
        let mut install = std::process::Command::new("install");
        install.args(["-m", "755"]).arg(text);
        let installed = install.arg(scratch.path().join("secret-tool")).status();
        assert!(installed.unwrap().success());
        let home = scratch.path().display().to_string();
        let search = format!("{home}:/usr/bin:/bin");
        let environment = Environment::from([
            ("HOME", home.as_str()),
            ("PATH", search.as_str()),
            ("LANG", "de_DE.UTF-8"),
            ("LC_ALL", "de_DE.UTF-8"),
        ]);
        let keyring = Keyring::new(environment.clone());
        let command = CommandSource(environment);
        Keys::new(scratch.path().join("logins"), choice, keyring, command)
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn two_first_logins_make_one_key_in_the_keyring() {
        // Each look-up waits until the other process has looked too, or for a second.
        const RING: &str = "cd $HOME; verb=$1\n\
             if [ $verb = store ]; then cat > ring; exit; fi\n\
             [ -e ring ] && exec cat ring\n\
             : > looked-$$\n\
             for i in 1 2 3 4 5 6 7 8 9 10; do\n\
             [ $(ls looked-* | wc -l) -ge 2 ] && exit 1; sleep 0.1; done; exit 1\n";
        let scratch = TempDir::new();
        let processes = [(); 2].map(|()| keys(&scratch, KeyChoice::Keyring, RING));
        let made = std::thread::scope(|scope| {
            let each = processes.each_ref();
            let threads = each.map(|keys| scope.spawn(|| keys.for_new().unwrap()));
            threads.map(|it| it.join().unwrap())
        });
        assert_eq!(made[0], made[1]);
        let later = keys(&scratch, KeyChoice::Keyring, RING);
        assert_eq!(later.existing(KeyPlace::Keyring).unwrap(), made[0].1);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn missing_keyring_is_recognised_in_every_language() {
        const NONE: &str = "case $LC_ALL in C) echo 'Cannot autolaunch D-Bus' >&2;; \
             *) echo 'D-Bus kann nicht gestartet werden' >&2;; esac; exit 1\n";
        let scratch = TempDir::new();
        let (place, _) = keys(&scratch, KeyChoice::Auto, NONE).for_new().unwrap();
        assert_eq!(place, KeyPlace::File);
    }
}
