//! Checks the guests inside the shipped binary.

use std::fs;

use object::{Object, ObjectSection};
use tests::binary::airlock;
use tests::engine::carries_both;
use wasmtime::{Engine, Module};

/// The sections of the binary that contain the guests for scripts. The second section exists only
/// if QuickJS was built.
const BOA: &str = ".airlock_guest";
const QUICKJS: &str = ".airlock_quickjs";
/// The section of the guest that parses scripts.
const CHECKER: &str = ".airlock_checker";

#[test]
fn shipped_guests_import_nothing() {
    let binary = fs::read(airlock()).unwrap();
    let file = object::File::parse(&*binary).unwrap();
    let section = |name| Some(file.section_by_name(name)?.data().unwrap());
    for guest in [BOA, CHECKER] {
        imports_nothing(section(guest).unwrap_or_else(|| panic!("no section {guest}")));
    }
    let second = section(QUICKJS);
    assert_eq!(second.is_some(), carries_both());
    if let Some(image) = second {
        imports_nothing(image);
    }
}

fn imports_nothing(image: &[u8]) {
    assert!(
        image.len() > 1024 * 1024,
        "{} bytes are too few for a guest",
        image.len()
    );
    let engine = Engine::new(&wasmtime_config::config()).unwrap();
    #[expect(unsafe_code, reason = "the bytes come from the binary of this build")]
    // SAFETY: compiled by the image builder of this same build; Wasmtime checks version and
    // settings.
    let guest = unsafe { Module::deserialize(&engine, image) }.unwrap();
    let imports: Vec<_> = guest
        .imports()
        .map(|import| format!("{}.{}", import.module(), import.name()))
        .collect();
    assert_eq!(imports, [""; 0], "the guest has imports");
    let exports: Vec<_> = guest
        .exports()
        .map(|export| export.name().to_owned())
        .collect();
    for name in ["memory", "start", "resume"] {
        assert!(
            exports.iter().any(|export| export == name),
            "no `{name}` among {exports:?}"
        );
    }
}

#[test]
fn binary_needs_system_libraries_only() {
    let binary = fs::read(airlock()).unwrap();
    let file = object::File::parse(&*binary).unwrap();
    let libraries: Vec<_> = file
        .imports()
        .unwrap()
        .iter()
        .map(|import| String::from_utf8_lossy(import.library()).into_owned())
        .collect();
    for foreign in ["ssl", "crypto", "node", "v8", "quickjs"] {
        assert!(
            !libraries.iter().any(|library| library.contains(foreign)),
            "{libraries:?}"
        );
    }
}

/// Only the checker guest contains the parser of scripts: no section of the program itself contains
/// one of the parser's names.
#[test]
fn binary_has_no_script_parser_outside_its_guests() {
    const NAMES: [&[u8]; 2] = [b"oxc_parser", b"oxc_semantic"];
    let binary = fs::read(airlock()).unwrap();
    let file = object::File::parse(&*binary).unwrap();
    let mut sections = 0;
    for section in file.sections() {
        let Ok(name) = section.name() else { continue };
        if [BOA, QUICKJS, CHECKER].contains(&name) {
            continue;
        }
        let data = section.uncompressed_data().unwrap_or_default();
        sections += 1;
        for needle in NAMES {
            let found = memchr::memmem::find(&data, needle);
            assert_eq!(found, None, "{} in {name}", String::from_utf8_lossy(needle));
        }
    }
    assert!(sections > 10, "{sections}");
}
