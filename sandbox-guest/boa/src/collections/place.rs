//! Tracks the positions of iterations in a map or set, and its empty places.

use std::cell::{Cell, RefCell};
use std::collections::hash_map::Entry;
use std::rc::{Rc, Weak};

use boa_engine::builtins::map::ordered_map::OrderedMap;
use boa_engine::builtins::set::ordered_set::OrderedSet;
use boa_engine::object::{JsObject, NativeObject};
use boa_engine::{Context, JsError, JsNativeError, JsResult, JsValue, js_string};
use rustc_hash::FxHashMap;

use crate::builtin;

/// Minimum number of empty places for a rebuild. A smaller map moves its members quickly.
const FEW: usize = 32;

/// Number of iterations whose position is updated in the time needed for one member, in a rebuild.
const TOLD_AT_ONCE: usize = 64;

thread_local! {
    /// Each map and set with iterations, by its address. An iteration holds the map, so the address
    /// is not reused meanwhile.
    static WALKED: RefCell<FxHashMap<usize, Weak<WalkedCollection>>> = RefCell::default();
}

/// The iterations of one map or set.
#[derive(Debug, Default)]
struct WalkedCollection {
    /// The position of each iteration.
    places: RefCell<Vec<usize>>,
    /// Indices in `places` that are free for reuse.
    free: RefCell<Vec<usize>>,
    /// All places before this one are empty.
    first: Cell<usize>,
    /// Whether a deletion leaves an empty place, so that no position changes.
    leaves_places: Cell<bool>,
}

/// The position of one iteration in a map or set, until its end.
#[derive(Debug)]
pub(super) struct Place {
    walked: Rc<WalkedCollection>,
    number: usize,
}

/// Operations that maps and sets share.
pub(super) trait Members: NativeObject + Clone {
    fn all_places(&self) -> usize;
    fn members(&self) -> usize;
    /// Returns the member at a place; `None` if the place is empty.
    fn at(&self, place: usize) -> Option<(&JsValue, &JsValue)>;
    /// Returns a copy without empty places, in which a deletion leaves an empty place.
    fn made_anew(&self, empty: &Empty) -> Self;
}

/// An empty map and an empty set in which a deletion leaves an empty place. In the engine, a
/// deletion does this during an iteration, and always in a copy that was made during an iteration.
pub(super) struct Empty {
    map: OrderedMap<JsValue>,
    set: OrderedSet,
}

impl Empty {
    pub(super) fn new(context: &mut Context) -> JsResult<Self> {
        Ok(Self {
            map: while_walked("Map", context)?,
            set: while_walked("Set", context)?,
        })
    }

    pub(super) fn of(context: &Context) -> JsResult<Rc<Self>> {
        context.get_data::<Rc<Self>>().cloned().ok_or_else(|| {
            JsError::from_native(JsNativeError::error().with_message("the guest is not set up"))
        })
    }
}

/// Returns a copy of a new collection, made while the engine's own iterator visits the collection.
fn while_walked<M: Members>(class: &str, context: &mut Context) -> JsResult<M> {
    let made_by = context.global_object().get(js_string!(class), context)?;
    let wrong = || JsNativeError::typ().with_message("not a class");
    let made_by = made_by.as_constructor().ok_or_else(wrong)?;
    let object = made_by.construct(&[], None, context)?;
    let values = builtin::prototype_of(class, context)?.get(js_string!("values"), context)?;
    let values = values.as_callable().ok_or_else(wrong)?;
    // If the iterator were collected, its iteration would end.
    let walks = values.call(&object.clone().into(), &[], context)?;
    let members = object.downcast_ref::<M>().map(|members| members.clone());
    drop(walks);
    Ok(members.ok_or_else(wrong)?)
}

impl Members for OrderedMap<JsValue> {
    fn all_places(&self) -> usize {
        self.full_len()
    }

    fn members(&self) -> usize {
        self.len()
    }

    fn at(&self, place: usize) -> Option<(&JsValue, &JsValue)> {
        self.get_index(place)
    }

    fn made_anew(&self, empty: &Empty) -> Self {
        let mut anew = empty.map.clone();
        for (key, value) in self.iter() {
            anew.insert(key.clone(), value.clone());
        }
        anew
    }
}

impl Members for OrderedSet {
    fn all_places(&self) -> usize {
        self.full_len()
    }

    fn members(&self) -> usize {
        self.len()
    }

    fn at(&self, place: usize) -> Option<(&JsValue, &JsValue)> {
        self.get_index(place).map(|member| (member, member))
    }

    fn made_anew(&self, empty: &Empty) -> Self {
        let mut anew = empty.set.clone();
        for member in self.iter() {
            anew.add(member.clone());
        }
        anew
    }
}

