//! The JavaScript part of the globals, which every JavaScript guest loads.

/// The files in loading order. Each file is one function that is called with the native functions
/// that it may use.
pub const FILES: [(&str, &str); 7] = [
    ("errors.js", include_str!("../../prelude/errors.js")),
    ("console.js", include_str!("../../prelude/console.js")),
    ("web.js", include_str!("../../prelude/web.js")),
    ("url.js", include_str!("../../prelude/url.js")),
    ("locales.js", include_str!("../../prelude/locales.js")),
    ("numbers.js", include_str!("../../prelude/numbers.js")),
    ("calendar.js", include_str!("../../prelude/calendar.js")),
];
