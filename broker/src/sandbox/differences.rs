//! Where the engines differ by nature, or by faults that nobody here can mend: what the
//! documents say of it, what `airlock engines` lists, and what the comparison of both engines
//! (`cargo xtask engines`) keeps to.

/// One way in which the engines differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineDifference {
    pub name: &'static str,
    pub boa: &'static str,
    pub quickjs: &'static str,
    pub why: &'static str,
    /// How made-up scripts keep to it.
    pub compared: Compared,
}

/// What a comparison of both engines does about a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compared {
    /// This is not looked at, in any script.
    Never,
    /// Scripts that are made up do not do it.
    NotMadeUp,
    /// A script that says all words of one of these is left out.
    LeftOut(&'static [&'static [&'static str]]),
    /// Of a script that says one of these the lines are compared in any order.
    Unordered(&'static [&'static str]),
}

use Compared::{LeftOut, Never, NotMadeUp, Unordered};

pub const DIFFERENCES: [EngineDifference; 41] = [
    EngineDifference {
        name: "words of errors",
        boa: "Boa's",
        quickjs: "QuickJS's",
        why: "what each engine's authors wrote; what this project says is the same on both",
        compared: Never,
    },
    EngineDifference {
        name: "columns",
        boa: "a call at its bracket, `new` at the word, a name declared twice at the name, a text that does not end where it ends",
        quickjs: "a call that is no tool's at its member, `new` at the class or its last argument, a name declared twice behind it, a text that does not end where it begins",
        why: "what each engine notes of its code; for a call in the arguments of another both may name the outer one; lines are compared",
        compared: Never,
    },
    EngineDifference {
        name: "`Temporal`",
        boa: "there",
        quickjs: "absent; the check before a run warns",
        why: "QuickJS does not have it",
        compared: LeftOut(&[&["Temporal"]]),
    },
    EngineDifference {
        name: "the youngest built-ins",
        boa: "no `Float16Array`, `Error.isError`, `Math.sumPrecise`, `Math.f16round`, base64 and hex of `Uint8Array`, `transfer` of `ArrayBuffer`, `DisposableStack`, `Iterator.zip`, `chunks`, `windows`, `join`",
        quickjs: "there",
        why: "Boa does not have them yet",
        compared: LeftOut(&[
            &["Float16Array"],
            &["isError"],
            &["f16round"],
            &["sumPrecise"],
            &["Base64"],
            &["Hex("],
            &[".transfer("],
            &["DisposableStack"],
            &["SuppressedError"],
            &["Iterator.zip"],
        ]),
    },
    EngineDifference {
        name: "time zones by name in `Intl`",
        boa: "those that `Temporal` knows",
        quickjs: "a `RangeError`; UTC and offsets are there",
        why: "their tables come with `Temporal`",
        compared: NotMadeUp,
    },
    EngineDifference {
        name: "recursion without end",
        boa: "uncaught `limit-stack`; inside `try` a `RangeError`, but not in modules, nor where only default values or fields of classes lead back, as 0015 lists",
        quickjs: "uncaught `limit-stack`; inside `try` a `RangeError`; who tries again at every level meets the CPU limit",
        why: "each engine counts its own stack",
        compared: NotMadeUp,
    },
    EngineDifference {
        name: "texts of 2³⁰ characters",
        boa: "`repeat` and padding a `RangeError` before memory is taken; anything else the memory limit",
        quickjs: "a `RangeError` before memory is taken; appending an `InternalError`",
        why: "each engine has its own bound",
        compared: Never,
    },
    EngineDifference {
        name: "text of functions",
        boa: "native code for every class; one line",
        quickjs: "as written; native code on three lines",
        why: "Boa does not keep the text of a class",
        compared: Never,
    },
    EngineDifference {
        name: "order of what built-ins have",
        boa: "as Boa makes them",
        quickjs: "as QuickJS makes them",
        why: "the language promises an order of making, not of being listed in the standard",
        compared: Never,
    },
    EngineDifference {
        name: "`source` of an expression",
        boa: "escapes every slash, and line ends",
        quickjs: "escapes slashes outside classes",
        why: "any text that reads as the same expression is right",
        compared: Never,
    },
    EngineDifference {
        name: "last digits",
        boa: "Rust's mathematics",
        quickjs: "C's mathematics",
        why: "the language leaves the last digits of `Math.sin` and its kin open; twelve are compared",
        compared: Never,
    },
    EngineDifference {
        name: "fractions in other radices",
        boa: "`(0.1).toString(32)` ends where it is exact enough",
        quickjs: "may end one digit later",
        why: "the language leaves the digits open",
        compared: NotMadeUp,
    },
    EngineDifference {
        name: "turns of asynchronous loops",
        boa: "as specified in `for await`; more in `Array.fromAsync`",
        quickjs: "one fewer when a `for await` over plain items ends early",
        why: "the prelude writes `Array.fromAsync` for Boa, QuickJS waits for no `return` that is not there; what depends on it has no order of its own",
        compared: Unordered(&["for await", "async function*", "async *", "fromAsync"]),
    },
    EngineDifference {
        name: "iterators whose `next` throws",
        boa: "are left alone, as specified",
        quickjs: "are asked to return, in `new Map`, `new Set`, `for await` and `Array.fromAsync`",
        why: "QuickJS closes on every error",
        compared: NotMadeUp,
    },
    EngineDifference {
        name: "items that a pattern leaves out",
        boa: "`[, x] = items` asks the first for nothing",
        quickjs: "reads the first one's `value`",
        why: "only a getter there can tell",
        compared: NotMadeUp,
    },
    EngineDifference {
        name: "value of a postfix operator",
        boa: "`x++` of what is no number is `x` as it was",
        quickjs: "the number",
        why: "a fault of Boa's compiler; `x` itself becomes the same",
        compared: NotMadeUp,
    },
    EngineDifference {
        name: "functions in a `case`",
        boa: "`case list.some(x => x):` is a syntax error where the block around declares `x`",
        quickjs: "read",
        why: "a fault of Boa's parser",
        compared: NotMadeUp,
    },
    EngineDifference {
        name: "undeclared names in loops",
        boa: "`for (x of items)` makes a global",
        quickjs: "a `ReferenceError`, as in all strict code",
        why: "a fault of Boa's compiler; the check before a run warns of the name",
        compared: NotMadeUp,
    },
    EngineDifference {
        name: "names in the head of their own loop",
        boa: "`for (const x of f())` where `f` assigns to `x`: a `ReferenceError`",
        quickjs: "the assignment is lost",
        why: "QuickJS declares the name later",
        compared: NotMadeUp,
    },
    EngineDifference {
        name: "expressions that begin inside a character",
        boa: "at the half where `lastIndex` stands",
        quickjs: "at the whole character",
        why: "with `u` or `v`, and `lastIndex` between the halves of a pair; the matchers differ",
        compared: LeftOut(&[
            &["lastIndex", "ud83d"],
            &["lastIndex", "ude0"],
            &["v'", "ud83d"],
            &["v;", "ud83d"],
        ]),
    },
    EngineDifference {
        name: "comparisons that change what they sort",
        boa: "sorts what was there before",
        quickjs: "writes less, or more",
        why: "the language leaves it open",
        compared: LeftOut(&[
            &["list.length = 0; return 0"],
            &["list.push('pushed')"],
            &["turn * 31"],
        ]),
    },
    EngineDifference {
        name: "setters on prototypes of arrays",
        boa: "not seen by what is built in",
        quickjs: "seen by some of it",
        why: "both build lists directly where nobody is expected to look",
        compared: LeftOut(&[&["defineProperty(Array.prototype"], &["Array.prototype[1]"]]),
    },
    EngineDifference {
        name: "changed iterators of arrays",
        boa: "some built-ins do not ask them",
        quickjs: "others do not",
        why: "both read plain arrays directly",
        compared: LeftOut(&[
            &["Array.prototype[Symbol.iterator] ="],
            &["setPrototypeOf(Array.prototype"],
        ]),
    },
    EngineDifference {
        name: "expressions that are not what they were",
        boa: "asked as specified",
        quickjs: "`matchAll` asks in another order; one without a prototype is read by its source",
        why: "only a proxy or a changed prototype can tell",
        compared: LeftOut(&[
            &["new Proxy(r"],
            &["setPrototypeOf(r"],
            &["RegExp.prototype"],
            &["r.exec ="],
            &["r.compile"],
            &["extends RegExp"],
            &["defineProperty(r"],
            &["r.constructor"],
            &["flags:"],
        ]),
    },
    EngineDifference {
        name: "dates from objects",
        boa: "`new Date([3])` is none",
        quickjs: "`new Date([3])` is one of 2001",
        why: "a text that comes from an object goes to the engine's own reader",
        compared: NotMadeUp,
    },
    EngineDifference {
        name: "ties in `toExponential`",
        boa: "`(8.5).toExponential(0)` is `8e+0`",
        quickjs: "`9e+0`, as specified",
        why: "Boa rounds to even",
        compared: NotMadeUp,
    },
    EngineDifference {
        name: "characters of large numbers",
        boa: "`String.fromCharCode(1e21)` is U+FFFF",
        quickjs: "U+0000, as specified",
        why: "a fault of Boa's; nobody means such a number",
        compared: NotMadeUp,
    },
    EngineDifference {
        name: "one to the power of nothing",
        boa: "`1 ** NaN` is 1",
        quickjs: "`NaN`, as specified",
        why: "a fault of Boa's",
        compared: NotMadeUp,
    },
    EngineDifference {
        name: "lists behind proxies",
        boa: "`Array.from` and spreading ask for `length` first",
        quickjs: "`Symbol.iterator`, as specified",
        why: "only a proxy can tell",
        compared: LeftOut(&[&["new Proxy(["]]),
    },
    EngineDifference {
        name: "members of nothing in patterns",
        boa: "`[x.y] = items` reads an item before it finds that `x` is undefined",
        quickjs: "finds it first",
        why: "revisions of the language differ; both end in the same `TypeError`",
        compared: NotMadeUp,
    },
    EngineDifference {
        name: "blanks around a BigInt",
        boa: "`BigInt('\\ufeff1')` is a `SyntaxError`",
        quickjs: "1, as specified",
        why: "a fault of Boa's",
        compared: NotMadeUp,
    },
    EngineDifference {
        name: "`JSON.parse` with a reviver",
        boa: "half a surrogate pair as an escape, and a number that is infinite, are a `SyntaxError`",
        quickjs: "read, as without a reviver on both",
        why: "Boa's own reader, which knows the texts of members",
        compared: LeftOut(&[
            &["JSON.parse", "\\u005cud"],
            &["JSON.parse", "\\u005cuD"],
            &["JSON.parse", "e400"],
        ]),
    },
    EngineDifference {
        name: "line ends behind a backslash in expressions",
        boa: "read with `u` and `v` too",
        quickjs: "a `SyntaxError` there, as specified",
        why: "Boa's matcher",
        compared: LeftOut(&[&["\\u005c\\u000a"]]),
    },
    EngineDifference {
        name: "`this` outside functions",
        boa: "`globalThis`",
        quickjs: "undefined",
        why: "a script is the body of a function, and each guest calls it in its way",
        compared: NotMadeUp,
    },
    EngineDifference {
        name: "sorting what cannot be written",
        boa: "writes every item back, and throws",
        quickjs: "writes those that moved",
        why: "only an item that is read-only can tell",
        compared: LeftOut(&[&["sort.call("], &["Object.freeze(list)", "sort"]]),
    },
    EngineDifference {
        name: "labels of loops inside loops",
        boa: "`break` out of a `for…of` to the label of a second one, which lies in a third, may begin the third again and again, until a limit ends the run",
        quickjs: "as specified",
        why: "a fault of Boa's compiler",
        compared: NotMadeUp,
    },
    EngineDifference {
        name: "parts of dates that are no numbers",
        boa: "`date.setHours(NaN)` leaves no date",
        quickjs: "leaves the date that it was",
        why: "a fault of QuickJS's",
        compared: NotMadeUp,
    },
    EngineDifference {
        name: "shifts of BigInts by more than there is room",
        boa: "of zero: zero",
        quickjs: "an error",
        why: "the language leaves the bound open",
        compared: NotMadeUp,
    },
    EngineDifference {
        name: "text of `Promise.any`'s error",
        boa: "has a message",
        quickjs: "has none, as specified",
        why: "Boa adds one",
        compared: LeftOut(&[
            &["Promise.any(", "String"],
            &["Promise.any(", "${"],
            &["Promise.any(", "+ "],
        ]),
    },
    EngineDifference {
        name: "names in their own declaration",
        boa: "`let b = (b = 1)` assigns",
        quickjs: "`for (let { x: n = n } of items)` reads",
        why: "each misses one of the places where a `ReferenceError` is specified",
        compared: NotMadeUp,
    },
    EngineDifference {
        name: "classes as executors",
        boa: "`f(new Promise(class {}))` may end the script without a word; where an executor fails in the constructor of a class, `new Promise` may throw",
        quickjs: "the promise is rejected",
        why: "a fault of Boa's",
        compared: LeftOut(&[
            &["new Promise(class"],
            &["new Promise((class"],
            &["Promise", "extends Set"],
        ]),
    },
];
