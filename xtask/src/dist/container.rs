//! The root of the container image: the program, the libraries that it loads, and nothing else. The
//! `Dockerfile` copies it into an empty image. The tests do the same without an engine, and run the
//! program with `chroot`.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::archive::{Entry, write_folder};
use super::names::HOST;
use super::program::Program;
use crate::paths;

const DOCKERFILE: &str = "packaging/container/Dockerfile";
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";
/// The user of the image owns its state directory and nothing else.
const PASSWD: &str = "airlock:x:65532:65532:airlock:/state:/sbin/nologin\n";

pub(super) fn root(out: &Path, program: &Program) -> Result<()> {
    if program.platform.target != HOST {
        println!("SKIP: the container's root, because the libraries of the platform are not here");
        return Ok(());
    }
    let mut entries = vec![
        Entry::program("usr/bin/airlock", program.bytes.clone()),
        Entry::file("etc/passwd", PASSWD),
        Entry::file("etc/group", "airlock:x:65532:\n"),
    ];
    for library in program.libraries()? {
        let bytes = fs::read(&library).with_context(|| library.display().to_string())?;
        let name = library.display().to_string();
        entries.push(Entry::program(name.trim_start_matches('/'), bytes));
    }
    if let Ok(certificates) = fs::read(CERTIFICATES) {
        entries.push(Entry::file(
            CERTIFICATES.trim_start_matches('/'),
            certificates,
        ));
    }
    let container = out.join("container");
    write_folder(&container.join("root"), &entries)?;
    for folder in ["root/config", "owned/state", "owned/tmp"] {
        fs::create_dir_all(container.join(folder))?;
    }
    let from = paths::root().join(DOCKERFILE);
    fs::copy(&from, container.join("Dockerfile")).with_context(|| from.display().to_string())?;
    Ok(())
}
