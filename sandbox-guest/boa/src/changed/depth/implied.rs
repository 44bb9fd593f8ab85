//! Calls that nobody writes down: of a getter where a member is read, of `toJSON` where JSON is
//! written, of `valueOf` where something is added up. In a script that has one of these words
//! any function may be called from anywhere.

use boa_interner::{Interner, Sym};
use rustc_hash::{FxHashMap, FxHashSet};

/// Names with which a script makes such functions.
const MAKERS: [&str; 9] = [
    "EventTarget",
    "Iterator",
    "Proxy",
    "Symbol",
    "__defineGetter__",
    "__defineSetter__",
    "addEventListener",
    "defineProperties",
    "defineProperty",
];

/// Members that the language, or something built in, calls by itself where an object has them.
const CALLED: [&str; 7] = [
    "exec",
    "join",
    "toISOString",
    "toJSON",
    "toLocaleString",
    "toString",
    "valueOf",
];

/// What is built in and calls what it is given, and from which argument on it does.
const CALLERS: [(&str, usize); 26] = [
    ("Promise", 0),
    ("apply", 0),
    ("bind", 0),
    ("call", 0),
    ("construct", 0),
    ("every", 0),
    ("filter", 0),
    ("find", 0),
    ("findIndex", 0),
    ("findLast", 0),
    ("findLastIndex", 0),
    ("flatMap", 0),
    ("forEach", 0),
    ("from", 1),
    ("groupBy", 1),
    ("map", 0),
    ("parse", 1),
    ("reduce", 0),
    ("reduceRight", 0),
    ("replace", 1),
    ("replaceAll", 1),
    ("some", 0),
    ("sort", 0),
    ("stringify", 1),
    ("toSorted", 0),
    ("try", 0),
];

/// A member that is a function and that no script defines.
const CONSTRUCTOR: &str = "constructor";

/// Methods of functions that call them.
const OF_FUNCTIONS: [&str; 3] = ["apply", "bind", "call"];

/// Classes of which nothing that is built in calls a member.
const PLAIN: [&str; 8] = [
    "AggregateError",
    "Error",
    "EvalError",
    "RangeError",
    "ReferenceError",
    "SyntaxError",
    "TypeError",
    "URIError",
];

/// Those of these names that the script has.
pub(super) struct Words {
    makers: FxHashSet<Sym>,
    called: FxHashSet<Sym>,
    callers: FxHashMap<Sym, usize>,
    of_functions: FxHashSet<Sym>,
    plain: FxHashSet<Sym>,
    create: Option<Sym>,
    constructor: Option<Sym>,
}

impl Words {
    pub(super) fn of(interner: &Interner) -> Self {
        let known = |names: &[&str]| {
            names
                .iter()
                .filter_map(|name| interner.get(*name))
                .collect()
        };
        let callers = CALLERS.iter();
        Self {
            makers: known(&MAKERS),
            called: known(&CALLED),
            callers: callers
                .filter_map(|(name, from)| Some((interner.get(*name)?, *from)))
                .collect(),
            of_functions: known(&OF_FUNCTIONS),
            plain: known(&PLAIN),
            create: interner.get("create"),
            constructor: interner.get(CONSTRUCTOR),
        }
    }

    /// Whether it is enough to use this name.
    pub(super) fn makes(&self, name: Sym) -> bool {
        self.makers.contains(&name)
    }

    /// Whether it is enough to have a member of this name.
    pub(super) fn is_called(&self, name: Sym) -> bool {
        self.called.contains(&name)
    }

    /// Whether a class of this name, which is none of the script's, leaves its members alone.
    pub(super) fn is_plain(&self, class: Sym) -> bool {
        self.plain.contains(&class)
    }

    /// Whether this is called on a function, and calls it.
    pub(super) fn is_of_functions(&self, name: Sym) -> bool {
        self.of_functions.contains(&name)
    }

    /// Whether a member of this name is a function, whichever.
    pub(super) fn is_any(&self, name: Sym) -> bool {
        self.constructor == Some(name)
    }

    /// Whether this is `Object.create` with a description of members.
    pub(super) fn describes<T>(&self, name: Sym, arguments: &[T]) -> bool {
        self.create == Some(name) && arguments.len() > 1
    }

    /// The arguments that this may call.
    pub(super) fn calls<'a, T>(&self, name: Sym, arguments: &'a [T]) -> &'a [T] {
        let from = self.callers.get(&name);
        from.and_then(|from| arguments.get(*from..))
            .unwrap_or_default()
    }
}
