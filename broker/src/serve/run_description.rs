//! The description of `run_script`, which declares the tools if they fit.

use super::shown_list::ShownList;

/// Whether the description of `run_script` declares all tools.
pub(super) fn declares(shown: &ShownList) -> bool {
    declared_after(&introduction(shown), shown).is_some()
}

pub(super) fn declared_after<'a>(text: &str, shown: &'a ShownList) -> Option<&'a str> {
    shown.declarations(text.chars().count() + "\n\n".len())
}

pub(super) fn introduction(shown: &ShownList) -> String {
    let mut text = format!(
        "Runs one script that calls tools and returns a value. Call tools as \
         `await server.tool({{…}})`; loop, filter and combine in the script and return only what is \
         needed. No network, files or imports. Failed calls throw ToolError. Every call is decided \
         by rules. Servers: {}.",
        shown.tools.servers
    );
    if shown.can_extract {
        text.push_str(" `extract(value, schema)` has a model turn text into JSON.");
    }
    text
}
