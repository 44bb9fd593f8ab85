//! Compiled forms of a script's regular expressions. The engine's own compiled forms are private,
//! and are copied for every match. These are compiled once, and shared by all expressions with the
//! same source and flags.

use std::cell::RefCell;
use std::rc::Rc;

use boa_engine::object::builtins::JsRegExp;
use boa_engine::property::PropertyKey;
use boa_engine::string::CodePoint;
use boa_engine::{Context, JsNativeError, JsObject, JsResult, JsString, JsValue, js_string};
use regress::{Flags, Match, Regex};
use rustc_hash::FxHashMap;

use super::subject::Subject;

/// Number of recent expressions whose programs are found without reading the source.
const RECENT: usize = 8;
const PROGRAMS_MAX: usize = 256;

/// Getters of the prototype that return a flag, in the order of [`Program::flags`].
pub(super) const FLAGS: [&str; 8] = [
    "hasIndices",
    "global",
    "ignoreCase",
    "multiline",
    "dotAll",
    "unicode",
    "unicodeSets",
    "sticky",
];
const LETTERS: &str = "dgimsuvy";

pub(crate) struct Program {
    regex: Regex,
    pub(super) has_indices: bool,
    pub(super) global: bool,
    pub(super) sticky: bool,
    /// Whether a surrogate pair counts as one character.
    pub(super) full_unicode: bool,
}

impl Program {
    fn compile(source: &JsString, flags: u8) -> Option<Self> {
        let has = |at: usize| flags >> at & 1 == 1;
        let full_unicode = has(5) || has(6);
        let options = Flags {
            icase: has(2),
            multiline: has(3),
            dot_all: has(4),
            unicode: has(5),
            unicode_sets: has(6),
            ..Flags::default()
        };
        let source = unescaped(source)?;
        let regex = if full_unicode {
            let source = JsString::from(source.as_slice());
            let characters: Vec<u32> = source.code_points().map(CodePoint::as_u32).collect();
            Regex::from_unicode(characters.into_iter(), options)
        } else {
            Regex::from_unicode(source.into_iter().map(u32::from), options)
        };
        Some(Self {
            regex: regex.ok()?,
            has_indices: has(0),
            global: has(1),
            sticky: has(7),
            full_unicode,
        })
    }

    /// Returns the first match at or after `from`.
    pub(super) fn find(&self, subject: &Subject, from: usize) -> Option<Match> {
        let units = subject.units();
        if self.full_unicode && !subject.is_narrow() {
            self.regex.find_from_utf16(units, from).next()
        } else {
            self.regex.find_from_ucs2(units, from).next()
        }
    }
}

/// Restores the original source from the engine's form, in which every slash has a backslash and
/// every line break is an escape. Returns `None` if the original might have been in that form.
fn unescaped(source: &JsString) -> Option<Vec<u16>> {
    let [backslash, slash] = [b'\\', b'/'].map(u16::from);
    let told = source.to_vec();
    let mut written: Vec<u16> = Vec::with_capacity(told.len());
    let mut backslashes = 0;
    for unit in told {
        if unit == slash {
            written.pop().filter(|unit| *unit == backslash)?;
        }
        let is_letter_of_break = [b'n', b'r', b'u'].map(u16::from).contains(&unit);
        if is_letter_of_break && backslashes > 0 && backslashes % 2 == 0 {
            return None;
        }
        backslashes = if unit == backslash {
            backslashes + 1
        } else {
            0
        };
        written.push(unit);
    }
    Some(written)
}

/// `None` if the engine must run the expression.
type CachedProgram = Option<Rc<Program>>;

/// All programs of a run.
pub(super) struct Programs {
    source: JsObject,
    flags: [JsObject; 8],
    recent: RefCell<Vec<(JsObject, Rc<Program>)>>,
    known: RefCell<FxHashMap<(JsString, u8), CachedProgram>>,
}

