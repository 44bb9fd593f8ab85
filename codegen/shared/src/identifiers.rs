//! Which names a script can write, and which of them already mean something there.

use crate::text::is_invisible;

/// Whether `name` can be written after a dot, or declared, as it is.
#[must_use]
pub fn is_identifier(name: &str) -> bool {
    name.starts_with(starts_identifier) && name.chars().all(continues_identifier)
}

/// Whether an identifier can begin with this character.
#[must_use]
pub fn starts_identifier(c: char) -> bool {
    c == '$' || c == '_' || (unicode_ident::is_xid_start(c) && !is_invisible(c))
}

/// Whether an identifier can go on with this character.
#[must_use]
pub fn continues_identifier(c: char) -> bool {
    (c == '$' || unicode_ident::is_xid_continue(c)) && !is_invisible(c)
}

/// Names to which the language itself gives a meaning on any object: an object with
/// `then` is awaited, one with `toJSON` is serialised by it.
#[must_use]
pub fn is_unsafe_member(name: &str) -> bool {
    const UNSAFE: [&str; 15] = [
        "__defineGetter__",
        "__defineSetter__",
        "__lookupGetter__",
        "__lookupSetter__",
        "__proto__",
        "constructor",
        "hasOwnProperty",
        "isPrototypeOf",
        "propertyIsEnumerable",
        "prototype",
        "then",
        "toJSON",
        "toLocaleString",
        "toString",
        "valueOf",
    ];
    UNSAFE.contains(&name)
}

/// Words of the language, and what a script expects to find: no global of ours takes these names.
#[must_use]
pub fn is_known_global(name: &str) -> bool {
    RESERVED_WORDS.contains(&name) || GLOBALS.contains(&name) || is_unsafe_member(name)
}

/// Members that the language asks every object for; a server has none of them, and asking is no
/// mistake. The guests have the same list, which shares no crate with this one; the broker's test
/// `what_the_language_asks_a_server_for_is_no_mistake_in_a_guest_either` holds them together.
pub const ASKED_BY_THE_LANGUAGE: [&str; 7] = [
    "then",
    "toJSON",
    "toString",
    "valueOf",
    "constructor",
    "inspect",
    "$$typeof",
];

const RESERVED_WORDS: [&str; 53] = [
    "abstract",
    "any",
    "arguments",
    "as",
    "async",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "debugger",
    "declare",
    "default",
    "delete",
    "do",
    "else",
    "enum",
    "eval",
    "export",
    "extends",
    "false",
    "finally",
    "for",
    "function",
    "if",
    "implements",
    "import",
    "in",
    "instanceof",
    "interface",
    "let",
    "namespace",
    "new",
    "null",
    "of",
    "package",
    "private",
    "protected",
    "public",
    "return",
    "static",
    "super",
    "switch",
    "this",
    "throw",
    "true",
    "try",
    "type",
    "typeof",
    "void",
    "var",
];

const GLOBALS: [&str; 84] = [
    "while",
    "with",
    "yield",
    "AggregateError",
    "Array",
    "ArrayBuffer",
    "AsyncIterator",
    "Atomics",
    "BigInt",
    "BigInt64Array",
    "BigUint64Array",
    "Boolean",
    "DataView",
    "Date",
    "Error",
    "EvalError",
    "FinalizationRegistry",
    "Float16Array",
    "Float32Array",
    "Float64Array",
    "Function",
    "Infinity",
    "Int16Array",
    "Int32Array",
    "Int8Array",
    "Intl",
    "Iterator",
    "JSON",
    "Map",
    "Math",
    "NaN",
    "Number",
    "Object",
    "Promise",
    "Proxy",
    "RangeError",
    "ReferenceError",
    "Reflect",
    "RegExp",
    "Set",
    "ShadowRealm",
    "SharedArrayBuffer",
    "String",
    "Symbol",
    "SyntaxError",
    "Temporal",
    "TextDecoder",
    "TextEncoder",
    "ToolError",
    "TypeError",
    "URIError",
    "URL",
    "URLSearchParams",
    "Uint16Array",
    "Uint32Array",
    "Uint8Array",
    "Uint8ClampedArray",
    "WeakMap",
    "WeakRef",
    "WeakSet",
    "WebAssembly",
    "atob",
    "btoa",
    "clearInterval",
    "clearTimeout",
    "console",
    "crypto",
    "decodeURI",
    "decodeURIComponent",
    "encodeURI",
    "encodeURIComponent",
    "escape",
    "exports",
    "globalThis",
    "input",
    "int",
    "isFinite",
    "isNaN",
    "module",
    "parseFloat",
    "parseInt",
    "performance",
    "queueMicrotask",
    "require",
];
