//! Limits of known hosts, by the name in their `clientInfo`: how much of a tool's description and of
//! a result their model gets, and how long they wait for a result.

use std::time::Duration;

use super::settings::ServeSettings;

/// Length of a tool's description that an unknown host is assumed to show, in characters.
const DESCRIPTION_CHARS_DEFAULT: usize = 2_000;
/// Time after which a run of an unknown host is paused while it waits for an approver.
const PAUSE_AFTER_DEFAULT: Duration = Duration::from_secs(40);

/// What a host's model gets of airlock's answers, and when the host gives up on a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HostLimits {
    /// Maximum length of a tool's description, in characters.
    pub(super) description_chars_max: usize,
    /// Maximum length of a value in a result, in bytes.
    pub(super) value_bytes_max: usize,
    /// Maximum length of a text in a result, in bytes of its JSON encoding, which is what such hosts
    /// cut. An unknown host shows all of it.
    pub(super) encoded_bytes_max: usize,
    /// Maximum time that a request waits for an approver outside the host.
    pub(super) pause_after: Duration,
}

/// A host, and what differs from the defaults.
struct KnownHost {
    client: &'static str,
    description_chars_max: Option<usize>,
    value_bytes_max: Option<usize>,
    pause_after: Option<Duration>,
}

const KNOWN: [KnownHost; 3] = [
    // Shows the first 2,048 characters of a description.
    KnownHost {
        client: "claude-code",
        description_chars_max: Some(2_000),
        value_bytes_max: None,
        pause_after: None,
    },
    // Shows 10 KiB of a result, which is JSON with escapes, and cuts the middle.
    KnownHost {
        client: "codex-mcp-client",
        description_chars_max: None,
        value_bytes_max: Some(6_000),
        pause_after: None,
    },
    // The Python SDK's default name. A host that uses it, OpenAI Agents, gives up after 5 s.
    KnownHost {
        client: "mcp",
        description_chars_max: None,
        value_bytes_max: None,
        pause_after: Some(Duration::from_secs(3)),
    },
];

impl HostLimits {
    /// Returns the limits of the host with this client name. Limits that the settings name apply to
    /// every host.
    pub(super) fn of_client(name: &str, settings: &ServeSettings) -> Self {
        let known = KNOWN.iter().find(|it| it.client == name);
        let in_table = |limit: fn(&KnownHost) -> Option<usize>| known.and_then(limit);
        let shown_bytes_max = in_table(|it| it.value_bytes_max).unwrap_or(usize::MAX);
        Self {
            description_chars_max: settings
                .description_chars_max
                .or_else(|| in_table(|it| it.description_chars_max))
                .unwrap_or(DESCRIPTION_CHARS_DEFAULT),
            value_bytes_max: shown_bytes_max.min(settings.text_bytes_max),
            encoded_bytes_max: shown_bytes_max,
            pause_after: settings
                .pause_after
                .or_else(|| known.and_then(|it| it.pause_after))
                .unwrap_or(PAUSE_AFTER_DEFAULT),
        }
    }
}

/// Returns the length of a text in JSON, without the quotation marks.
pub(super) fn encoded_bytes(text: &str) -> usize {
    text.chars().map(encoded_char_bytes).sum()
}

/// Returns the length of the longest beginning of a text that has at most this many bytes in JSON.
pub(super) fn encoded_prefix(text: &str, encoded_bytes_max: usize) -> usize {
    let mut encoded_bytes = 0;
    let mut chars = text.char_indices();
    let first_left_out = chars.find(|(_, c)| {
        encoded_bytes += encoded_char_bytes(*c);
        encoded_bytes > encoded_bytes_max
    });
    first_left_out.map_or(text.len(), |(position, _)| position)
}

fn encoded_char_bytes(c: char) -> usize {
    match c {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        _ => c.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_length_is_that_of_json() {
        let text: String = ('\0'..='\u{ff}').chain(['\u{2028}', '😀']).collect();
        let encoded = |text: &str| serde_json::to_string(text).unwrap().len() - 2;
        assert_eq!(encoded_bytes(&text), encoded(&text));
        for max in 0..=encoded(&text) {
            let end = encoded_prefix(&text, max);
            assert!(encoded(&text[..end]) <= max);
            let next = text[end..].chars().next();
            let more = next.map(|c| end + c.len_utf8());
            assert!(more.is_none_or(|more| encoded(&text[..more]) > max));
        }
    }

    #[test]
    fn setting_comes_before_table_and_default() {
        let settings = ServeSettings::default();
        let of = |name: &str| HostLimits::of_client(name, &settings);
        let unknown = of("anything");
        assert_eq!(unknown.description_chars_max, DESCRIPTION_CHARS_DEFAULT);
        assert_eq!(unknown.value_bytes_max, settings.text_bytes_max);
        assert_eq!(unknown.pause_after, PAUSE_AFTER_DEFAULT);
        assert!(of("mcp").pause_after < Duration::from_secs(5));
        assert_eq!(of("codex-mcp-client").value_bytes_max, 6_000);
        let settings = ServeSettings {
            description_chars_max: Some(9_000),
            pause_after: Some(Duration::from_secs(1)),
            text_bytes_max: 1_000,
            ..settings
        };
        for name in ["mcp", "claude-code", "codex-mcp-client", ""] {
            let limits = HostLimits::of_client(name, &settings);
            assert_eq!(limits.description_chars_max, 9_000, "{name}");
            assert_eq!(limits.pause_after, Duration::from_secs(1), "{name}");
            assert_eq!(limits.value_bytes_max, 1_000, "{name}");
        }
    }
}
