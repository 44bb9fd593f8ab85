//! Recognises credentials of well-known services by their shape. [`SHAPES`] is the whole rule set.
//! To add a shape, add a row there, and to the table of the tests one text that is masked and one
//! similar text that is not.
//!
//! One automaton finds the beginnings of all shapes in one pass. From each beginning, a rule reads
//! on at most to the next beginning or over one run of characters, so the whole search takes linear
//! time, and no rule is compiled while the program runs.

mod header;
mod private_key;
mod url;

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, Input, MatchKind};

pub(super) use header::token_after_scheme;

/// The number of characters by which a run is judged. Longer runs are masked as a whole.
const LOOKED_AT_BYTES: usize = 128;

/// The shape of one kind of credential.
struct Shape {
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "tests name the shape that failed")
    )]
    name: &'static str,
    /// Texts at the beginning of a credential of this shape, or directly before it.
    starts: &'static [&'static str],
    rule: Rule,
}

/// Where the credential is, relative to the start.
#[derive(Clone, Copy)]
enum Rule {
    /// The start and a run of characters after it.
    Token(Run),
    /// A run of characters after the start, which is a part of an address.
    After(Run),
    /// The start is the name of a value, such as `secret_access_key = …`.
    Value(Run),
    /// Three or more runs with dots between them.
    Jwt,
    /// A number before the start, and a run after it.
    TelegramBot,
    /// The start begins or ends a block of PEM.
    PrivateKey,
    /// The start is followed by `user:password@host`.
    UrlPassword,
    /// The start is the name of the header; its value names a scheme before the credential.
    Authorization,
    /// The start is the scheme of the header, at any place.
    Bearer,
    Basic,
}

/// A run of at least this many characters of one kind. Token characters that follow it directly
/// belong to the run too.
#[derive(Clone, Copy)]
struct Run {
    of: fn(u8) -> bool,
    bytes_min: usize,
    /// Whether the run must contain a digit. A run without digits could be a word.
    has_digit: bool,
}

const fn run(of: fn(u8) -> bool, bytes_min: usize) -> Run {
    Run {
        of,
        bytes_min,
        has_digit: false,
    }
}

const fn with_digit(of: fn(u8) -> bool, bytes_min: usize) -> Run {
    Run {
        has_digit: true,
        ..run(of, bytes_min)
    }
}

