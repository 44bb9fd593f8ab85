//! The guests as they ship: pre-initialised and compiled ahead of time, inside
//! the binary that links this crate. They lie in a section of their own,
//! [`SECTION`], so that what ships can be looked at from outside.

use std::fmt;

/// The section of the binary that holds the images.
pub const SECTION: &str = ".airlock_guest";

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

/// The JavaScript guest.
pub static BOA: GuestImage = GuestImage {
    name: "boa",
    digest: env!("GUEST_BOA_SHA256"),
    precompiled: &BOA_PRECOMPILED.0,
};
