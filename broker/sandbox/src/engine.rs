//! The JavaScript engines that can run a script.

use std::fmt;

use guest_image::GuestImage;

/// The JavaScript engines. [`Self::image`] returns `None` for an engine that this build does not
/// contain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JsEngine {
    /// Boa, which every build contains.
    #[default]
    Boa,
    /// QuickJS-NG, which a build contains if its image existed at build time.
    QuickJs,
}

impl JsEngine {
    pub const ALL: [Self; 2] = [Self::Boa, Self::QuickJs];

    /// Returns the name in flags, files and the journal.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Boa => "boa",
            Self::QuickJs => "quickjs",
        }
    }

    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|engine| engine.name() == name)
    }

    /// Returns the guest that this program contains, if there is one.
    #[must_use]
    pub fn image(self) -> Option<GuestImage> {
        match self {
            Self::Boa => Some(guest_image::BOA),
            Self::QuickJs => quickjs_image::quickjs(),
        }
    }

    /// Returns the size in bytes of the shadow stack at the beginning of the guest's memory. The
    /// linker fixes it.
    pub(super) fn shadow_stack_bytes(self) -> usize {
        match self {
            Self::Boa => wasmtime_config::SHADOW_STACK_BYTES,
            Self::QuickJs => quickjs_image::SHADOW_STACK_BYTES,
        }
    }

    /// Returns common language features that this engine does not have.
    #[must_use]
    pub fn lacks(self) -> &'static [&'static str] {
        match self {
            Self::Boa => &[
                "Intl.DisplayNames",
                "Intl.DurationFormat",
                "Intl.Locale",
                "Intl.Segmenter",
            ],
            Self::QuickJs => &[
                "Intl.DisplayNames",
                "Intl.DurationFormat",
                "Intl.Locale",
                "Intl.Segmenter",
                "Temporal",
            ],
        }
    }
}

impl fmt::Display for JsEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
