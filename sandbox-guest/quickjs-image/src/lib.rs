//! The second guest as it ships: pre-initialised and compiled ahead of time,
//! inside the binary that links this crate, where `cargo xtask engine quickjs`
//! was run before the build. It lies in a section of its own, [`SECTION`].

mod stack;

use guest_image::GuestImage;
pub use stack::SHADOW_STACK_BYTES;

/// The section of the binary that holds the image.
pub const SECTION: &str = ".airlock_quickjs";

/// QuickJS-NG, when this build carries it.
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

    /// Pages are this large or smaller on every machine that an image is built for.
    #[repr(C, align(65536))]
    struct PageAligned<T>(T);

    const BYTES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/quickjs.cwasm"));

    #[expect(
        unsafe_code,
        reason = "naming a link section is unsafe; this one is nobody else's"
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
