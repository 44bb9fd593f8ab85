//! What ships, looked at from outside: the guest inside the binary.

use std::fs;

use object::{Object, ObjectSection};
use tests::binary::airlock;
use tests::engine::carries_both;
use wasmtime::{Engine, Module};

/// The sections of the binary that carry compiled guests; QuickJS only where it was made.
const BOA: &str = ".airlock_guest";
const QUICKJS: &str = ".airlock_quickjs";
/// The guest that reads the text of scripts.
const CHECKER: &str = ".airlock_checker";

#[test]
fn the_guests_inside_the_shipped_binary_import_nothing() {
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
        "{} bytes are no guest",
        image.len()
    );
    let engine = Engine::new(&cage::config()).unwrap();
    #[expect(
        unsafe_code,
        reason = "the bytes come out of the binary that this build made"
    )]
    // SAFETY: compiled by the factory of this very build; Wasmtime checks version and settings.
    let guest = unsafe { Module::deserialize(&engine, image) }.unwrap();
    let imports: Vec<_> = guest
        .imports()
        .map(|import| format!("{}.{}", import.module(), import.name()))
        .collect();
    assert_eq!(imports, [""; 0], "the guest can reach these");
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
fn the_binary_needs_no_other_library_than_the_systems_own() {
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

/// The parser of scripts is in the checker guest and nowhere else: no name of it is in a section of
/// the program's own.
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
