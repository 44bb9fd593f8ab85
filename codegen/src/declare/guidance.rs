//! Writes the additions of a tool file and of the server's metadata to the description, as part of the tool's doc
//! comment at the full level: usage, errors, examples.

use crate::description::Description;
use crate::text::{json, neutralise};
use crate::tool_file_format::{CommonError, Example, RateLimit};

/// Returns the parts in the order in which a script author needs them.
pub(super) fn parts(description: &Description) -> Vec<String> {
    let Some(file) = &description.metadata else {
        return Vec::new();
    };
    let mut parts = Vec::new();
    if let Some(usage) = &file.usage_guidance {
        parts.extend(usage.common_patterns.iter().map(|it| sentence(it)));
        parts.extend(
            usage
                .important_notes
                .iter()
                .map(|it| format!("Note: {}", sentence(it))),
        );
    }
    if let Some(errors) = &file.error_guidance {
        parts.extend(errors.common_errors.iter().map(error));
    }
    parts.extend(file.rate_limit.as_ref().map(rate_limit));
    parts.extend(file.examples.iter().map(example));
    if !file.related_tools.is_empty() {
        let names: Vec<String> = file.related_tools.iter().map(|it| neutralise(it)).collect();
        parts.push(format!("See also {}.", names.join(", ")));
    }
    parts
}

fn error(error: &CommonError) -> String {
    let cause = error
        .cause
        .as_deref()
        .map(|cause| format!(" ({})", neutralise(cause)));
    let solution = error
        .solution
        .as_deref()
        .map(neutralise)
        .unwrap_or_default();
    let text = format!(
        "Fails with {}{}: {solution}",
        neutralise(&error.error),
        cause.unwrap_or_default()
    );
    sentence(text.trim_end_matches(": "))
}

fn rate_limit(limit: &RateLimit) -> String {
    let calls = if limit.calls == 1 { "call" } else { "calls" };
    let note = limit
        .note
        .as_deref()
        .map(|note| format!(" ({})", neutralise(note)));
    format!(
        "At most {} {calls} per {}{}.",
        limit.calls,
        limit.per,
        note.unwrap_or_default()
    )
}

fn example(example: &Example) -> String {
    let about = example
        .description
        .as_deref()
        .map(|it| format!(" ({})", neutralise(it).trim_end_matches('.')));
    let input = json(&serde_json::Value::Object(example.input.clone()));
    let output = example
        .output
        .as_ref()
        .map(|output| format!(" gives {}", json(output)));
    let why = example
        .explanation
        .as_deref()
        .map(|it| format!(" {}", sentence(it)));
    format!(
        "Example{}: {input}{}.{}",
        about.unwrap_or_default(),
        output.unwrap_or_default(),
        why.unwrap_or_default()
    )
}

fn sentence(text: &str) -> String {
    let text = neutralise(text);
    if text.ends_with(['.', '!', '?', ':', ';']) {
        text
    } else {
        format!("{text}.")
    }
}
