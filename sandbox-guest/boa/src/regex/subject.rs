//! The text that expressions are matched against, in the matcher's encoding. A narrow text is
//! widened once, and not for every match.

use std::cell::RefCell;
use std::rc::Rc;

use boa_engine::JsString;
use boa_engine::string::JsStrVariant;

/// Minimum length of a text that is kept; a shorter text is widened faster than it is found.
const KEPT_UNITS_MIN: usize = 64;
/// Maximum length of a text that is kept.
const KEPT_UNITS_MAX: usize = 4 * 1024 * 1024;

#[derive(Clone)]
pub(crate) struct Subject {
    pub(super) text: JsString,
    /// The widened form of a narrow text.
    wide: Option<Rc<[u16]>>,
}

impl Subject {
    fn new(text: JsString) -> Self {
        let wide = match text.variant() {
            JsStrVariant::Latin1(bytes) => Some(bytes.iter().copied().map(u16::from).collect()),
            JsStrVariant::Utf16(_) => None,
        };
        Self { text, wide }
    }

    pub(super) fn len(&self) -> usize {
        self.text.len()
    }

    pub(super) fn is_narrow(&self) -> bool {
        self.wide.is_some()
    }

    pub(super) fn units(&self) -> &[u16] {
        match (&self.wide, self.text.variant()) {
            (Some(wide), _) => wide,
            (None, JsStrVariant::Utf16(units)) => units,
            (None, JsStrVariant::Latin1(_)) => &[],
        }
    }

    /// Whether this is the same text at the same address. Strings do not change while they are
    /// held.
    fn is(&self, text: &JsString) -> bool {
        match (self.text.variant(), text.variant()) {
            (JsStrVariant::Latin1(a), JsStrVariant::Latin1(b)) => std::ptr::eq(a, b),
            (JsStrVariant::Utf16(a), JsStrVariant::Utf16(b)) => std::ptr::eq(a, b),
            _ => false,
        }
    }

    /// Returns the position after an empty match.
    pub(super) fn after(&self, place: usize, full_unicode: bool) -> usize {
        if !full_unicode || place >= self.len() {
            return place + 1;
        }
        place + self.text.code_point_at(place).code_unit_count()
    }
}

/// The text of the last match.
#[derive(Default)]
pub(super) struct LastSubject(RefCell<Option<Subject>>);

impl LastSubject {
    pub(super) fn subject(&self, text: &JsString) -> Subject {
        if !(KEPT_UNITS_MIN..=KEPT_UNITS_MAX).contains(&text.len()) {
            return Subject::new(text.clone());
        }
        let mut last = self.0.borrow_mut();
        match &*last {
            Some(subject) if subject.is(text) => subject.clone(),
            _ => last.insert(Subject::new(text.clone())).clone(),
        }
    }
}
