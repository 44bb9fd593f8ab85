//! The stored logins: one sealed file per configured server, in the state directory.
//!
//! The first line of a file is in clear: the format, the place of the key, and the version of the
//! login. The second line is base64 text of a nonce and the sealed credential. The first line and the name of the file are
//! authenticated with it, so that no file can take the place of another.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use airlock_core::id::Digest;
use airlock_core::login::{Credential, Grant};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use super::keyring::Keyring;
use super::keys::{KEY_BYTES, KeyPlace, Keys};
use super::settings::{KeyChoice, LoginSettings};
use super::store_error::StoreError;
use crate::command_source::CommandSource;
use crate::private_file::{self, make_private};

/// Maximum wait for another process that renews the same login. One renewal takes at most 10 s.
const LOCK_WALL: Duration = Duration::from_secs(30);
const FILE_BYTES_MAX: usize = 512 * 1024;
const HEADER_BYTES_MAX: usize = 128;
const FORMAT: &str = "airlock-login-1";

/// Identifies a stored login: the name and the address of the server, and the configured client,
/// issuer and grant. So a login is never used after the configuration names another server or
/// another authorization server, and two names for one address can be two accounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LoginId(String);

impl LoginId {
    pub(crate) fn new(name: &str, server: &str, settings: &LoginSettings) -> Self {
        let client = settings.client.as_ref().map(|it| it.id.as_str());
        let identity = serde_json::json!([
            name,
            server,
            client,
            settings.issuer.as_deref(),
            settings.grant,
        ]);
        Self::of(&identity)
    }

    /// Returns the id of a caller's own login to the same server.
    pub(crate) fn of_caller(&self, caller: &str) -> Self {
        Self::of(&serde_json::json!([self.0, caller]))
    }

    fn of(identity: &serde_json::Value) -> Self {
        let digest = Digest::sha256(identity.to_string().as_bytes()).to_string();
        Self(digest.chars().skip("sha256:".len()).take(32).collect())
    }
}

/// Tells one login of a person from the next, without its key. A renewal keeps the version, because
/// a server that refused a login can refuse the renewed one too. A client that logs in without a
/// person always has the same version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LoginVersion(u64);

#[cfg(test)]
impl LoginVersion {
    pub(crate) fn of_test() -> Self {
        Self(1)
    }
}

impl LoginVersion {
    fn new(grant: Grant) -> Result<Self, getrandom::Error> {
        match grant {
            Grant::AuthorizationCode => getrandom::u64().map(Self),
            Grant::ClientCredentials => Ok(Self(0)),
        }
    }
}

/// Cheap to clone; all clones share the keys that were read.
#[derive(Debug, Clone)]
pub(crate) struct LoginStore {
    folder: PathBuf,
    keys: Arc<Keys>,
}

/// A stored login, and where its key is.
#[derive(Debug)]
pub(crate) struct StoredLogin {
    pub(crate) credential: Credential,
    pub(crate) place: KeyPlace,
    version: LoginVersion,
}

impl LoginStore {
    pub(crate) fn new(
        state_dir: &Path,
        choice: KeyChoice,
        keyring: Keyring,
        command: CommandSource,
    ) -> Self {
        let folder = state_dir.join("logins");
        let keys = Arc::new(Keys::new(folder.clone(), choice, keyring, command));
        Self { folder, keys }
    }

    fn path(&self, id: &LoginId) -> PathBuf {
        self.folder.join(format!("{}.login", id.0))
    }

    /// Takes the lock of one login, across processes. It is held until it is dropped.
    pub(crate) fn lock(&self, id: &LoginId) -> Result<File, StoreError> {
        let path = self.folder.join(format!("{}.lock", id.0));
        make_private(&self.folder).map_err(failed(&self.folder, "created"))?;
        private_file::lock(&path, LOCK_WALL).map_err(failed(&path, "locked"))
    }

