//! For each shape, texts that are masked and near misses that are not.

use std::collections::BTreeSet;
use std::time::Duration;

use super::*;

/// Texts that contain a credential of a shape, with `‹` and `›` around what is masked. `#40`
/// stands for 40 letters and digits, so that this file contains no text that looks real.
const HITS: &[(&str, &str)] = &[
    ("aws-access-key-id", "id=‹AKIAIOSFODNN7AAAAAAA›,"),
    (
        "aws-access-key-id",
        "‹ASIAIOSFODNN7AAAAAAAlonger-than-usual›.",
    ),
    ("aws-secret-key", "aws_secret_access_key = ‹#40/+=›"),
    ("aws-secret-key", "export AWS_SECRET_ACCESS_KEY='‹#40›'"),
    (
        "aws-secret-key",
        "{\"SecretAccessKey\": \"‹#40›\", \"SessionToken\": \"‹#300=›\"}",
    ),
    (
        "aws-secret-key",
        "{\\\"awsSecretAccessKey\\\":\\\"‹#40›\\\"}",
    ),
    ("aws-secret-key", "<SecretAccessKey>‹#40›</SecretAccessKey>"),
    ("aws-secret-key", "--secret-access-key ‹#40›"),
    ("api-key", "{\"api_key\": \"‹#32›\"}"),
    ("api-key", "X-Api-Key: ‹#20›"),
    ("anthropic", "‹sk-ant-api03-#80-#10_AA›"),
    ("authorization", "Authorization: Bearer ‹abc›"),
    ("authorization", "authorization: Basic ‹dXNlcjpwYXNz›\r\n"),
    ("authorization", "\"Authorization\": \"token ‹#12›\""),
    (
        "authorization",
        "-H 'Proxy-Authorization: Basic ‹dXNlcjpwYXNz›'",
    ),
    ("authorization", "Authorization: ‹#40›"),
    (
        "azure-storage",
        "AccountName=a;AccountKey=‹#86==›;EndpointSuffix=core",
    ),
    ("basic-auth", "sent Basic ‹dXNlcjpwYXNz›"),
    ("bearer-auth", "with Bearer ‹#5.#20/+=›"),
    ("databricks", "‹dapi0123456789abcdef0123456789abcdef›"),
    (
        "digitalocean",
        "‹dop_v1_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef›",
    ),
    ("docker-hub", "‹dckr_pat_#27›"),
    ("github", "token ‹ghp_#36›, ‹gho_#36›"),
    ("github", "‹ghs_#255›"),
    ("github", "a%3D‹ghp_#36›"),
    ("github", "line\\n‹ghp_#36›\\n"),
    ("github", "\\u003d‹ghp_#36›"),
    ("github", "\u{1b}[1;32m‹ghp_#36›\u{1b}[0m"),
    ("github", "my_‹ghp_#36›"),
    ("github-fine-grained", "‹github_pat_#22_#59›"),
    ("gitlab", "‹glpat-#20› ‹gldt-#20› ‹glpat-#30.01.#9›."),
    ("google-api-key", "?key=‹AIza#35›&"),
    ("google-oauth", "‹ya29.a0#30› ‹GOCSPX-#28›"),
    ("grafana", "‹glsa_#32_#8›"),
    ("hashicorp-vault", "‹hvs.#24›"),
    ("hugging-face", "‹hf_#34›"),
    ("jwt", "‹eyJ#20.eyJ#20.#43›, ‹eyJ#20.eyJ#20.›"),
    ("jwt", "‹eyJ#9000.#9000.#9000›"),
    ("jwt", "‹eyJ#20.#20.#20.#20.#20›"),
    ("npm", "//host/:_authToken=‹npm_#36›"),
    ("openai", "‹sk-proj-#40› ‹sk-#48›"),
    ("pypi", "‹pypi-AgEIcHl#80-_›"),
    ("sendgrid", "‹SG.#22.#43›"),
    ("shopify", "‹shpat_0123456789abcdef0123456789abcdef›"),
    ("signed-url", "?sv=2024&sig=‹#43%3D›&se=1"),
    ("signed-url", "&X-Amz-Signature=‹#64›"),
    (
        "slack",
        "‹xoxb-123456789012-#24› ‹xoxe-1-#40› ‹xapp-1-A0-1-#40›",
    ),
    ("slack", "d=‹xoxd-#20%2B#20%3D›;"),
    ("stripe", "‹sk_live_#24› ‹whsec_#32›"),
    ("telegram-bot", "https://host/bot‹123456789:AA#33›/getMe"),
    ("twilio", "‹SK0123456789abcdef0123456789abcdef›"),
    ("url-password", "https://user:‹pass›@host/path"),
    ("url-password", "redis://:‹pw›@host"),
    ("url-password", "postgresql+psycopg2://u:‹p@ss›@db:5432/x"),
    ("url-password", "jdbc:mysql://u:‹p›@h|"),
    (
        "url-password",
        "mongodb+srv://u:‹p%40›@a.example,b.example/?x",
    ),
    ("url-password", "(redis://:‹a›@h1,redis://:‹b›@h2)"),
    ("url-password", "\\nredis://:‹pw›@host\\n"),
    ("url-password", "custom://u:‹p›@db.example:1/"),
    ("url-password", "x=%22amqp://u:‹p›@[::1]:5672"),
    ("url-password", "https://‹ghp_#36›:‹x›@host"),
    (
        "webhook",
        "https://hooks.slack.com/services/‹T00000000/B00000000/#24›",
    ),
    (
        "webhook",
        "https://discord.com/api/webhooks/‹123456789012345678/#68›",
    ),
];