/// The rule set.
#[rustfmt::skip]
static SHAPES: &[Shape] = &[
    Shape { name: "aws-access-key-id", starts: &["AKIA", "ASIA", "ABIA", "ACCA"], rule: Rule::Token(run(is_upper, 16)) },
    Shape {
        name: "aws-secret-key",
        starts: &[
            "secret_access_key", "SECRET_ACCESS_KEY", "SecretAccessKey", "secretAccessKey", "secret-access-key",
            "aws_secret_key", "AWS_SECRET_KEY", "session_token", "SESSION_TOKEN", "SessionToken", "sessionToken",
        ],
        rule: Rule::Value(with_digit(is_base64, 40)),
    },
    Shape {
        name: "api-key",
        starts: &["api_key", "api-key", "apiKey", "ApiKey", "Api-Key", "API_KEY", "API-KEY"],
        rule: Rule::Value(with_digit(is_token, 20)),
    },
    Shape { name: "anthropic", starts: &["sk-ant-"], rule: Rule::Token(run(is_token, 20)) },
    Shape { name: "azure-storage", starts: &["AccountKey=", "SharedAccessKey="], rule: Rule::After(run(is_base64, 40)) },
    Shape { name: "basic-auth", starts: &["Basic ", "basic ", "BASIC "], rule: Rule::Basic },
    Shape { name: "bearer-auth", starts: &["Bearer ", "bearer ", "BEARER "], rule: Rule::Bearer },
    Shape { name: "authorization", starts: &["Authorization", "authorization", "AUTHORIZATION"], rule: Rule::Authorization },
    Shape { name: "databricks", starts: &["dapi"], rule: Rule::Token(with_digit(is_hex, 32)) },
    Shape { name: "digitalocean", starts: &["dop_v1_", "doo_v1_", "dor_v1_"], rule: Rule::Token(run(is_hex, 64)) },
    Shape { name: "docker-hub", starts: &["dckr_pat_", "dckr_oat_"], rule: Rule::Token(run(is_token, 20)) },
    Shape { name: "github", starts: &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], rule: Rule::Token(run(is_dotted, 36)) },
    Shape { name: "github-fine-grained", starts: &["github_pat_"], rule: Rule::Token(run(is_token, 36)) },
    Shape {
        name: "gitlab",
        starts: &[
            "glpat-", "gldt-", "glrt-", "glrtr-", "glptt-", "glft-", "glsoat-", "glcbt-", "glimt-", "glagent-", "gloas-",
            "glffct-", "glwt-",
        ],
        rule: Rule::Token(run(is_dotted, 20)),
    },
    Shape { name: "google-api-key", starts: &["AIza"], rule: Rule::Token(run(is_token, 35)) },
    Shape { name: "google-oauth", starts: &["ya29.", "GOCSPX-"], rule: Rule::Token(run(is_dotted, 20)) },
    Shape { name: "grafana", starts: &["glsa_", "glc_"], rule: Rule::Token(with_digit(is_base64, 32)) },
    Shape { name: "hashicorp-vault", starts: &["hvs.", "hvb.", "hvr."], rule: Rule::Token(run(is_token, 24)) },
    Shape { name: "hugging-face", starts: &["hf_"], rule: Rule::Token(run(is_alphanumeric, 30)) },
    Shape { name: "jwt", starts: &["eyJ"], rule: Rule::Jwt },
    Shape { name: "npm", starts: &["npm_"], rule: Rule::Token(with_digit(is_alphanumeric, 36)) },
    Shape { name: "openai", starts: &["sk-"], rule: Rule::Token(with_digit(is_token, 32)) },
    Shape { name: "private-key", starts: &["-----BEGIN ", "-----END "], rule: Rule::PrivateKey },
    Shape { name: "pypi", starts: &["pypi-AgE"], rule: Rule::Token(run(is_token, 50)) },
    Shape { name: "sendgrid", starts: &["SG."], rule: Rule::Token(with_digit(is_dotted, 50)) },
    Shape { name: "shopify", starts: &["shpat_", "shpss_", "shpca_", "shppa_"], rule: Rule::Token(run(is_hex, 32)) },
    Shape {
        name: "signed-url",
        starts: &["sig=", "Signature=", "signature=", "Security-Token="],
        rule: Rule::After(with_digit(is_in_query, 40)),
    },
    Shape {
        name: "slack",
        starts: &["xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxc-", "xoxd-", "xoxe-", "xoxe.", "xapp-"],
        rule: Rule::Token(with_digit(is_in_cookie, 16)),
    },
    Shape {
        name: "stripe",
        starts: &["sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"],
        rule: Rule::Token(run(is_token, 16)),
    },
    Shape { name: "telegram-bot", starts: &[":AA"], rule: Rule::TelegramBot },
    Shape { name: "twilio", starts: &["SK"], rule: Rule::Token(with_digit(is_hex, 32)) },
    Shape { name: "url-password", starts: &["://"], rule: Rule::UrlPassword },
    Shape {
        name: "webhook",
        starts: &["hooks.slack.com/services/", "hooks.slack.com/workflows/", "hooks.slack.com/triggers/",
            "discord.com/api/webhooks/", "discordapp.com/api/webhooks/"],
        rule: Rule::After(run(is_base64, 20)),
    },
];

fn is_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn is_upper(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

fn is_hex(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'a'..=b'f')
}

/// The characters of most tokens.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn is_dotted(byte: u8) -> bool {
    is_token(byte) || byte == b'.'
}

fn is_base64(byte: u8) -> bool {
    is_token(byte) || matches!(byte, b'+' | b'/' | b'=')
}

fn is_in_query(byte: u8) -> bool {
    is_base64(byte) || byte == b'%'
}

fn is_in_cookie(byte: u8) -> bool {
    is_dotted(byte) || byte == b'%'
}

