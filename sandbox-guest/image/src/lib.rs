//! The images of the guests: pre-initialised and compiled ahead of time, inside the binary that
//! links this crate. Each image has its own section, [`SECTION`] or [`CHECKER_SECTION`], so that
//! tools can inspect the shipped binary.

use std::fmt;

/// The section with Boa's image.
pub const SECTION: &str = ".airlock_guest";

/// The section with the checker's image.
pub const CHECKER_SECTION: &str = ".airlock_checker";

/// A guest, ready to be loaded.
#[derive(Clone, Copy)]
pub struct GuestImage {
    pub name: &'static str,
    /// SHA-256 of [`Self::precompiled`], in hexadecimal.
    pub digest: &'static str,
    /// Compiled code and initialised memory. Aligned to a page boundary.
    pub precompiled: &'static [u8],
}

impl fmt::Debug for GuestImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuestImage")
            .field("name", &self.name)
            .field("digest", &self.digest)
            .field("bytes", &self.precompiled.len())
            .finish()
    }
}

/// Bytes that begin at a page boundary. The alignment is the largest page size of all machines that
/// an image is built for.
#[repr(C, align(65536))]
struct PageAligned<T>(T);

const BOA_BYTES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/boa.cwasm"));

#[expect(
    unsafe_code,
    reason = "naming a link section is unsafe; only this crate uses this one"
)]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".airlock_guest"))]
static BOA_PRECOMPILED: PageAligned<[u8; BOA_BYTES.len()]> =
    PageAligned(*include_bytes!(concat!(env!("OUT_DIR"), "/boa.cwasm")));

const CHECKER_BYTES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/checker.cwasm"));

#[expect(
    unsafe_code,
    reason = "naming a link section is unsafe; only this crate uses this one"
)]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".airlock_checker"))]
static CHECKER_PRECOMPILED: PageAligned<[u8; CHECKER_BYTES.len()]> =
    PageAligned(*include_bytes!(concat!(env!("OUT_DIR"), "/checker.cwasm")));

/// The guest that checks scripts before they run.
pub static CHECKER: GuestImage = GuestImage {
    name: "checker",
    digest: env!("GUEST_CHECKER_SHA256"),
    precompiled: &CHECKER_PRECOMPILED.0,
};

/// The JavaScript guest.
pub static BOA: GuestImage = GuestImage {
    name: "boa",
    digest: env!("GUEST_BOA_SHA256"),
    precompiled: &BOA_PRECOMPILED.0,
};
