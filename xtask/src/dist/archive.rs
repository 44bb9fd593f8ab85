//! Archives whose bytes depend only on their content: no times, no user names, a fixed order.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Result;
use flate2::Compression;
use flate2::write::GzEncoder;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

const FILE_MODE: u32 = 0o644;
const PROGRAM_MODE: u32 = 0o755;

/// A file of an archive.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
    mode: u32,
}

impl Entry {
    pub(super) fn file(name: &str, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            name: name.to_owned(),
            bytes: bytes.into(),
            mode: FILE_MODE,
        }
    }

    pub(super) fn program(name: &str, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            mode: PROGRAM_MODE,
            ..Self::file(name, bytes)
        }
    }

    pub(super) fn renamed(&self, name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..self.clone()
        }
    }
}

/// Writes `NAME.tar.gz` with all files in the folder NAME.
pub(super) fn tar_gz(out: &Path, name: &str, entries: &[Entry]) -> Result<PathBuf> {
    let path = out.join(format!("{name}.tar.gz"));
    write_tar_gz(&path, name, entries)?;
    Ok(path)
}

/// Writes a compressed archive with all files in one folder.
pub(super) fn write_tar_gz(path: &Path, folder: &str, entries: &[Entry]) -> Result<()> {
    let compressed = GzEncoder::new(File::create(path)?, Compression::best());
    let mut archive = tar::Builder::new(compressed);
    for entry in sorted(entries) {
        let mut header = tar::Header::new_ustar();
        header.set_size(entry.bytes.len() as u64);
        header.set_mode(entry.mode);
        header.set_entry_type(tar::EntryType::Regular);
        // npm refuses files from 1970.
        header.set_mtime(499_162_500);
        let name = format!("{folder}/{}", entry.name);
        archive.append_data(&mut header, name, entry.bytes.as_slice())?;
    }
    archive.into_inner()?.finish()?;
    Ok(())
}

/// Writes a zip file.
pub(super) fn write_zip(path: &Path, entries: &[Entry]) -> Result<()> {
    let mut archive = ZipWriter::new(File::create(path)?);
    for entry in sorted(entries) {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .compression_level(Some(9))
            .last_modified_time(DateTime::default())
            .unix_permissions(entry.mode);
        archive.start_file(entry.name.as_str(), options)?;
        archive.write_all(&entry.bytes)?;
    }
    archive.finish()?;
    Ok(())
}

/// Writes files below a folder.
pub(super) fn write_folder(folder: &Path, entries: &[Entry]) -> Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    for entry in entries {
        let path = folder.join(&entry.name);
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        fs::write(&path, &entry.bytes)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(entry.mode))?;
    }
    Ok(())
}

fn sorted(entries: &[Entry]) -> Vec<&Entry> {
    let mut entries: Vec<&Entry> = entries.iter().collect();
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_files_give_same_archives_in_any_order() {
        let folder = std::env::temp_dir().join(format!("airlock-dist-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let mut entries = vec![Entry::program("b", "program"), Entry::file("a/c", "text")];
        let mut written = Vec::new();
        for number in 0..2 {
            let (tar, zip) = (folder.join("t"), folder.join(format!("z{number}")));
            write_tar_gz(&tar, "package", &entries).unwrap();
            write_zip(&zip, &entries).unwrap();
            written.push((fs::read(tar).unwrap(), fs::read(zip).unwrap()));
            entries.reverse();
        }
        assert!(written[0] == written[1]);
        fs::remove_dir_all(folder).unwrap();
    }
}
