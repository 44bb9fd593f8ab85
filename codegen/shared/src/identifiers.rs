//! Decides which names a script can use, and which names already have a meaning in JavaScript.

use crate::text::is_invisible;

/// Whether `name` can be declared, or written after a dot, unchanged.
#[must_use]
pub fn is_identifier(name: &str) -> bool {
    name.starts_with(starts_identifier) && name.chars().all(continues_identifier)
}

/// Whether an identifier can begin with this character.
#[must_use]
pub fn starts_identifier(c: char) -> bool {
    c == '$' || c == '_' || (unicode_ident::is_xid_start(c) && !is_invisible(c))
}

/// Whether an identifier can contain this character after its first.
#[must_use]
pub fn continues_identifier(c: char) -> bool {
    (c == '$' || unicode_ident::is_xid_continue(c)) && !is_invisible(c)
}

/// Whether the language gives a name a meaning on any object: it awaits an object with `then`, and
/// uses `toJSON` to serialise.
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

/// Whether a name is reserved by the language or is a global that scripts expect. airlock never
/// defines a global with such a name.
#[must_use]
pub fn is_known_global(name: &str) -> bool {
    RESERVED_WORDS.contains(&name) || GLOBALS.contains(&name) || is_unsafe_member(name)
}

/// Members that the language looks up on every object. Server objects do not have them, and looking
/// them up is not a mistake in the script. The guests have the same list but share no crate with
/// this one. The broker's test `language_probes_of_server_objects_are_no_errors` checks this list
/// against the guests.
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
