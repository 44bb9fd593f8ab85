//! The key that seals the stored logins, and the places where it can be stored.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

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
            KeyChoice::Auto => match self.make_in_keyring() {
                Ok(key) => return Ok((KeyPlace::Keyring, self.remember(KeyPlace::Keyring, key))),
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
            KeyPlace::Keyring => self.make_in_keyring()?,
            KeyPlace::File => self.file(true)?,
            KeyPlace::Command => self.of_command()?,
        };
        Ok((place, self.remember(place, key)))
    }

    /// Returns the key of a stored login. A missing key is an error.
    pub(super) fn existing(&self, place: KeyPlace) -> Result<[u8; KEY_BYTES], StoreError> {
        let known = self.read.lock().ok().and_then(|it| it.get(&place).copied());
        if let Some(key) = known {
            return Ok(key);
        }
        let key = match place {
            KeyPlace::Keyring => decoded(&self.keyring.read(SERVICE, &self.account())?)?,
            KeyPlace::File => self.file(false)?,
            KeyPlace::Command => self.of_command()?,
        };
        Ok(self.remember(place, key))
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