impl Place {
    /// Returns the first position in a map or set.
    pub(super) fn first_of(object: &JsObject) -> Self {
        let walked = WALKED.with_borrow_mut(|all| {
            let many = all.len() >= FEW && all.len() == all.capacity();
            if many {
                all.retain(|_, walked| walked.strong_count() > 0);
            }
            match all.entry(address(object)) {
                Entry::Occupied(mut known) => known.get().upgrade().unwrap_or_else(|| {
                    let walked = Rc::default();
                    known.insert(Rc::downgrade(&walked));
                    walked
                }),
                Entry::Vacant(unknown) => {
                    let walked = Rc::default();
                    unknown.insert(Rc::downgrade(&walked));
                    walked
                }
            }
        });
        let first = walked.first.get();
        let mut places = walked.places.borrow_mut();
        let number = walked.free.borrow_mut().pop().unwrap_or(places.len());
        match places.get_mut(number) {
            Some(place) => *place = first,
            None => places.push(first),
        }
        drop(places);
        Self { walked, number }
    }

    /// Returns the next member; `None` if there is currently none.
    pub(super) fn next<M: Members>(&self, members: &M) -> Option<(JsValue, JsValue)> {
        let from = self.walked.places.borrow().get(self.number).copied()?;
        let mut at = from.max(self.walked.first.get());
        let found = loop {
            if at >= members.all_places() {
                break None;
            }
            if let Some((key, value)) = members.at(at) {
                break Some((key.clone(), value.clone()));
            }
            at += 1;
        };
        if from <= self.walked.first.get() {
            self.walked.first.set(at);
        }
        if let Some(place) = self.walked.places.borrow_mut().get_mut(self.number) {
            *place = at + usize::from(found.is_some());
        }
        found
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Unused entries need no update in a rebuild.
        if let Some(place) = self.walked.places.borrow_mut().get_mut(self.number) {
            *place = 0;
        }
        self.walked.free.borrow_mut().push(self.number);
    }
}

/// Prepares a deletion, so that no iteration's position changes. Returns the number of places.
pub(super) fn ready<M: Members>(object: &JsObject, empty: &Empty) -> usize {
    if let Some(walked) = walked_now(object)
        && !walked.leaves_places.get()
    {
        make_anew::<M>(object, Some(&walked), empty);
    }
    let members = object.downcast_ref::<M>();
    members.map_or(0, |members| members.all_places())
}

/// Finishes a deletion; `before` is the number of places before the deletion.
pub(super) fn deleted<M: Members>(object: &JsObject, before: usize, empty: &Empty) {
    let count = |members: &M| (members.all_places(), members.members());
    let Some((places, members)) = object.downcast_ref::<M>().map(|it| count(&it)) else {
        return;
    };
    // The deletion moved all later members, so deletions do not yet leave empty places.
    if places < before {
        if members >= FEW {
            make_anew::<M>(object, None, empty);
        }
        return;
    }
    let empty_places = places - members;
    if empty_places <= members.max(FEW) {
        return;
    }
    let walked = walked_now(object);
    let told = walked.as_ref().map_or(0, |it| it.places.borrow().len());
    if empty_places > members + told / TOLD_AT_ONCE {
        make_anew::<M>(object, walked.as_deref(), empty);
    }
}

/// Updates the iterations after all members were deleted: they visit members that are added later.
pub(super) fn cleared(object: &JsObject) {
    if let Some(walked) = walked_now(object) {
        walked.places.borrow_mut().fill(0);
        walked.first.set(0);
    }
}

fn make_anew<M: Members>(object: &JsObject, walked: Option<&WalkedCollection>, empty: &Empty) {
    let Some(mut members) = object.downcast_mut::<M>() else {
        return;
    };
    if let Some(walked) = walked {
        walked.tell(&*members);
    }
    let anew = members.made_anew(empty);
    *members = anew;
}

impl WalkedCollection {
    /// Changes each position to the position without the empty places before it.
    fn tell<M: Members>(&self, members: &M) {
        let mut before = Vec::with_capacity(members.all_places() + 1);
        let mut count = 0;
        for place in 0..members.all_places() {
            before.push(count);
            count += usize::from(members.at(place).is_some());
        }
        for place in self.places.borrow_mut().iter_mut() {
            *place = before.get(*place).copied().unwrap_or(count);
        }
        self.first.set(0);
        self.leaves_places.set(true);
    }
}

fn walked_now(object: &JsObject) -> Option<Rc<WalkedCollection>> {
    WALKED.with_borrow(|all| all.get(&address(object))?.upgrade())
}

fn address(object: &JsObject) -> usize {
    std::ptr::from_ref(object.as_ref()).addr()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The collections are created at moments when garbage may be collected.
    #[test]
    fn what_is_deleted_from_what_is_made_anew_always_leaves_a_place() {
        let mut context = Context::default();
        for made in 0..20_000 {
            for _ in 0..made % 5 {
                let _ = JsObject::with_null_proto();
            }
            let empty = Empty::new(&mut context).unwrap();
            let (mut map, mut set) = (empty.map, empty.set);
            for member in [1, 2] {
                map.insert(member.into(), member.into());
                set.add(member.into());
            }
            assert!(map.remove(&1.into()).is_some(), "{made}");
            assert!(set.delete(&1.into()), "{made}");
            let places = (map.all_places(), set.all_places());
            assert_eq!(places, (2, 2), "{made}");
            assert_eq!((map.members(), set.members()), (1, 1), "{made}");
        }
    }
}
