//! The image of the QuickJS guest: pre-initialised and compiled ahead of time, inside the binary
//! that links this crate, if `cargo xtask engine quickjs` ran before the build. It has its own
//! section, [`SECTION`].

mod stack;

use guest_image::GuestImage;
pub use stack::SHADOW_STACK_BYTES;

/// The section of the binary that holds the image.
pub const SECTION: &str = ".airlock_quickjs";

/// Returns QuickJS-NG, if this build contains it.
#[must_use]
pub fn quickjs() -> Option<GuestImage> {
    made::IMAGE
}

#[cfg(not(has_quickjs))]
mod made {
    pub(super) static IMAGE: Option<guest_image::GuestImage> = None;
}

#[cfg(has_quickjs)]
mod made {
    use guest_image::GuestImage;

    /// Bytes that begin at a page boundary. The alignment is the largest page size of all machines
    /// that an image is built for.
    #[repr(C, align(65536))]
    struct PageAligned<T>(T);

    const BYTES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/quickjs.cwasm"));

    #[expect(
        unsafe_code,
        reason = "naming a link section is unsafe; only this crate uses this one"
    )]
    #[cfg_attr(target_os = "linux", unsafe(link_section = ".airlock_quickjs"))]
    static PRECOMPILED: PageAligned<[u8; BYTES.len()]> =
        PageAligned(*include_bytes!(concat!(env!("OUT_DIR"), "/quickjs.cwasm")));

    pub(super) static IMAGE: Option<GuestImage> = Some(GuestImage {
        name: "quickjs",
        digest: env!("GUEST_QUICKJS_SHA256"),
        precompiled: &PRECOMPILED.0,
    });
}