    /// Returns the version of the stored login. `None`: there is none.
    pub(crate) fn version(&self, id: &LoginId) -> Option<LoginVersion> {
        let mut header = [0; HEADER_BYTES_MAX];
        let mut file = File::open(self.path(id)).ok()?;
        let length = file.read(&mut header).ok()?;
        let text = std::str::from_utf8(header.get(..length)?).ok()?;
        let (header, _) = text.split_once('\n')?;
        parse_header(header).map(|(_, version)| version)
    }

    /// Makes sure that a new login could be stored: its key exists or is made now.
    pub(crate) fn check_key(&self) -> Result<(), StoreError> {
        self.keys.for_new().map(drop)
    }

    /// Reads without a lock: files are replaced as a whole.
    pub(crate) fn load(&self, id: &LoginId) -> Result<Option<StoredLogin>, StoreError> {
        let path = self.path(id);
        let text = match private_file::read(&path) {
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                return Ok(None);
            }
            read => read.map_err(failed(&path, "read"))?,
        };
        let bad = |why: &str| StoreError::Bad {
            path: path.display().to_string(),
            why: why.to_owned(),
        };
        let text = (text.len() <= FILE_BYTES_MAX).then(|| String::from_utf8(text).ok());
        let text = text.flatten().ok_or_else(|| bad("it is not a login"))?;
        let (header, sealed) = text
            .split_once('\n')
            .ok_or_else(|| bad("it is incomplete"))?;
        let (place, version) = parse_header(header).ok_or_else(|| bad("its format is unknown"))?;
        let key = self.keys.existing(place)?;
        let sealed = STANDARD.decode(sealed.trim_end());
        let mut sealed = sealed.map_err(|_| bad("it is damaged"))?;
        let opened = open(&key, &aad(header, id), &mut sealed);
        let opened = opened.ok_or_else(|| bad("it was changed, or sealed with another key"))?;
        let credential = Credential::parse(opened).map_err(|why| bad(&why))?;
        Ok(Some(StoredLogin {
            credential,
            place,
            version,
        }))
    }

    /// Stores a new login, and returns where its key is. The caller holds the lock.
    pub(crate) fn store_new(
        &self,
        id: &LoginId,
        credential: &Credential,
    ) -> Result<KeyPlace, StoreError> {
        let (place, key) = self.keys.for_new()?;
        let version = LoginVersion::new(credential.grant).map_err(|error| StoreError::Bad {
            path: self.path(id).display().to_string(),
            why: error.to_string(),
        })?;
        self.write(id, credential, (place, version), &key)?;
        Ok(place)
    }

    /// Replaces a stored login with its renewal. The place of its key and the version stay the same.
    /// The caller holds the lock.
    pub(crate) fn replace(
        &self,
        id: &LoginId,
        renewed: &Credential,
        stored: &StoredLogin,
    ) -> Result<(), StoreError> {
        let key = self.keys.existing(stored.place)?;
        self.write(id, renewed, (stored.place, stored.version), &key)
    }

    fn write(
        &self,
        id: &LoginId,
        credential: &Credential,
        (place, version): (KeyPlace, LoginVersion),
        key: &[u8; KEY_BYTES],
    ) -> Result<(), StoreError> {
        let path = self.path(id);
        let bad = |why: String| StoreError::Bad {
            path: path.display().to_string(),
            why,
        };
        make_private(&self.folder).map_err(failed(&self.folder, "created"))?;
        let header = format!("{FORMAT} {} {:016x}", place.as_str(), version.0);
        let text = credential.to_text().map_err(bad)?;
        let sealed = seal(key, &aad(&header, id), text.into_bytes());
        let sealed = sealed.ok_or_else(|| bad("it cannot be sealed".to_owned()))?;
        let text = format!("{header}\n{}\n", STANDARD.encode(sealed));
        private_file::replace(&path, text.as_bytes(), true).map_err(failed(&path, "written"))
    }

    /// Deletes a stored login. Returns whether there was one.
    pub(crate) fn delete(&self, id: &LoginId) -> Result<bool, StoreError> {
        let path = self.path(id);
        match std::fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(failed(&path, "deleted")(error)),
        }
    }
}

