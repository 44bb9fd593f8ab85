//! What the host makes of an image that is not the one it should be: of another
//! version, for another processor, tampered with, cut, or no image at all.

use airlock::sandbox::{Sandbox, SandboxError};
use airlock_core::id::Digest;
use guest_image::GuestImage;

use crate::harness::ENGINE;

/// The image of the engine that these tests are about.
fn image() -> GuestImage {
    ENGINE.image().expect("this build carries the engine")
}

/// Loads bytes that somebody decided on: their digest is right.
fn load(precompiled: Vec<u8>) -> Result<Sandbox, SandboxError> {
    let digest = Digest::of(&precompiled).to_string();
    let digest: &'static str = digest["sha256:".len()..].to_owned().leak();
    Sandbox::load(GuestImage {
        name: "other",
        digest,
        precompiled: precompiled.leak(),
    })
}

/// The image with `new` in the place of the first `old`.
fn patched(old: &[u8], new: &[u8]) -> Vec<u8> {
    assert_eq!(old.len(), new.len());
    let mut bytes = image().precompiled.to_vec();
    let at = bytes.windows(old.len()).position(|it| it == old);
    let at = at.expect("the image says what it was made for");
    bytes[at..at + old.len()].copy_from_slice(new);
    bytes
}

fn why(loaded: Result<Sandbox, SandboxError>) -> String {
    match loaded {
        Err(SandboxError::Unloadable { why, .. }) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_image_with_another_digest_is_refused() {
    for digest in [
        "00",
        "0000000000000000000000000000000000000000000000000000000000000000",
    ] {
        let loaded = Sandbox::load(GuestImage { digest, ..image() });
        let refused = matches!(loaded, Err(SandboxError::WrongDigest { .. }));
        assert!(refused, "{loaded:?}");
    }
    assert!(Sandbox::load(image()).is_ok());
}

/// ISO-03
#[test]
fn an_image_of_which_one_bit_differs_is_refused_wherever_it_stands() {
    let length = image().precompiled.len();
    let mut bytes = image().precompiled.to_vec();
    for (at, bit) in [
        (0, 0),
        (0x41, 7),
        (0x1000, 3),
        (length / 2, 5),
        (length - 1, 1),
    ] {
        bytes[at] ^= 1 << bit;
        let precompiled: &'static [u8] = bytes.clone().leak();
        let loaded = Sandbox::load(GuestImage {
            precompiled,
            ..image()
        });
        assert!(
            matches!(loaded, Err(SandboxError::WrongDigest { .. })),
            "byte {at}"
        );
        bytes[at] ^= 1 << bit;
    }
}

/// ISO-03: the digest was decided on, and still it is not for this program.
#[test]
fn an_image_of_another_version_or_for_another_processor_is_refused() {
    // As its first section begins: a module, two bytes of version, the version.
    let said = why(load(patched(b"\x00\x0248", b"\x00\x0247")));
    assert!(said.contains("version"), "{said}");
    let here = std::env::consts::ARCH;
    let elsewhere = if here.len() == 7 { "riscv64" } else { "mips64" };
    let said = why(load(patched(here.as_bytes(), elsewhere.as_bytes())));
    assert!(said.contains("architecture"), "{said}");
}

#[test]
fn bytes_that_are_no_image_are_refused() {
    why(load(b"not an image".to_vec()));
    why(load(Vec::new()));
    let half = image().precompiled.len() / 2;
    why(load(image().precompiled[..half].to_vec()));
}