/// Texts that resemble a shape, and contain no credential.
const NEAR_MISSES: &[(&str, &str)] = &[
    (
        "aws-access-key-id",
        "AKIA, AKIAIOSFODNN7AAA, xAKIAIOSFODNN7AAAAAAA, AKIAfunction1234567890",
    ),
    (
        "aws-secret-key",
        "secret_access_key = None; secretAccessKey: process.env.AWS_SECRET_ACCESS_KEY",
    ),
    (
        "api-key",
        "api_key: process.env.API_KEY; api_key_id: #32; apiKey=YOUR_API_KEY; apiKey: #19",
    ),
    ("anthropic", "sk-ant-api03"),
    (
        "authorization",
        "Authorization: none; the Authorization header is required; Authorization: Bearer",
    ),
    ("azure-storage", "AccountKey=<your key>"),
    ("basic-auth", "Basic understanding of Basic authentication"),
    (
        "bearer-auth",
        "Bearer tokens; Bearer authentication-required",
    ),
    ("databricks", "dapi0123"),
    ("digitalocean", "dop_v1_0123456789abcdef"),
    ("docker-hub", "dckr_pat_x"),
    ("github", "ghp_token, sghp_#36, ghp_#30"),
    ("github-fine-grained", "github_pat_prefix"),
    ("gitlab", "glpat-short, xglpat-#20"),
    ("google-api-key", "AIza#30"),
    ("google-oauth", "ya29.short"),
    (
        "grafana",
        "glsa_short glc_abcdefghijklmnopqrstuvwxyzabcdefgh",
    ),
    ("hashicorp-vault", "hvs.short"),
    ("hugging-face", "hf_hub_download"),
    ("jwt", "eyJ#20, eyJ#20.eyJ#20, eyJa.b.c"),
    (
        "npm",
        "npm_config_registry, npm_lifecycle_event_of_a_script_that_is_long",
    ),
    (
        "openai",
        "sk-folding-cube-and-more-words-than-thirty-two, task-#48, sk-1",
    ),
    (
        "private-key",
        "-----BEGIN CERTIFICATE-----\n#64\n-----END CERTIFICATE-----",
    ),
    ("pypi", "pypi-AgE"),
    ("sendgrid", "SG.short.name"),
    ("shopify", "shpat_0123"),
    ("signed-url", "sig=short; Signature=none"),
    ("slack", "xoxb-token, xoxp-your-token-goes-here"),
    ("stripe", "sk_live_key, pk_live_#24"),
    ("telegram-bot", "a:AA#33, 12:AA#33"),
    ("twilio", "SK0123, SKU0123456789abcdef0123456789abcdef"),
    (
        "url-password",
        "npm://react:18.2.0@latest docker://repo:sha256@x git@host:a/b",
    ),
    (
        "url-password",
        "https://host:8080/path@x https://user@host:80/ https://u:@h http://u:p",
    ),
    (
        "url-password",
        "https://${USER}:${PASSWORD}@host redis://:{{ .pw }}@h mailto:a:b@c",
    ),
    (
        "webhook",
        "https://hooks.slack.com/services/ https://discord.com/api/webhooks/",
    ),
];

