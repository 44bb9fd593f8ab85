//! Compares how servers are reached, credentials included, without storing a credential. The digest
//! of a target has a key of the state directory, so that guesses cannot be tested without that key.

use std::io::{self, ErrorKind};
use std::path::Path;

use airlock_core::problem::Problem;
use ring::hmac;

use crate::private_file::read_or_create_secret;
use crate::upstream::ServerSpec;

const KEY_FILE: &str = "targets.key";
const KEY_BYTES: usize = 32;

#[derive(Debug, Clone)]
pub(crate) struct TargetKey(hmac::Key);

impl TargetKey {
    /// Reads the key from the state directory, or creates it there. If it does not exist and may not be
    /// created, the key is a new one, so that nothing counts as the same. No run can be recorded there
    /// anyway.
    pub(crate) fn open(state_dir: &Path) -> Result<Self, Problem> {
        let path = state_dir.join(KEY_FILE);
        let key = match read_or_create_secret(&path, KEY_BYTES) {
            Err(error) if may_not_be_created(&path, &error) => new_key(),
            other => other,
        };
        let key = key.map_err(|cause| {
            let what = format!("cannot use the key file {}", path.display());
            let next = "correct the file's owner and mode, or delete the file; airlock then creates \
                        a new key and reuses no earlier results";
            Problem::new("state-unsafe", what, cause.to_string(), next)
        })?;
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &key)))
    }

    /// Returns the digest of everything that the configuration says about how a server is reached.
    pub(crate) fn digest(&self, spec: &ServerSpec) -> String {
        let tag = hmac::sign(&self.0, &spec.target_with_credentials());
        let hex: String = tag.as_ref().iter().map(|it| format!("{it:02x}")).collect();
        format!("hmac-sha256:{hex}")
    }
}

/// Whether the key does not exist, and the folder cannot be written or is a file.
fn may_not_be_created(path: &Path, error: &io::Error) -> bool {
    let is_missing = std::fs::symlink_metadata(path).is_err_and(|error| {
        matches!(
            error.kind(),
            ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied
        )
    });
    let is_refused = matches!(
        error.kind(),
        ErrorKind::AlreadyExists
            | ErrorKind::NotADirectory
            | ErrorKind::PermissionDenied
            | ErrorKind::ReadOnlyFilesystem
    );
    is_missing && is_refused
}

fn new_key() -> io::Result<Vec<u8>> {
    let mut key = vec![0; KEY_BYTES];
    getrandom::fill(&mut key).map_err(io::Error::other)?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use std::fs::DirBuilder;
    use std::os::unix::fs::DirBuilderExt as _;

    use super::*;
    use crate::secrets::Secrets;
    use crate::tempdir::TempDir;
    use crate::upstream::{Secret, ServerUrl, Transport};

    fn http(url: &str, token: &str) -> ServerSpec {
        let transport = Transport::Http {
            url: ServerUrl::parse(url).unwrap(),
            headers: vec![("Authorization".into(), Secret::new(token))],
        };
        ServerSpec::new("web", transport)
    }

    fn stdio(args: &[&str], token: &str) -> ServerSpec {
        let transport = Transport::Stdio {
            command: "sh".into(),
            args: args.iter().map(|it| (*it).to_owned()).collect(),
            env: vec![("TOKEN".into(), Secret::new(token))],
            cwd: None,
        };
        ServerSpec::new("fs", transport)
    }

    #[test]
    fn key_that_cannot_be_read_is_not_replaced() {
        let scratch = TempDir::new();
        let folder = scratch.path().join(KEY_FILE);
        DirBuilder::new().mode(0o700).create(folder).unwrap();
        let error = TargetKey::open(scratch.path()).unwrap_err();
        assert_eq!(error.code, "state-unsafe");
    }

    #[test]
    fn digest_depends_on_every_part_and_on_the_key() {
        let (scratch, other) = (TempDir::new(), TempDir::new());
        let key = TargetKey::open(scratch.path()).unwrap();
        let specs = [
            http("https://a.example/?token=one", "x"),
            http("https://a.example/?token=two", "x"),
            http("https://a.example/?token=one", "y"),
            stdio(&["a", "b"], "x"),
            stdio(&["a b"], "x"),
            stdio(&["a", "b"], "y"),
        ];
        let digests: Vec<_> = specs.iter().map(|spec| key.digest(spec)).collect();
        let mut different = digests.clone();
        different.sort();
        different.dedup();
        assert_eq!(different.len(), specs.len());
        let again = TargetKey::open(scratch.path()).unwrap();
        assert_eq!(again.digest(&specs[0]), digests[0]);
        let foreign = TargetKey::open(other.path()).unwrap();
        assert_ne!(foreign.digest(&specs[0]), digests[0]);
        // A journal masks credentials, and must not take the digest for one.
        assert_eq!(Secrets::default().redact(&digests[0]), None);
    }
}
