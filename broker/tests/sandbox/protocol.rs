//! What the host makes of a guest that is not one of ours.

use airlock::sandbox::{Sandbox, SandboxError};
use guest_image::GuestImage;

#[test]
fn an_image_with_another_digest_is_refused() {
    let other = GuestImage {
        digest: "00",
        ..guest_image::BOA
    };
    assert!(matches!(
        Sandbox::load(other),
        Err(SandboxError::WrongDigest { .. })
    ));
    assert!(Sandbox::load(guest_image::BOA).is_ok());
}

#[test]
fn bytes_that_are_no_image_are_refused() {
    let digest = airlock_core::id::Digest::of(b"not an image").to_string();
    let digest: &'static str = Box::leak(digest["sha256:".len()..].to_owned().into_boxed_str());
    let other = GuestImage {
        name: "other",
        digest,
        precompiled: b"not an image",
    };
    assert!(matches!(
        Sandbox::load(other),
        Err(SandboxError::Unloadable { .. })
    ));
}