fn parse_header(header: &str) -> Option<(KeyPlace, LoginVersion)> {
    let words = header.strip_prefix(FORMAT)?.strip_prefix(' ')?;
    let (place, version) = words.split_once(' ')?;
    let version = u64::from_str_radix(version, 16).ok()?;
    Some((KeyPlace::parse(place)?, LoginVersion(version)))
}

fn aad(header: &str, id: &LoginId) -> Vec<u8> {
    format!("{header}\n{}", id.0).into_bytes()
}

fn cipher(key: &[u8; KEY_BYTES]) -> Option<LessSafeKey> {
    UnboundKey::new(&CHACHA20_POLY1305, key)
        .ok()
        .map(LessSafeKey::new)
}

fn seal(key: &[u8; KEY_BYTES], aad: &[u8], mut text: Vec<u8>) -> Option<Vec<u8>> {
    let mut nonce = [0; NONCE_LEN];
    getrandom::fill(&mut nonce).ok()?;
    let unique = Nonce::assume_unique_for_key(nonce);
    cipher(key)?
        .seal_in_place_append_tag(unique, Aad::from(aad), &mut text)
        .ok()?;
    Some([&nonce[..], &text].concat())
}

fn open<'a>(key: &[u8; KEY_BYTES], aad: &[u8], sealed: &'a mut [u8]) -> Option<&'a [u8]> {
    let (nonce, sealed) = sealed.split_at_mut_checked(NONCE_LEN)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
    let opened = cipher(key)?.open_in_place(nonce, Aad::from(aad), sealed);
    opened.ok().map(|it| &*it)
}

fn failed(path: &Path, verb: &'static str) -> impl FnOnce(std::io::Error) -> StoreError + use<> {
    let path = path.display().to_string();
    move |cause| StoreError::Io { path, verb, cause }
}

#[cfg(test)]
mod tests {
    use airlock_core::login::{AuthMethod, Client, ClientOrigin, ConfiguredClient, ScopeSet};

    use super::*;
    use crate::environment::Environment;
    use crate::tempdir::TempDir;

    fn credential() -> Credential {
        Credential {
            resource: "https://mcp.example/mcp".to_owned(),
            issuer: "https://as.example".to_owned(),
            client: Client {
                id: "client".to_owned(),
                secret: None,
                method: AuthMethod::None,
                origin: ClientOrigin::Registered,
            },
            grant: Grant::AuthorizationCode,
            token_endpoint: "https://as.example/token".to_owned(),
            revocation_endpoint: None,
            access_token: "access-of-the-test".to_owned(),
            refresh_token: Some("refresh-of-the-test".to_owned()),
            scopes: ScopeSet::parse("a b"),
            issued_at_ms: 1,
            expires_at_ms: Some(2),
        }
    }

    fn store(scratch: &TempDir) -> LoginStore {
        let environment = Environment::default();
        let keyring = Keyring::new(environment.clone());
        let command = CommandSource(environment);
        LoginStore::new(scratch.path(), KeyChoice::File, keyring, command)
    }

    fn id(name: &str, server: &str) -> LoginId {
        LoginId::new(name, server, &LoginSettings::default())
    }

