//! Remembers the protocol era that each server last used, in the state directory. There is one
//! small file per server, named by the digest of its spec. A lost file costs only one probe, so
//! errors are ignored.

use std::path::{Path, PathBuf};

use airlock_core::id::Digest;

use crate::private_file::{make_private, replace};
use crate::upstream::{Era, EraMemory};

/// Maximum size of a file in bytes. The names of eras are shorter.
const WORD_BYTES_MAX: u64 = 32;

pub(crate) fn memory(state_dir: &Path) -> EraMemory {
    let folder = state_dir.join("eras");
    let (load_from, store_to) = (folder.clone(), folder);
    EraMemory::new(
        move |spec| load(&file(&load_from, spec)),
        move |spec, era| store(&store_to, spec, era),
    )
}

fn load(path: &Path) -> Option<Era> {
    let length = std::fs::metadata(path).ok()?.len();
    let word = (length <= WORD_BYTES_MAX).then(|| std::fs::read_to_string(path).ok())??;
    Era::parse(word.trim())
}

fn store(folder: &Path, spec: &Digest, era: Era) {
    let path = file(folder, spec);
    if load(&path) == Some(era) || make_private(folder).is_err() {
        return;
    }
    // Two processes may do this at once. Each writes the whole file, and the last write wins.
    let _ = replace(&path, era.version().as_bytes(), false);
}

fn file(folder: &Path, spec: &Digest) -> PathBuf {
    folder.join(spec.to_string().replace(':', "-"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tempdir::TempDir;

    #[test]
    fn era_is_stored_per_server_and_corrupt_file_is_ignored() {
        let scratch = TempDir::new();
        let (folder, a, b) = (scratch.path(), Digest::sha256(b"a"), Digest::sha256(b"b"));
        assert_eq!(load(&file(folder, &a)), None);
        store(folder, &a, Era::Legacy);
        store(folder, &a, Era::Modern);
        assert_eq!(
            (load(&file(folder, &a)), load(&file(folder, &b))),
            (Some(Era::Modern), None)
        );
        std::fs::write(file(folder, &a), "x".repeat(1000)).unwrap();
        assert_eq!(load(&file(folder, &a)), None);
    }
}