/// Finds the starts of all shapes. `None` if the automaton could not be built; a test checks that
/// it can be.
static STARTS: LazyLock<Option<Starts>> = LazyLock::new(Starts::build);

struct Starts {
    automaton: AhoCorasick,
    /// The rule of each pattern of the automaton.
    rules: Vec<Rule>,
}

impl Starts {
    fn build() -> Option<Self> {
        let starts = || SHAPES.iter().flat_map(|shape| shape.starts);
        let rules = SHAPES
            .iter()
            .flat_map(|shape| shape.starts.iter().map(|_| shape.rule));
        let builder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(starts());
        Some(Self {
            automaton: builder.ok()?,
            rules: rules.collect(),
        })
    }
}

/// Returns the first place after `from` at which a credential, or something that belongs to one, may
/// begin.
pub(super) fn next_start(text: &str, from: usize) -> Option<usize> {
    match &*STARTS {
        Some(starts) => {
            let found = starts.automaton.find(Input::new(text).range(from..));
            found.map(|it| it.start())
        }
        None => Some(from),
    }
}

/// Returns the places of credentials in a text, in no order. If the rules cannot be used, the whole
/// text counts as a credential.
pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    match &*STARTS {
        Some(starts) => starts.find(text),
        None => std::iter::once(0..text.len()).collect(),
    }
}

/// Returns the places of credentials in the value of a member. Some rules need the name.
pub(super) fn find_in_member(name: &str, value: &str) -> Vec<Range<usize>> {
    let is_named = STARTS.as_ref().is_some_and(|it| it.names(name));
    if !is_named {
        return find(value);
    }
    let before = name.len() + 1;
    let both = find(&format!("{name}={value}")).into_iter();
    both.filter(|it| it.end > before)
        .map(|it| it.start.saturating_sub(before)..it.end - before)
        .collect()
}

impl Starts {
    fn find(&self, text: &str) -> Vec<Range<usize>> {
        let bytes = text.as_bytes();
        let mut found: Vec<Range<usize>> = Vec::new();
        let mut floor = 0;
        // The end of the last run of token characters in which no JSON Web Token begins.
        let mut no_jwt_before = 0;
        for start in self.automaton.find_iter(bytes) {
            let is_covered = found.last().is_some_and(|it| it.contains(&start.start()));
            let rule = self.rules.get(start.pattern().as_usize());
            let is_jwt = matches!(rule, Some(Rule::Jwt));
            // A later start in the same run fails for the same reason.
            let is_known_failure = is_jwt && start.start() < no_jwt_before;
            if let (false, Some(rule)) = (is_covered || is_known_failure, rule) {
                let credential = rule.credential(bytes, floor, start.range());
                if is_jwt && credential.is_none() && is_beginning(bytes, start.start()) {
                    no_jwt_before = end_of_run(bytes, start.start(), is_token);
                }
                // A mask is not masked again.
                found.extend(credential.filter(|it| bytes.get(it.clone()) != Some(b"***")));
            }
            let end = found.last().map_or(0, |it| it.end);
            floor = start.end().max(end);
        }
        found
    }

    /// Returns whether a name ends with the name of a credential.
    fn names(&self, name: &str) -> bool {
        let mut starts = self.automaton.find_iter(name);
        starts.any(|it| {
            let rule = self.rules.get(it.pattern().as_usize());
            it.end() == name.len() && matches!(rule, Some(Rule::Value(_) | Rule::Authorization))
        })
    }
}

impl Rule {
    /// Returns the place of a credential. Nothing before `floor` is read again.
    fn credential(self, text: &[u8], floor: usize, start: Range<usize>) -> Option<Range<usize>> {
        match self {
            Self::PrivateKey => return private_key::find(text, floor, start),
            Self::UrlPassword => return url::password(text, start),
            Self::TelegramBot => return telegram_bot(text, start),
            // The name of a value may have any beginning, as in `awsSecretAccessKey`.
            Self::Value(run) => {
                let from = header::value(text, start.end)?;
                return Some(from..run.end(text, from)?);
            }
            _ if !is_beginning(text, start.start) => return None,
            _ => {}
        }
        match self {
            Self::Token(run) => Some(start.start..run.end(text, start.end)?),
            Self::After(run) => Some(start.end..run.end(text, start.end)?),
            Self::Jwt => Some(start.start..jwt_end(text, start.start)?),
            Self::Authorization => header::authorization(text, start.end),
            Self::Bearer => header::bearer(text, start.end),
            Self::Basic => header::basic(text, start.end),
            Self::PrivateKey | Self::UrlPassword | Self::TelegramBot | Self::Value(_) => None,
        }
    }
}

