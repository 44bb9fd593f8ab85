//! The guests as they ship: pre-initialised and compiled ahead of time, inside
//! the binary that links this crate. Each lies in a section of its own, [`SECTION`] and
//! [`CHECKER_SECTION`], so that what ships can be looked at from outside.

use std::fmt;

/// The section that holds Boa's image.
pub const SECTION: &str = ".airlock_guest";

/// The section that holds the checker's image.
pub const CHECKER_SECTION: &str = ".airlock_checker";

/// One guest, ready to be loaded.
#[derive(Clone, Copy)]
pub struct GuestImage {
    pub name: &'static str,
    /// SHA-256 of [`Self::precompiled`], in hexadecimal.
    pub digest: &'static str,
    /// Compiled code and initialised memory. It begins at a page's boundary.
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

/// Pages are this large or smaller on every machine that an image is built for.
#[repr(C, align(65536))]
struct PageAligned<T>(T);

const BOA_BYTES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/boa.cwasm"));

#[expect(
    unsafe_code,
    reason = "naming a link section is unsafe; this one is nobody else's"
)]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".airlock_guest"))]
static BOA_PRECOMPILED: PageAligned<[u8; BOA_BYTES.len()]> =
    PageAligned(*include_bytes!(concat!(env!("OUT_DIR"), "/boa.cwasm")));

const CHECKER_BYTES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/checker.cwasm"));

#[expect(
    unsafe_code,
    reason = "naming a link section is unsafe; this one is nobody else's"
)]
#[cfg_attr(target_os = "linux", unsafe(link_section = ".airlock_checker"))]
static CHECKER_PRECOMPILED: PageAligned<[u8; CHECKER_BYTES.len()]> =
    PageAligned(*include_bytes!(concat!(env!("OUT_DIR"), "/checker.cwasm")));

/// The guest that reads scripts before they run.
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
