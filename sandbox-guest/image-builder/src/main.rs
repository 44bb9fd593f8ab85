//! Turns a guest into an image: runs the guest's initialisation with written blocks side by side,
//! freezes the memory, checks that the guest imports nothing, and compiles it ahead of time.
//!
//! `guest-image-builder GUEST.wasm TARGET-TRIPLE OUT-DIR NAME` writes `NAME.wasm` (the
//! frozen module), `NAME.cwasm` (compiled) and `NAME.sha256` (the digest of the
//! compiled bytes, in hexadecimal).

mod callees;
mod freeze;
mod marking;
mod plan;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sha2::{Digest, Sha256};
use thiserror::Error;
use wasmparser::{Parser, Payload};
use wasmtime::Engine;

/// Features that every x86-64 machine since about 2009 has. An image is built on one machine and
/// runs on others.
const X86_64_V2: [&str; 6] = [
    "has_cmpxchg16b",
    "has_sse3",
    "has_ssse3",
    "has_sse41",
    "has_sse42",
    "has_popcnt",
];

#[derive(Debug, Error)]
enum BuilderError {
    #[error("usage: guest-image-builder GUEST.wasm TARGET-TRIPLE OUT-DIR NAME")]
    Usage,
    #[error("{path}: {why}")]
    File { path: PathBuf, why: std::io::Error },
    #[error("the guest is not a valid module: {0}")]
    Invalid(#[from] wasmparser::BinaryReaderError),
    #[error("the guest imports `{module}.{name}`; guests must not import anything")]
    Imports { module: String, name: String },
    #[error("the guest does not export `{0}`")]
    ExportMissing(&'static str),
    #[error("the guest cannot be rewritten: {0}")]
    Recoding(#[from] wasm_encoder::reencode::Error),
    #[error("{doing}: {why}")]
    Wasmtime {
        doing: &'static str,
        why: wasmtime::Error,
    },
}

fn main() -> ExitCode {
    match build_image() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn build_image() -> Result<(), BuilderError> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [guest, target, out, name] = args.as_slice() else {
        return Err(BuilderError::Usage);
    };
    let out = Path::new(out);
    let wasm = read(Path::new(guest))?;
    check_imports(&wasm)?;
    let frozen = freeze::freeze(&wasm)?;
    check_imports(&frozen)?;
    check_exports(&frozen)?;
    let compiled = compile(&frozen, target)?;
    let digest: String = Sha256::digest(&compiled)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    write(&out.join(format!("{name}.wasm")), &frozen)?;
    write(&out.join(format!("{name}.cwasm")), &compiled)?;
    write(&out.join(format!("{name}.sha256")), digest.as_bytes())
}

fn read(path: &Path) -> Result<Vec<u8>, BuilderError> {
    std::fs::read(path).map_err(|why| BuilderError::File {
        path: path.to_owned(),
        why,
    })
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), BuilderError> {
    std::fs::write(path, bytes).map_err(|why| BuilderError::File {
        path: path.to_owned(),
        why,
    })
}

fn check_imports(wasm: &[u8]) -> Result<(), BuilderError> {
    for payload in Parser::new(0).parse_all(wasm) {
        if let Payload::ImportSection(section) = payload?
            && let Some(import) = section.into_imports().next()
        {
            let import = import?;
            return Err(BuilderError::Imports {
                module: import.module.to_owned(),
                name: import.name.to_owned(),
            });
        }
    }
    Ok(())
}

fn check_exports(wasm: &[u8]) -> Result<(), BuilderError> {
    let mut exported = Vec::new();
    for payload in Parser::new(0).parse_all(wasm) {
        if let Payload::ExportSection(section) = payload? {
            for export in section {
                exported.push(export?.name.to_owned());
            }
        }
    }
    for name in ["memory", "alloc", "start", "resume", "landmark"] {
        if !exported.iter().any(|export| export == name) {
            return Err(BuilderError::ExportMissing(name));
        }
    }
    Ok(())
}

fn compile(wasm: &[u8], target: &str) -> Result<Vec<u8>, BuilderError> {
    let compiling = |why| BuilderError::Wasmtime {
        doing: "compiling the guest",
        why,
    };
    let mut config = wasmtime_config::config();
    config.target(target).map_err(compiling)?;
    config.cranelift_opt_level(wasmtime::OptLevel::Speed);
    if target.starts_with("x86_64") {
        for flag in X86_64_V2 {
            // SAFETY: these flags only name features of the target machine; a host without these
            // features refuses to load the image.
            #[expect(
                unsafe_code,
                reason = "there is no safe way to name processor features"
            )]
            unsafe {
                config.cranelift_flag_enable(flag);
            }
        }
    }
    let engine = Engine::new(&config).map_err(compiling)?;
    engine.precompile_module(wasm).map_err(compiling)
}