impl Run {
    /// Returns the end of the run that begins at `from`, if it is long enough.
    fn end(self, text: &[u8], from: usize) -> Option<usize> {
        let rest = text.get(from..).unwrap_or_default();
        let looked_at = rest.get(..LOOKED_AT_BYTES).unwrap_or(rest);
        let bytes = end_of_run(looked_at, 0, self.of);
        let is_long = bytes >= self.bytes_min;
        let run = looked_at.get(..bytes).unwrap_or_default();
        let fits = is_long && (!self.has_digit || run.iter().any(u8::is_ascii_digit));
        fits.then(|| end_of_run(text, end_of_run(text, from, self.of), is_token))
    }
}

/// Returns the end of a run of characters. A dot at the end does not belong to the run, because it
/// usually ends a sentence.
fn end_of_run(text: &[u8], from: usize, of: fn(u8) -> bool) -> usize {
    let rest = text.get(from..).unwrap_or_default();
    let run = rest.iter().take_while(|byte| of(**byte)).count();
    let dots = rest.get(..run).unwrap_or_default().iter().rev();
    from + run - dots.take_while(|byte| **byte == b'.').count()
}

/// Returns the end of a signed or encrypted token: runs of characters between dots.
fn jwt_end(text: &[u8], from: usize) -> Option<usize> {
    const PART_BYTES_MIN: usize = 10;
    let mut end = from;
    for part in 0.. {
        let begin = if part == 0 { from } else { end + 1 };
        let part_end = end_of_run(text, begin, is_token);
        // The last part is empty if the token is not signed.
        if part < 2 && part_end - begin < PART_BYTES_MIN {
            return None;
        }
        end = part_end;
        if text.get(end) != Some(&b'.') {
            return (part >= 2).then_some(end);
        }
    }
    None
}

/// Returns the place of a bot's token: its number, a colon, and 35 characters.
fn telegram_bot(text: &[u8], start: Range<usize>) -> Option<Range<usize>> {
    const DIGITS_MAX: usize = 16;
    let before = text.get(..start.start)?.iter().rev();
    let digits = before
        .take(DIGITS_MAX)
        .take_while(|byte| byte.is_ascii_digit());
    let digits = digits.count();
    let end = run(is_token, 32).end(text, start.end)?;
    (8..DIGITS_MAX)
        .contains(&digits)
        .then(|| start.start - digits..end)
}

/// Returns whether a word begins here. The character before can belong to an escape, such as
/// `%3D`, `\n`, `\u003d` or a colour of a terminal.
fn is_beginning(text: &[u8], at: usize) -> bool {
    let before = text.get(at.saturating_sub(16)..at).unwrap_or_default();
    let is_hex = |bytes: &[u8]| bytes.iter().all(u8::is_ascii_hexdigit);
    match before {
        [.., b'%', a, b] if is_hex(&[*a, *b]) => true,
        [.., b'\\', b'n' | b'r' | b't'] => true,
        [.., b'\\', b'u', a, b, c, d] if is_hex(&[*a, *b, *c, *d]) => true,
        [colour @ .., b'm'] => {
            let digits = colour.iter().rev();
            let digits = digits
                .take_while(|it| it.is_ascii_digit() || **it == b';')
                .count();
            colour
                .get(..colour.len() - digits)
                .is_some_and(|it| it.ends_with(b"\x1b["))
        }
        [.., last] => !last.is_ascii_alphanumeric(),
        [] => true,
    }
}

#[cfg(test)]
mod tests;
