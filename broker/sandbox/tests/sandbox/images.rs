//! Tests that the host refuses an image of another version or target, a modified or truncated one,
//! and other bytes.

use airlock_core::id::Digest;
use airlock_sandbox::{Sandbox, SandboxError};
use guest_image::GuestImage;

use crate::harness::ENGINE;

/// Returns the image of the tested engine.
fn image() -> GuestImage {
    ENGINE.image().expect("this build contains the engine")
}

/// Loads bytes as an image, with the correct digest.
fn load(precompiled: Vec<u8>) -> Result<Sandbox, SandboxError> {
    let digest = Digest::sha256(&precompiled).to_string();
    let digest: &'static str = digest["sha256:".len()..].to_owned().leak();
    Sandbox::load(GuestImage {
        name: "other",
        digest,
        precompiled: precompiled.leak(),
    })
}

/// Returns the image, with the first `old` replaced by `new`.
fn patched(old: &[u8], new: &[u8]) -> Vec<u8> {
    assert_eq!(old.len(), new.len());
    let mut bytes = image().precompiled.to_vec();
    let at = bytes.windows(old.len()).position(|it| it == old);
    let at = at.expect("the image contains its version and target");
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
fn image_with_wrong_digest_is_refused() {
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
fn image_with_one_flipped_bit_is_refused() {
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

/// ISO-03: the digest is correct, but the image is not for this program.
#[test]
fn image_of_other_version_or_target_is_refused() {
    // The beginning of its first section: a kind, the length of the version, the version.
    let said = why(load(patched(b"\x00\x0248", b"\x00\x0247")));
    assert!(said.contains("version"), "{said}");
    let here = std::env::consts::ARCH;
    let elsewhere = if here.len() == 7 { "riscv64" } else { "mips64" };
    let said = why(load(patched(here.as_bytes(), elsewhere.as_bytes())));
    assert!(said.contains("architecture"), "{said}");
}

#[test]
fn non_image_bytes_are_refused() {
    why(load(b"not an image".to_vec()));
    why(load(Vec::new()));
    let half = image().precompiled.len() / 2;
    why(load(image().precompiled[..half].to_vec()));
}
