//! `match`, `replace` and `split` with an expression, all at once if the script cannot observe the
//! steps: the expression has the standard class, and no function of that class was replaced. The
//! engine handles other expressions step by step.

use boa_engine::object::builtins::JsArray;
use boa_engine::property::PropertyKey;
use boa_engine::{Context, JsArgs, JsObject, JsResult, JsString, JsSymbol, JsValue, js_string};
use regress::Match;

use super::{MatchCall, Regexes, program, usual};
use crate::builtin::{self, Native};
use crate::template::{BuiltText, Template};

pub(super) fn install(prototype: &JsObject, context: &mut Context) -> JsResult<()> {
    let functions: [(JsSymbol, Native); 3] = [
        (JsSymbol::r#match(), r#match),
        (JsSymbol::replace(), replace),
        (JsSymbol::split(), split),
    ];
    for (symbol, native) in functions {
        builtin::replace(prototype, symbol, native, context)?;
    }
    Ok(())
}

/// Returns an object's own data property.
fn own(object: &JsObject, key: &PropertyKey) -> Option<JsValue> {
    object.borrow().properties().get(key)?.value().cloned()
}

fn is(value: Option<JsValue>, expected: &JsObject) -> bool {
    value
        .and_then(|value| value.as_object())
        .is_some_and(|object| JsObject::equals(&object, expected))
}

impl Regexes {
    /// Whether an object has the standard class and no own property with one of these names.
    fn is_plain(&self, object: &JsObject, names: &[&str]) -> bool {
        let has_own = |name: &&str| {
            let key = PropertyKey::from(js_string!(*name));
            object.borrow().properties().contains_key(&key)
        };
        let prototype = object.prototype();
        prototype.is_some_and(|prototype| JsObject::equals(&prototype, &self.prototype))
            && !names.iter().any(has_own)
    }

    pub(super) fn have_exec(&self, object: &JsObject) -> bool {
        let exec = own(&self.prototype, &js_string!("exec").into());
        self.is_plain(object, &["exec"]) && is(exec, &self.exec)
    }

    fn have_flags(&self, object: &JsObject) -> bool {
        let flags = program::getter(&self.prototype, "flags");
        self.is_plain(object, &["flags"])
            && self.is_plain(object, &program::FLAGS)
            && flags.is_ok_and(|flags| JsObject::equals(&flags, &self.flags))
            && self.programs.tell_flags(&self.prototype)
    }

    /// Whether a copy of this expression would behave in the same way. Creating a copy also reads
    /// the constructor and `Symbol.match`.
    fn have_species(&self, object: &JsObject) -> bool {
        let constructor = own(&self.prototype, &js_string!("constructor").into());
        let species = program::getter(&self.constructor, JsSymbol::species());
        let is_one = PropertyKey::from(JsSymbol::r#match());
        let has_own = object.borrow().properties().contains_key(&is_one);
        !has_own
            && own(&self.prototype, &is_one).is_some()
            && self.is_plain(object, &["constructor"])
            && is(constructor, &self.constructor)
            && species.is_ok_and(|species| JsObject::equals(&species, &self.species))
    }
}

/// Returns an expression and a text if the script cannot observe the matching.
fn unwatched(
    this: &JsValue,
    args: &[JsValue],
    context: &mut Context,
) -> JsResult<Option<MatchCall>> {
    usual(this, args, context, |regexes, matching| {
        regexes.have_exec(&matching.object) && regexes.have_flags(&matching.object)
    })
}

impl MatchCall {
    /// Returns all matches of a global expression, from the beginning. `lastIndex` is reset, as
    /// after a full iteration.
    fn all(&self, context: &mut Context) -> JsResult<Vec<Match>> {
        self.object.set(js_string!("lastIndex"), 0, true, context)?;
        let mut all = Vec::new();
        let mut from = 0;
        while let Some(found) = self.at_or_behind(from) {
            from = found.end();
            if found.start() == found.end() {
                from = self.subject.after(from, self.program.full_unicode);
            }
            all.push(found);
        }
        Ok(all)
    }
}

fn r#match(
    this: &JsValue,
    args: &[JsValue],
    original: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    let Some(matching) = unwatched(this, args, context)?.filter(|it| it.program.global) else {
        return original.call(this, args, context);
    };
    let all = matching.all(context)?;
    if all.is_empty() {
        return Ok(JsValue::null());
    }
    let texts = all.iter().map(|found| matching.text(found.range()).into());
    Ok(JsArray::from_iter(texts, context).into())
}

fn replace(
    this: &JsValue,
    args: &[JsValue],
    original: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    let by = args.get_or_undefined(1);
    let (function, text) = (by.as_callable(), by.as_string());
    let template = text.as_ref().map(Template::new);
    let is_usual = function.is_some() || template.as_ref().is_some_and(|it| !it.has_names());
    let Some(matching) = unwatched(this, args, context)?.filter(|_| is_usual) else {
        return original.call(this, args, context);
    };
    let all = if matching.program.global {
        matching.all(context)?
    } else {
        matching.step(context)?.into_iter().collect()
    };
    let subject = matching.subject.text.as_str();
    if let Some(template) = template {
        let mut made = BuiltText::new(subject);
        for found in &all {
            let groups: Vec<_> = (1..=found.captures.len())
                .map(|group| found.group(group).map(|range| (range.start, range.end)))
                .collect();
            template.fill(&mut made, (found.start(), found.end()), &groups);
        }
        return Ok(made.finish().into());
    }
    let mut texts = Vec::new();
    for found in &all {
        texts.push(match &function {
            Some(function) => asked(&matching, found, function, context)?,
            None => JsString::default(),
        });
    }
    let mut made = BuiltText::new(subject);
    for (found, text) in all.iter().zip(&texts) {
        made.put(found.start(), text.as_str(), found.end());
    }
    Ok(made.finish().into())
}

/// Calls the script's function for the replacement of a match.
fn asked(
    matching: &MatchCall,
    found: &Match,
    function: &JsObject,
    context: &mut Context,
) -> JsResult<JsString> {
    let mut args: Vec<JsValue> = found
        .groups()
        .map(|range| matching.text_or_undefined(range))
        .collect();
    args.push(found.start().into());
    args.push(matching.subject.text.clone().into());
    let groups = matching.named_groups(found, context)?;
    if !groups.is_undefined() {
        args.push(groups);
    }
    function
        .call(&JsValue::undefined(), &args, context)?
        .to_string(context)
}

fn split(
    this: &JsValue,
    args: &[JsValue],
    original: &JsObject,
    context: &mut Context,
) -> JsResult<JsValue> {
    let regexes = Regexes::of(context)?;
    let matching = unwatched(this, args, context)?.filter(|matching| {
        !matching.program.full_unicode && regexes.have_species(&matching.object)
    });
    let (Some(matching), Some(limit)) = (matching, builtin::limit(args, context)?) else {
        return original.call(this, args, context);
    };
    let mut parts = parts(&matching);
    parts.truncate(limit);
    Ok(JsArray::from_iter(parts, context).into())
}

/// Returns the texts between the matches, and the groups of the matches.
fn parts(matching: &MatchCall) -> Vec<JsValue> {
    let subject = &matching.subject;
    let (mut parts, mut from, mut kept_until) = (Vec::new(), 0, 0);
    if subject.len() == 0 {
        if matching.program.find(subject, 0).is_none() {
            parts.push(subject.text.clone().into());
        }
        return parts;
    }
    while let Some(found) = matching.program.find(subject, from) {
        if found.start() >= subject.len() {
            break;
        }
        if found.end() == kept_until {
            from = found.start() + 1;
            continue;
        }
        parts.push(matching.text(kept_until..found.start()).into());
        parts.extend(
            found
                .groups()
                .skip(1)
                .map(|range| matching.text_or_undefined(range)),
        );
        kept_until = found.end();
        from = kept_until;
    }
    parts.push(matching.text(kept_until..subject.len()).into());
    parts
}