/// Replaces `#40` by 40 letters and digits.
fn filled(text: &str) -> String {
    let mut parts = text.split('#');
    let mut out = parts.next().unwrap().to_owned();
    for part in parts {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        let count = part[..digits].parse().unwrap();
        out.extend("q7Zk".chars().cycle().take(count));
        out.push_str(&part[digits..]);
    }
    out
}

fn redact(text: &str) -> String {
    crate::secrets::masked(text, find(text)).unwrap_or_else(|| text.to_owned())
}

#[track_caller]
fn check(marked: &str) {
    let marked = filled(marked);
    let mut expected = String::new();
    for (number, part) in marked.split(['‹', '›']).enumerate() {
        expected.push_str(if number % 2 == 0 { part } else { "***" });
    }
    let text = marked.replace(['‹', '›'], "");
    let shown = redact(&text);
    assert_eq!(shown, expected, "{text}");
    assert_eq!(redact(&shown), shown, "masking again changes something");
}

#[test]
fn rules_can_be_built() {
    assert!(STARTS.is_some());
    let starts: Vec<_> = SHAPES.iter().flat_map(|it| it.starts).collect();
    let distinct: BTreeSet<_> = starts.iter().collect();
    assert_eq!(distinct.len(), starts.len());
}

#[test]
fn every_shape_has_a_hit_and_a_near_miss() {
    for shape in SHAPES {
        let has = |table: &[(&str, &str)]| table.iter().any(|(name, _)| *name == shape.name);
        assert!(has(HITS) || shape.name == "private-key", "{}", shape.name);
        assert!(has(NEAR_MISSES), "{}", shape.name);
    }
    let names: BTreeSet<_> = SHAPES.iter().map(|shape| shape.name).collect();
    let named = HITS.iter().chain(NEAR_MISSES).map(|(name, _)| *name);
    assert_eq!(named.filter(|it| !names.contains(it)).count(), 0);
}

#[test]
fn credentials_are_masked_as_a_whole() {
    for (_, text) in HITS {
        check(text);
        // Text around a credential does not change what is masked.
        check(&format!("before {text}, after"));
    }
}

#[test]
fn texts_that_resemble_credentials_stay() {
    for (_, text) in NEAR_MISSES {
        check(text);
    }
}

const BEGIN: &str = concat!("-----BEGIN RSA PRIV", "ATE KEY-----");
const END: &str = concat!("-----END RSA PRIV", "ATE KEY-----");

