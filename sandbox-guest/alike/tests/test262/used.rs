//! A realm of the guest that several tests run in, for as long as none of them changes what
//! is in it. Making one takes longer than most tests.

use boa_engine::property::{PropertyDescriptor, PropertyKey};
use boa_engine::{JsObject, JsValue, js_string};
use guest_alike::realm::{Realm, Which};

/// A test leaves its variables behind; too many of them get into the way of others.
const TESTS_MAX: usize = 40;

pub(crate) struct Used {
    realm: Realm,
    kept: Vec<Kept>,
    tests: usize,
}

/// An object as it was.
struct Kept {
    object: JsObject,
    prototype: Option<JsObject>,
    properties: Vec<(PropertyKey, PropertyDescriptor)>,
    /// Whether it may get more.
    grows: bool,
}

impl Used {
    pub(crate) fn new() -> Result<Self, String> {
        let mut realm = Realm::new(Which::Guest)?;
        crate::case::offer(&mut realm);
        let kept = standard(&mut realm);
        Ok(Self {
            realm,
            kept,
            tests: 0,
        })
    }

    pub(crate) fn realm(&mut self) -> &mut Realm {
        self.tests += 1;
        &mut self.realm
    }

    pub(crate) fn is_as_it_was(&self) -> bool {
        self.tests < TESTS_MAX && self.kept.iter().all(Kept::is_as_it_was)
    }
}

/// The global object, what it holds, and the prototypes of that.
fn standard(realm: &mut Realm) -> Vec<Kept> {
    let global = realm.context().global_object();
    let mut objects = vec![global.clone()];
    let of_class = PropertyKey::from(js_string!("prototype"));
    let mut at = 0;
    while let Some(object) = objects.get(at).cloned() {
        let is_near = at == 0 || object.is_callable();
        for (key, property) in properties(&object) {
            let leads_on = at == 0 || (is_near && key == of_class);
            let value = property.value().and_then(JsValue::as_object);
            if let Some(value) = value.filter(|_| leads_on)
                && !objects.contains(&value)
            {
                objects.push(value);
            }
        }
        if let Some(prototype) = object.prototype().filter(|it| !objects.contains(it)) {
            objects.push(prototype);
        }
        at += 1;
    }
    objects
        .into_iter()
        .map(|object| Kept {
            prototype: object.prototype(),
            properties: properties(&object),
            grows: object == global,
            object,
        })
        .collect()
}

fn properties(object: &JsObject) -> Vec<(PropertyKey, PropertyDescriptor)> {
    let object = object.borrow();
    let keys = object.shape().keys();
    keys.into_iter()
        .filter_map(|key| Some((key.clone(), object.properties().get(&key)?)))
        .collect()
}

impl Kept {
    fn is_as_it_was(&self) -> bool {
        let object = self.object.borrow();
        let has_still = |(key, before): &(PropertyKey, PropertyDescriptor)| {
            let now = object.properties().get(key);
            now.is_some_and(|now| is_same(before, &now))
        };
        let has_no_more = || self.grows || object.shape().keys().len() == self.properties.len();
        let has_no_items = || object.properties().index_properties().next().is_none();
        object.prototype() == self.prototype
            && self.properties.iter().all(has_still)
            && has_no_more()
            && has_no_items()
    }
}

fn is_same(before: &PropertyDescriptor, now: &PropertyDescriptor) -> bool {
    let same = |before: Option<&JsValue>, now: Option<&JsValue>| match (before, now) {
        (Some(before), Some(now)) => JsValue::same_value(before, now),
        (before, now) => before.is_none() && now.is_none(),
    };
    same(before.value(), now.value())
        && same(before.get(), now.get())
        && same(before.set(), now.set())
        && before.writable() == now.writable()
        && before.enumerable() == now.enumerable()
        && before.configurable() == now.configurable()
}
