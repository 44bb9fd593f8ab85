//! Which protocol era each server spoke last, in the state directory: one small
//! file per server, named by the digest of its spec. Forgetting costs one probe,
//! so nothing that goes wrong here is an error.

use std::path::{Path, PathBuf};

use airlock_core::id::Digest;

use crate::journal_file::make_private;
use crate::upstream::{Era, EraMemory};

/// Longer than every name of an era.
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
    // Two processes may do this at once; each writes the whole file, and the last one stays.
    let unfinished = path.with_extension(std::process::id().to_string());
    if std::fs::write(&unfinished, era.version()).is_ok() {
        let _ = std::fs::rename(&unfinished, &path);
    }
}

fn file(folder: &Path, spec: &Digest) -> PathBuf {
    folder.join(spec.to_string().replace(':', "-"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn an_era_is_remembered_by_server_and_rubbish_is_forgotten() {
        let scratch = Scratch::new();
        let (folder, a, b) = (scratch.path(), Digest::of(b"a"), Digest::of(b"b"));
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