#[test]
fn private_key_is_masked_however_it_is_written() {
    let body = filled("#64\n#64\n#10==");
    let encrypted = format!(
        "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,{}\n\n{body}",
        filled("#32")
    );
    for lines in [&body, &encrypted] {
        let whole = format!("{BEGIN}\n{lines}\n{END}");
        check(&format!("a\n‹{whole}›\nb"));
        check(&format!("a ‹{}› b", whole.replace('\n', "\\n")));
        check(&format!("a ‹{}› b", whole.replace('\n', "\\\\n")));
        check(&format!("> ‹{}›\n> b", whole.replace('\n', "\n> ")));
        check(&format!("  ‹{}›\r\nb", whole.replace('\n', "\r\n  ")));
        check(&format!("\"‹{}›\"", whole.replace('\n', "\\n\" +\n\"")));
        check(&format!("     1\t‹{}›", whole.replace('\n', "\n     2\t")));
        // The end or the beginning is missing.
        check(&format!("a\n‹{BEGIN}\n{lines}›"));
        check(&format!("a\n‹{BEGIN}\n{lines}›\n[the rest was cut]"));
        check(&format!(
            "> ‹{}›",
            format!("{BEGIN}\n{lines}").replace('\n', "\n> ")
        ));
        check(&format!(
            "‹{}›",
            format!("{BEGIN}\n{lines}").replace('\n', "\\n")
        ));
    }
    check(&format!("‹{body}\n{END}›\nb"));
    check(&format!("a sentence.\n‹{body}\n{END}›\nb"));
    check(&format!("‹{BEGIN} {} {END}›", filled("#64")));
    check(&format!(
        "‹{BEGIN}\n{body}\n{END}›\n‹{BEGIN}\n{body}\n{END}›"
    ));
    let openssh = BEGIN.replace("RSA", "OPENSSH");
    check(&format!("‹{openssh}\n{body}›"));
    let pgp = "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: 1\n\n";
    check(&format!("‹{pgp}{body}›"));
}

#[test]
fn marker_without_a_key_stays() {
    check(&format!(
        "if text.starts_with(\"{BEGIN}\") {{ return; }}\nlet other = 1;\n"
    ));
    check(&format!("between \"{BEGIN}\" and, later, \"{END}\".\n"));
    check(&format!(
        "{BEGIN}\n\nA sentence follows.\n{}",
        filled("#64")
    ));
    check(&format!("A sentence.\n{END}\n"));
}

#[test]
fn long_private_key_is_masked_up_to_a_bound_and_at_its_end() {
    let line = filled("#64\n");
    let long = format!("{BEGIN}\n{}{END}\n", line.repeat(1_000));
    let shown = redact(&long);
    assert!(
        shown.starts_with("***") && shown.ends_with("***\n"),
        "{shown}"
    );
    assert!(shown.len() < long.len() - 30 * 1024, "{}", shown.len());
}

/// Returns the processor time of this thread, so that other work of the machine does not count.
fn cpu_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Compares the time of a text with that of a text of eight times its length.
#[test]
fn masking_takes_linear_time() {
    let jwt = filled("eyJ#12.");
    for part in [
        BEGIN,
        END,
        "-----BEGIN ",
        "\n-----BEGIN PRIVATE KEY-----\n",
        "sk-",
        "SG.",
        "eyJ",
        "eyJ-",
        &jwt,
        "sig=",
        "session_token=",
        "redis://:",
        "://",
        "a:b@",
        "1:AA",
        "Basic ",
        "Bearer ",
        "Authorization:",
        "authorization=",
        "ghp_",
        "dapi",
        "xoxb-",
        "\\",
        "\\n",
        "-----",
        "AccountKey=",
        ":AA",
        "%3D",
    ] {
        let time = |bytes: usize| {
            let text = part.repeat(bytes / part.len());
            let tries = (0..3).map(|_| {
                let begun = cpu_time();
                std::hint::black_box(find(&text));
                cpu_time() - begun
            });
            tries.min().unwrap()
        };
        let (short, long) = (time(16 * 1024), time(128 * 1024));
        // Quadratic time would be 64 times as long.
        let is_linear = long < short * 24 || long.as_millis() < 20;
        assert!(is_linear, "{part}: {short:?}, {long:?}");
    }
}
