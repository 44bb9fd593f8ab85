//! A guest realm that several tests share, as long as none of them changes its objects. Creating a
//! realm takes longer than most tests.

use boa_engine::property::{PropertyDescriptor, PropertyKey};
use boa_engine::{JsObject, JsValue, js_string};
use guest_differential::realm::{Realm, RealmKind};

/// Maximum number of tests per realm: each leaves variables behind, and too many variables disturb
/// other tests.
const TESTS_MAX: usize = 40;

pub(crate) struct SharedRealm {
    realm: Realm,
    kept: Vec<ObjectSnapshot>,
    tests: usize,
}

/// The state of an object before the tests.
struct ObjectSnapshot {
    object: JsObject,
    prototype: Option<JsObject>,
    properties: Vec<(PropertyKey, PropertyDescriptor)>,
    /// Whether new properties are allowed.
    grows: bool,
}

impl SharedRealm {
    pub(crate) fn new() -> Result<Self, String> {
        let mut realm = Realm::new(RealmKind::Guest)?;
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
        self.tests < TESTS_MAX && self.kept.iter().all(ObjectSnapshot::is_as_it_was)
    }
}

/// Returns the global object, its members, and their prototypes.
fn standard(realm: &mut Realm) -> Vec<ObjectSnapshot> {
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
        .map(|object| ObjectSnapshot {
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

impl ObjectSnapshot {
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
