//! Which JavaScript engine runs a script.

use std::fmt;

use guest_image::GuestImage;

/// The engines that there are. Which of them a build carries is asked of [`Self::image`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JsEngine {
    /// Boa: every build carries it.
    #[default]
    Boa,
    /// QuickJS-NG: carried by builds that found it made.
    QuickJs,
}

impl JsEngine {
    pub const ALL: [Self; 2] = [Self::Boa, Self::QuickJs];

    /// As flags, files and the journal name it.
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

    /// The guest that this program carries, when it does.
    #[must_use]
    pub fn image(self) -> Option<GuestImage> {
        match self {
            Self::Boa => Some(guest_image::BOA),
            Self::QuickJs => quickjs_image::quickjs(),
        }
    }

    /// The shadow stack at the beginning of its guest's memory, as it was linked.
    pub(super) fn shadow_stack_bytes(self) -> usize {
        match self {
            Self::Boa => cage::SHADOW_STACK_BYTES,
            Self::QuickJs => quickjs_image::SHADOW_STACK_BYTES,
        }
    }

    /// Words of the language that scripts know from elsewhere and this engine does not have.
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
