//! `[...list, more]`, where the engine asks the list's iterator for each item. A list that is as
//! lists are is put in at once instead; for whatever else the spread is left to the engine.
//!
//! ```text
//! [a, ...b, c]     becomes   airlock_list([a, ...airlock_items(b), c])
//! ```
//!
//! Of such a list `airlock_items` makes a list with one item, which holds all of them, and
//! `airlock_list` puts them in its place.

use std::ops::ControlFlow;

use boa_ast::expression::Spread;
use boa_ast::expression::literal::ArrayLiteral;
use boa_ast::visitor::{VisitWith, Visitor};
use boa_ast::{Expression, Spanned, function::FunctionBody};
use boa_engine::object::builtins::JsArray;
use boa_engine::{Context, JsArgs, JsData, JsObject, JsResult, JsSymbol, JsValue, js_string};
use boa_gc::{Finalize, Trace};

use super::spans::Text;
use super::{Edit, Names, marks};
use crate::kept::Kept;
use crate::{moving, room};

pub(super) fn edits(script: &str, names: &Names, body: &FunctionBody) -> Vec<Edit> {
    let mut finder = Finder {
        text: Text::new(script),
        names,
        edits: Vec::new(),
    };
    let _ = finder.visit_function_body(body);
    finder.edits
}

struct Finder<'a> {
    text: Text<'a>,
    names: &'a Names,
    edits: Vec<Edit>,
}

impl Finder<'_> {
    fn put_in_at_once(&mut self, node: &ArrayLiteral) -> Option<()> {
        let start = self.text.offset(node.span().start())?;
        let end = self.text.offset(node.span().end())?;
        let whole = self.text.slice(start, end)?;
        if !whole.starts_with('[') || !whole.ends_with(']') {
            return None;
        }
        let mut spreads = Vec::new();
        for item in node.as_ref() {
            // Where a place is left empty the list is none of those that are read here.
            if let Expression::Spread(spread) = item.as_ref()? {
                spreads.push(self.of(spread)?);
            }
        }
        if spreads.is_empty() {
            return None;
        }
        let closing = closing(&self.names.list);
        self.open(start, &self.names.list);
        for (start, end) in spreads {
            self.open(start, &self.names.items);
            self.put(end, closing.clone());
        }
        self.put(end, closing);
        Some(())
    }

    /// Where what is spread begins and ends.
    fn of(&self, spread: &Spread) -> Option<(usize, usize)> {
        let start = self.text.start(spread.target())?;
        let end = self.text.end(spread.target())?;
        let before = self.text.slice(0, start)?.trim_end();
        (before.ends_with("...") && start < end).then_some((start, end))
    }

    fn open(&mut self, at: usize, name: &str) {
        self.put(at, marks::marked(&self.names.mark, &format!("{name}("), ""));
    }

    fn put(&mut self, at: usize, text: String) {
        self.edits.push(Edit {
            start: at,
            end: at,
            text,
            place: Some(at),
        });
    }
}

/// What ends both. The text of a function may end with it.
pub(super) fn closing(list: &str) -> String {
    format!("/*{list}*/)")
}

impl<'ast> Visitor<'ast> for Finder<'_> {
    type BreakTy = ();

    fn visit_array_literal(&mut self, node: &'ast ArrayLiteral) -> ControlFlow<()> {
        self.put_in_at_once(node);
        node.visit_with(self)
    }
}

/// Items that stand for one.
#[derive(Debug, Trace, Finalize, JsData)]
struct Items(Vec<JsValue>);

/// `airlock_items(value)`
pub(super) fn items(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    let value = args.get_or_undefined(0);
    let list = value.as_object().filter(JsObject::is_array);
    let items = list.and_then(|list| {
        let items = moving::items(&list)?;
        is_walked_as_usual(&list, context).then_some(items)
    });
    Ok(match items {
        Some(items) => {
            let items = JsObject::from_proto_and_data(None, Items(items));
            JsArray::from_iter([items.into()], context).into()
        }
        None => value.clone(),
    })
}

/// `airlock_list(list)`
pub(super) fn list(_: &JsValue, args: &[JsValue], context: &mut Context) -> JsResult<JsValue> {
    room::sweep_when_full();
    let given = args.get_or_undefined(0);
    let Some(parts) = given.as_object().and_then(|list| moving::items(&list)) else {
        return Ok(given.clone());
    };
    let mut all = Vec::with_capacity(parts.len());
    for item in parts {
        let object = item.as_object();
        match object.as_ref().and_then(JsObject::downcast_ref::<Items>) {
            Some(items) => all.extend_from_slice(&items.0),
            None => all.push(item.clone()),
        }
    }
    Ok(JsArray::from_iter(all, context).into())
}

/// Whether nobody has changed how lists are walked.
fn is_walked_as_usual(list: &JsObject, context: &Context) -> bool {
    let key = JsSymbol::iterator().into();
    let own = |object: &JsObject, key| object.borrow().properties().get(key);
    let arrays = context.intrinsics().constructors().array().prototype();
    let Ok(kept) = Kept::of(context) else {
        return false;
    };
    let is = |object: &JsObject, key, function: &JsObject| {
        let value = own(object, key).and_then(|it| it.value().cloned());
        value.and_then(|it| it.as_object()).as_ref() == Some(function)
    };
    list.prototype().as_ref() == Some(&arrays)
        && own(list, &key).is_none()
        && is(&arrays, &key, &kept.array_items)
        && is(
            &kept.array_steps,
            &js_string!("next").into(),
            &kept.array_next,
        )
}