impl Programs {
    pub(super) fn new(prototype: &JsObject) -> JsResult<Self> {
        let mut flags = Vec::new();
        for name in FLAGS {
            flags.push(getter(prototype, name)?);
        }
        let flags = flags.try_into().map_err(|_| missing())?;
        Ok(Self {
            source: getter(prototype, "source")?,
            flags,
            recent: RefCell::default(),
            known: RefCell::default(),
        })
    }

    /// Returns `/source/flags` of a regular expression as created.
    pub(super) fn text(&self, regex: &JsValue, context: &mut Context) -> JsResult<String> {
        let source = self.source.call(regex, &[], context)?;
        let source = source.as_string().unwrap_or_default();
        let mut text = format!("/{}/", source.to_std_string_lossy());
        for (letter, getter) in LETTERS.chars().zip(&self.flags) {
            if getter.call(regex, &[], context)?.to_boolean() {
                text.push(letter);
            }
        }
        Ok(text)
    }

    /// Whether the prototype still returns the original flags.
    pub(super) fn tell_flags(&self, prototype: &JsObject) -> bool {
        FLAGS.iter().zip(&self.flags).all(|(name, flag)| {
            getter(prototype, name).is_ok_and(|getter| JsObject::equals(&getter, flag))
        })
    }

    /// Returns the program of an object. Returns `None` if the object is not a regular expression,
    /// or if the engine must run the expression.
    pub(super) fn of(
        &self,
        object: &JsObject,
        context: &mut Context,
    ) -> JsResult<Option<Rc<Program>>> {
        if let Some(program) = self.recent(object) {
            return Ok(Some(program));
        }
        if JsRegExp::from_object(object.clone()).is_err() {
            return Ok(None);
        }
        let this = object.clone().into();
        let source = self.source.call(&this, &[], context)?;
        let Some(source) = source.as_string() else {
            return Ok(None);
        };
        let mut flags = 0;
        for (at, getter) in self.flags.iter().enumerate() {
            let is_set = getter.call(&this, &[], context)?.to_boolean();
            flags |= u8::from(is_set) << at;
        }
        let program = self.known(source, flags);
        if let Some(program) = &program {
            let mut recent = self.recent.borrow_mut();
            recent.truncate(RECENT - 1);
            recent.insert(0, (object.clone(), Rc::clone(program)));
        }
        Ok(program)
    }

    fn recent(&self, object: &JsObject) -> Option<Rc<Program>> {
        let mut recent = self.recent.borrow_mut();
        let at = recent
            .iter()
            .position(|(known, _)| JsObject::equals(known, object))?;
        if at > 0 {
            recent.swap(at, at - 1);
        }
        let (_, program) = recent.get(at.saturating_sub(1))?;
        Some(Rc::clone(program))
    }

    fn known(&self, source: JsString, flags: u8) -> CachedProgram {
        let mut known = self.known.borrow_mut();
        if known.len() >= PROGRAMS_MAX {
            known.clear();
        }
        known
            .entry((source, flags))
            .or_insert_with_key(|(source, flags)| Program::compile(source, *flags).map(Rc::new))
            .clone()
    }

    /// Forgets the recent expressions, because one of them may have been recompiled.
    pub(super) fn forget(&self) {
        self.recent.borrow_mut().clear();
    }
}

pub(super) fn getter(object: &JsObject, key: impl Into<Name>) -> JsResult<JsObject> {
    let Name(key) = key.into();
    let property = object.borrow().properties().get(&key);
    let getter = property.and_then(|property| property.get().cloned());
    Ok(getter
        .and_then(|getter| getter.as_object())
        .ok_or_else(missing)?)
}

pub(super) struct Name(PropertyKey);

impl From<&str> for Name {
    fn from(name: &str) -> Self {
        Self(js_string!(name).into())
    }
}

impl From<&&str> for Name {
    fn from(name: &&str) -> Self {
        Self::from(*name)
    }
}

impl From<boa_engine::JsSymbol> for Name {
    fn from(symbol: boa_engine::JsSymbol) -> Self {
        Self(symbol.into())
    }
}

fn missing() -> JsNativeError {
    JsNativeError::typ().with_message("regular expressions lack a getter")
}