    #[test]
    fn login_belongs_to_one_name_address_client_issuer_and_grant() {
        let client = |id: &str| LoginSettings {
            client: Some(ConfiguredClient {
                id: id.to_owned(),
                secret: None,
                signs_with: None,
            }),
            ..LoginSettings::default()
        };
        let issuer = LoginSettings {
            issuer: Some("https://as.example".to_owned()),
            ..LoginSettings::default()
        };
        let without_person = LoginSettings {
            grant: Grant::ClientCredentials,
            ..client("a")
        };
        let of = |settings: &LoginSettings| LoginId::new("w", "https://a.example", settings);
        let ids = [
            id("w", "https://a.example"),
            id("v", "https://a.example"),
            id("w", "https://b.example"),
            of(&client("a")),
            of(&client("b")),
            of(&issuer),
            of(&without_person),
            of(&client("a")).of_caller("alice"),
            of(&client("a")).of_caller("bob"),
        ];
        for (at, one) in ids.iter().enumerate() {
            assert!(!ids.iter().skip(at + 1).any(|other| other == one), "{at}");
        }
        assert_eq!(of(&client("a")), of(&client("a")));
    }

    #[test]
    fn new_login_has_another_version_and_a_renewed_one_the_same() {
        let scratch = TempDir::new();
        let (store, id) = (store(&scratch), id("w", "https://a.example"));
        assert_eq!(store.version(&id), None);
        store.store_new(&id, &credential()).unwrap();
        let first = store.version(&id);
        assert!(first.is_some() && store.version(&id) == first);
        let stored = store.load(&id).unwrap().unwrap();
        let renewed = Credential {
            access_token: "renewed".to_owned(),
            ..credential()
        };
        store.replace(&id, &renewed, &stored).unwrap();
        assert_eq!(store.load(&id).unwrap().unwrap().credential, renewed);
        assert_eq!(store.version(&id), first);
        store.store_new(&id, &credential()).unwrap();
        assert_ne!(store.version(&id), first);
        // A client that is refused logs in again by itself, which changes nothing.
        let without_person = Credential {
            grant: Grant::ClientCredentials,
            ..credential()
        };
        store.store_new(&id, &without_person).unwrap();
        let first = store.version(&id);
        store.store_new(&id, &without_person).unwrap();
        assert_eq!(store.version(&id), first);
    }

    #[test]
    fn login_is_sealed_and_read_by_another_process() {
        let scratch = TempDir::new();
        let id = id("w", "https://mcp.example/mcp");
        assert!(store(&scratch).load(&id).unwrap().is_none());
        let place = store(&scratch).store_new(&id, &credential()).unwrap();
        assert_eq!(place, KeyPlace::File);
        let read = store(&scratch).load(&id).unwrap().unwrap();
        assert_eq!(
            (read.credential, read.place),
            (credential(), KeyPlace::File)
        );
        let text = std::fs::read_to_string(store(&scratch).path(&id)).unwrap();
        assert!(text.starts_with("airlock-login-1 file ") && !text.contains("test"));
        assert!(store(&scratch).delete(&id).unwrap());
        assert!(!store(&scratch).delete(&id).unwrap());
    }

    #[test]
    fn changed_moved_or_foreign_file_is_refused() {
        let scratch = TempDir::new();
        let store = store(&scratch);
        let [id, other] = ["https://a.example", "https://b.example"].map(|it| id("w", it));
        store.store_new(&id, &credential()).unwrap();
        let whole = std::fs::read_to_string(store.path(&id)).unwrap();
        std::fs::copy(store.path(&id), store.path(&other)).unwrap();
        assert!(matches!(store.load(&other), Err(StoreError::Bad { .. })));
        let half = whole.get(..whole.len() / 2).unwrap().to_owned();
        for text in [
            half,
            whole.replace("login-1", "login-2"),
            whole.replace('A', "B"),
            whole.replace(" file", " nowhere"),
            String::new(),
        ] {
            std::fs::write(store.path(&id), &text).unwrap();
            assert!(
                matches!(store.load(&id), Err(StoreError::Bad { .. })),
                "{text}"
            );
        }
        std::fs::write(store.path(&id), whole.replace(" file", " keyring")).unwrap();
        assert!(matches!(store.load(&id), Err(StoreError::Keyring(_))));
    }
}
