//! Builds text: one byte per character until a wide character is added.

use boa_engine::JsString;
use boa_engine::string::{JsStr, JsStrVariant};

#[derive(Default)]
pub(crate) struct StringBuilder {
    narrow: Vec<u8>,
    /// Replaces the narrow buffer, from the first wide piece on.
    wide: Option<Vec<u16>>,
}

impl StringBuilder {
    pub(crate) fn push(&mut self, piece: JsStr<'_>) {
        match piece.variant() {
            JsStrVariant::Latin1(bytes) => self.push_narrow(bytes),
            JsStrVariant::Utf16(units) => self.push_wide(units),
        }
    }

    /// Appends characters below U+0100, one byte each.
    pub(crate) fn push_narrow(&mut self, bytes: &[u8]) {
        match &mut self.wide {
            None => self.narrow.extend_from_slice(bytes),
            Some(wide) => wide.extend(bytes.iter().copied().map(u16::from)),
        }
    }

    pub(crate) fn push_wide(&mut self, units: &[u16]) {
        if units.is_empty() {
            return;
        }
        let narrow = &mut self.narrow;
        let wide = self
            .wide
            .get_or_insert_with(|| std::mem::take(narrow).into_iter().map(u16::from).collect());
        wide.extend_from_slice(units);
    }

    pub(crate) fn finish(&self) -> JsString {
        match &self.wide {
            Some(wide) => JsString::from(JsStr::utf16(wide)),
            None => JsString::from(JsStr::latin1(&self.narrow)),
        }
    }
}
