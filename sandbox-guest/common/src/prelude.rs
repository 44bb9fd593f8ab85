//! The JavaScript part of what a script finds, which every JavaScript guest loads.

/// In the order in which they are loaded. Each file is one function that is called with the
/// native functions it may use.
pub const FILES: [(&str, &str); 7] = [
    ("errors.js", include_str!("../../prelude/errors.js")),
    ("console.js", include_str!("../../prelude/console.js")),
    ("web.js", include_str!("../../prelude/web.js")),
    ("url.js", include_str!("../../prelude/url.js")),
    ("locales.js", include_str!("../../prelude/locales.js")),
    ("numbers.js", include_str!("../../prelude/numbers.js")),
    ("calendar.js", include_str!("../../prelude/calendar.js")),
];
