//! The hostile texts: each repeats a short piece between a beginning and an end.

/// One kind of hostile text, for any size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Text {
    pub(crate) name: &'static str,
    head: &'static str,
    /// The repeated piece, in which `{n}` is replaced by a counter.
    unit: &'static str,
    tail: &'static str,
}

const fn text(
    name: &'static str,
    head: &'static str,
    unit: &'static str,
    tail: &'static str,
) -> Text {
    Text {
        name,
        head,
        unit,
        tail,
    }
}

impl Text {
    /// Returns the longest text within this many bytes.
    pub(crate) fn of(&self, bytes: usize) -> String {
        let mut text = self.head.to_owned();
        for n in 0_usize.. {
            let unit = self.unit.replace("{n}", &n.to_string());
            if text.len() + unit.len() + self.tail.len() > bytes {
                break;
            }
            text.push_str(&unit);
        }
        text + self.tail
    }
}

const WHEN: &str =
    "@id(\"a\") @owner(\"o\") @reason(\"r\") forbid(principal, action, resource) when { ";

/// A text eight times.
macro_rules! eight {
    ($($text:tt)*) => {
        concat!(
            $($text)*, $($text)*, $($text)*, $($text)*,
            $($text)*, $($text)*, $($text)*, $($text)*
        )
    };
}

pub(crate) const CEDAR: &[Text] = &[
    text("ifs", "", "if ", ""),
    text("ifs-in-a-rule", WHEN, "if ", "};"),
    text("ifs-that-end", WHEN, "if true then 1 else ", "1 };"),
    text("brackets", WHEN, "(", "};"),
    text("lists", WHEN, "[", "};"),
    text("records", WHEN, "{a:", "};"),
    text("calls", WHEN, "a(", "};"),
    text("indexes", WHEN, "a[", "};"),
    text("nots", WHEN, "!", "true };"),
    text("minuses", WHEN, "-", "1 };"),
    text("members", WHEN, "a.", "a };"),
    text("names", WHEN, "a::", "a };"),
    text("ands", WHEN, "true && ", "true };"),
    text("sums", WHEN, "1 + ", "1 };"),
    text("comparisons", WHEN, "1 == ", "1 };"),
    text("words", WHEN, "a ", "};"),
    text("nearly-when", "", "wen ", ";"),
    text("long-word", WHEN, "abcdefgh", "};"),
    text("long-number", WHEN, "1234567890", "};"),
    text("open-string", "forbid(\"", "\\\"", ""),
    text(
        "long-string",
        "@id(\"",
        "\\u{1F600}",
        "\") forbid(principal, action, resource);",
    ),
    text("backslashes", WHEN, "\\", "};"),
    text("comments", "", "//\n", "a"),
    text("returns", "", "//\r;", "a"),
    text("semicolons", "", ";", ""),
    text("closers", WHEN, "};", ""),
    text("beginnings", "", "forbid(", ";"),
    text("variables", "forbid(", "principal is a in b, ", ");"),
    text(
        "annotations",
        "",
        "@a{n}(\"x\") ",
        "forbid(principal, action, resource);",
    ),
    text(
        "same-annotation",
        "",
        "@id(\"x\") ",
        "forbid(principal, action, resource);",
    ),
    text(
        "clauses",
        "forbid(principal, action, resource) ",
        "when {true} ",
        ";",
    ),
    text(
        "rules-without-names",
        "",
        "forbid(principal,action,resource);",
        "",
    ),
    text("invalid", WHEN, "#", "};"),
    text("spaces", "", "\u{2003}", "a"),
    text("unknown-variables", WHEN, "[a{n}, ", "] };"),
    text(
        "many-unknown-variables",
        "@id(\"a\") @owner(\"o\") @reason(\"r\") \
        forbid(principal, action, resource) when { [",
        "a{n}, ",
        "].isEmpty() };",
    ),
    text(
        "many-unknown-facts",
        "@id(\"a\") @owner(\"o\") @reason(\"r\") \
        forbid(principal, action, resource) when { [",
        "context.a{n}, ",
        "].isEmpty() };",
    ),
    text(
        "many-unknown-arguments",
        "@id(\"a\") @owner(\"o\") @reason(\"r\") \
        forbid(principal, action, resource) when { [",
        "context.args.a{n}, ",
        "].isEmpty() };",
    ),
    text(
        "long-list",
        "@id(\"a\") @owner(\"o\") @reason(\"r\") \
        forbid(principal, action, resource) when { context.args has \"a\" && [",
        "\"host{n}.example\", ",
        "].contains(\"a\") };",
    ),
    text(
        "mixed-list",
        "@id(\"a\") @owner(\"o\") @reason(\"r\") \
        forbid(principal, action, resource) when { [",
        "{n}, \"a{n}\", ",
        "].isEmpty() };",
    ),
    text(
        "wide-record",
        "@id(\"a\") @owner(\"o\") @reason(\"r\") \
        forbid(principal, action, resource) when { {",
        "\"a{n}\": {n}, ",
        "} == {} };",
    ),
    text(
        "entities",
        "@id(\"a\") @owner(\"o\") @reason(\"r\") forbid(principal, action in [",
        "Action::\"demo.logs{n}\", ",
        "], resource);",
    ),
    text(
        "patterns",
        "@id(\"a\") @owner(\"o\") @reason(\"r\") \
        forbid(principal, action, resource) when { context.args has \"a\" && \"a\" like \"",
        "*a",
        "b\" };",
    ),
    text(
        "rules",
        "",
        "@id(\"r{n}\")@owner(\"o\")@reason(\"r\")forbid(principal,action,resource);",
        "",
    ),
    text(
        "rules-with-conditions",
        "",
        "@id(\"r{n}\") @owner(\"o\") @reason(\"r\") forbid(principal, \
        action, resource) when { context.counts.calls_run == {n} || context.disclosed };\n",
        "",
    ),
    text(
        "rules-about-arguments",
        "",
        "@id(\"r{n}\") @owner(\"o\") @reason(\"r\") forbid(principal, \
        action == Action::\"demo.logs_search\", resource) when { context.args has \"service\" && \
        context.args.service == \"{n}\" };\n",
        "",
    ),
    text(
        "rules-with-many-alternatives",
        "",
        concat!(
            "@id(\"r{n}\") @owner(\"o\") @reason(\"r\") forbid(principal, action, resource) when { \
             (context.counts.calls_run == {n} || context.disclosed)",
            " && (context.counts.calls_session == 1 || context.writes)",
            " && (context.counts.calls_session == 2 || context.writes)",
            " && (context.counts.calls_session == 3 || context.writes)",
            " && (context.counts.calls_session == 4 || context.writes)",
            " && (context.counts.calls_session == 5 || context.writes) };\n"
        ),
        "",
    ),
    text(
        "rules-with-long-alternatives",
        "",
        concat!(
            "@id(\"r{n}\") @owner(\"o\") @reason(\"r\") forbid(principal, \
             action == Action::\"demo.logs_search\", resource) when { \
             context.counts.calls_run == {n}",
            eight!(eight!(" || context.writes")),
            " };\n"
        ),
        "",
    ),
    text(
        "rules-with-many-conditions",
        "",
        concat!(
            "@id(\"r{n}\") @owner(\"o\") @reason(\"r\") forbid(principal, action, resource) when { \
             context.counts.calls_run == {n}",
            eight!(
                eight!(" && context.writes"),
                eight!(" || context.disclosed"),
                eight!(" && context.counts.calls_run == 1")
            ),
            " };\n"
        ),
        "",
    ),
    text(
        "rules-about-many-tools",
        "",
        concat!(
            "@id(\"r{n}\") @owner(\"o\") @reason(\"r\") forbid(principal, action in [",
            eight!(eight!("Action::\"demo.logs_search\",")),
            "Action::\"demo.logs_query\"], resource) when { context.counts.calls_run == {n} };\n"
        ),
        "",
    ),
    text(
        "permits-of-a-server",
        "",
        "@id(\"r{n}\") @owner(\"o\") @reason(\"r\") permit(principal, \
        action in Action::\"server:demo\", resource) when { context.counts.calls_run == {n} };\n\
        @id(\"s{n}\") @owner(\"o\") @reason(\"r\") forbid(principal, \
        action in Action::\"server:demo\", resource) when { context.counts.calls_run > {n} };\n",
        "",
    ),
    text(
        "rules-with-mistakes",
        "",
        "@id(\"r{n}\") @owner(\"o\") @reason(\"r\") forbid(principal, \
        action == Action::\"demo.log_search\", resource) when { context.arg.a == {n} };\n",
        "",
    ),
    text(
        "rules-that-cannot-be-read",
        "",
        "@id(\"r{n}\") @owner(\"o\") @reason(\"r\") \
        forbid(principal, action, resource) when { context.disclosed and true };\n",
        "",
    ),
    text(
        "rules-with-one-name",
        "",
        "@id(\"r\") @owner(\"o\") @reason(\"r\") forbid(principal, \
        action, resource);\n",
        "",
    ),
];

pub(crate) const TOML: &[Text] = &[
    text("dots", "", "a.", "a = 1"),
    text("dots-in-a-header", "[", "a.", "a]\nb = 1"),
    text("brackets", "a = ", "[", ""),
    text("braces", "a = ", "{a=", ""),
    text("headers", "", "[", ""),
    text("tables", "", "[a{n}]\n", ""),
    text("arrays-of-tables", "", "[[a.b]]\n", ""),
    text("arrays-in-arrays", "", "[[a.b]]\n[[a.b.c]]\nd = 1\n", ""),
    text(
        "deep-tables",
        "",
        "[a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q{n}]\n",
        "",
    ),
    text("keys", "", "a{n} = 1\n", ""),
    text("same-key", "", "a = 1\n", ""),
    text("dotted-keys", "", "a.b{n}.c = 1\n", ""),
    text("open-string", "a = \"", "x", ""),
    text("open-text", "a = \"\"\"", "\\\n", ""),
    text("numbers", "a = ", "1234567890", ""),
    text("long-list", "a = [", "{n}, ", "]"),
    text("comments", "", "#\n", "a"),
    text("equals", "a", "=", ""),
    text("servers", "", "[servers.a{n}]\ncommand = \"a\"\n", ""),
    text("unknown", "", "[servers.a{n}]\nx = 1\n", ""),
    text("limits", "[limits]\n", "a{n} = 1\n", ""),
    text("groups", "", "[groups]\na{n} = [\"*.*\"]\n", ""),
];

pub(crate) const JSON: &[Text] = &[
    text("brackets", "", "[", ""),
    text("braces", "", "{\"a\":", ""),
    text("list", "[", "1,", "1]"),
    text("keys", "{", "\"a{n}\":1,", "\"b\":1}"),
    text("same-key", "{", "\"a\":1,", "\"b\":1}"),
    text("open-string", "\"", "x", ""),
    text("escapes", "\"", "\\u00e9", "\""),
    text("numbers", "", "1234567890", ""),
    text("spaces", "", " \n", "1"),
    text("lines", "", "{}\n", ""),
    text("empty-lines", "", "\n", ""),
];

/// Tool files for the tool `logs_search` of the server `demo`.
pub(crate) const TOOL_FILES: &[Text] = &[
    text(
        "arguments",
        "{\"name\":\"logs_search\",\"arguments\":{",
        "\"servise{n}\":{},",
        "\"x\":{}}}",
    ),
    text(
        "tags",
        "{\"name\":\"logs_search\",\"tags\":[",
        "\"t{n}\",",
        "\"x\"]}",
    ),
    text(
        "unknown-members",
        "{\"name\":\"logs_search\",",
        "\"a{n}\":1,",
        "\"b\":1}",
    ),
    text(
        "examples",
        "{\"name\":\"logs_search\",\"examples\":[",
        "{\"input\":{\"servise\":{n}}},",
        "{\"input\":{}}]}",
    ),
    text(
        "examples-of-an-argument",
        "{\"name\":\"logs_search\",\"arguments\":{\"service\":{\"examples\":[",
        "{n},",
        "1]}}}",
    ),
    text("lines", "{\"name\":\"logs_search\",", "\n", "\"b\":1}"),
];

/// Schemas of a tool, inside its list.
pub(crate) const SCHEMAS: &[Text] = &[
    text(
        "properties",
        "{\"type\":\"object\",\"properties\":{",
        "\"a{n}\":{\"type\":\"string\"},",
        "\"b\":{}}}",
    ),
    text(
        "required",
        "{\"type\":\"object\",\"required\":[",
        "\"a{n}\",",
        "\"b\"]}",
    ),
    text(
        "required-properties",
        "{\"type\":\"object\",\"required\":[",
        "\"a{n}\",",
        "\"b\"],\"properties\":{\"a1\":{}}}",
    ),
    text(
        "enum",
        "{\"type\":\"object\",\"properties\":{\"a\":{\"enum\":[",
        "\"v{n}\",",
        "1]}}}",
    ),
    text(
        "any-of",
        "{\"type\":\"object\",\"anyOf\":[",
        "{\"required\":[\"a{n}\"]},",
        "{\"type\":\"object\"}]}",
    ),
    text(
        "alternatives",
        "{\"type\":\"object\",\"properties\":{\"a\":{\"anyOf\":[",
        "{\"type\":\"object\",\"properties\":{\"a{n}\":{}}},",
        "{}]}}}",
    ),
    text(
        "different-objects",
        "{\"type\":\"object\",\"allOf\":[",
        "{\"properties\":{\"a{n}\":{\"type\":\"string\"},\"b{n}\":{\"type\":\"null\"}}},",
        "{}]}",
    ),
    text(
        "products",
        "{\"type\":\"object\",\"allOf\":[",
        "{\"anyOf\":[{\"properties\":{\"a{n}\":{}}},{\"properties\":{\"b{n}\":{}}},\
          {\"properties\":{\"c{n}\":{}}},{\"properties\":{\"d{n}\":{}}}]},",
        "{}]}",
    ),
    text(
        "products-of-parts",
        "{\"type\":\"object\",\"properties\":{\"a\":{\"allOf\":[",
        "{\"anyOf\":[{\"properties\":{\"a{n}\":{}}},{\"type\":\"null\"},{\"type\":\"string\"},\
          {\"type\":\"array\"}]},",
        "{}]}}}",
    ),
    text(
        "patterns",
        "{\"type\":\"object\",\"patternProperties\":{",
        "\"^(a{n}|b){1,100}$\":{},",
        "\"b\":{}}}",
    ),
    text(
        "pattern-lists",
        "{\"type\":\"object\",\"properties\":{",
        "\"a{n}\":{\"type\":\"string\",\"pattern\":\"^([a-z]{1,60}{n}){1,60}$\"},",
        "\"b\":{}}}",
    ),
    text(
        "unicode-patterns",
        "{\"type\":\"object\",\"properties\":{",
        "\"a{n}\":{\"type\":\"string\",\"pattern\":\"(\\\\p{L}\\\\w\\\\d){{n}}\"},",
        "\"b\":{}}}",
    ),
    text(
        "long-pattern",
        "{\"type\":\"object\",\"properties\":{\"a\":{\"pattern\":\"",
        "(a?)",
        "\"}}}",
    ),
    text(
        "open-groups",
        "{\"type\":\"object\",\"properties\":{\"a\":{\"pattern\":\"",
        "(",
        "\"}}}",
    ),
    text(
        "references",
        "{\"type\":\"object\",\"$defs\":{\"a\":{\"type\":\"object\",\"properties\":\
        {\"x\":{\"type\":\"string\",\"description\":\"as long as it takes to have a name\"}}}},\
        \"properties\":{",
        "\"a{n}\":{\"$ref\":\"#/$defs/a\"},",
        "\"b\":{}}}",
    ),
    text(
        "chain",
        "{\"type\":\"object\",\"$defs\":{",
        "\"d{n}\":{\"$ref\":\"#/$defs/e{n}\"},",
        "\"b\":{}}}",
    ),
    text("brackets", "{\"type\":\"object\",\"default\":", "[", "1}"),
    text("nested", "", "{\"properties\":{\"a\":", "1"),
    text(
        "description",
        "{\"type\":\"object\",\"description\":\"",
        "many words ",
        "\"}",
    ),
    text(
        "dead-references",
        "{\"type\":\"object\",\"properties\":{",
        "\"a{n}\":{\"$ref\":\"#/$defs/none\"},",
        "\"b\":{}}}",
    ),
    text(
        "not",
        "{\"type\":\"object\",",
        "\"not\":{\"required\":[\"a{n}\"]},",
        "\"title\":\"x\"}",
    ),
];

/// Regular expressions over the names and descriptions of tools.
pub(crate) const PATTERNS: &[Text] = &[
    text("groups", "", "(", ""),
    text("repeats", "(a", "{1000}", ")"),
    text("alternatives", "", "a{n}|", "b"),
    text("options", "", "(a?)*", "b"),
    text("classes", "", "\\p{L}{100}", ""),
    text("stars", "", ".*", "x"),
];

/// Text that a server sends on an event stream.
pub(crate) const EVENTS: &[Text] = &[
    text("data-lines", "", "data: x\n", "\n"),
    text("empty-data", "", "data\n", "\n"),
    text("one-line", "data: ", "x", "\n\n"),
    text("open-line", "data: ", "x", ""),
    text("comments", "", ":\n", "\n"),
    text("returns", "", "\r", "\n"),
    text("events", "", "event: a{n}\ndata: {}\n\n", ""),
    text("ids", "", "id: {n}\ndata:\n\n", ""),
    text("retries", "", "retry: {n}\n", "\n"),
    text("fields", "", "a{n}\n", "\n"),
    text("no-data", "", "\n", ""),
    text(
        "notifications",
        "",
        "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":\
        {\"level\":\"info\",\"data\":\"a{n}\"}}\n\n",
        "",
    ),
    text(
        "list-changes",
        "",
        "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n",
        "",
    ),
    text(
        "requests",
        "",
        "data: {\"jsonrpc\":\"2.0\",\"id\":{n},\"method\":\"sampling/createMessage\",\
        \"params\":{}}\n\n",
        "",
    ),
    text(
        "answers-to-nothing",
        "",
        "data: {\"jsonrpc\":\"2.0\",\"id\":\"a{n}\",\"result\":{}}\n\n",
        "",
    ),
];

/// Text in which credentials are searched. Each text repeats characters that could begin a
/// credential.
pub(crate) const CREDENTIALS: &[Text] = &[
    text(
        "json",
        "[",
        "{\"id\":{n},\"name\":\"Service {n}\",\"note\":\"restarted, see the runbook\\n\"},\n",
        "1]",
    ),
    text(
        "json-with-addresses",
        "[",
        "{\"id\":{n},\"url\":\"https://host.example/{n}\",\"note\":\"caf\\u00e9\"},\n",
        "1]",
    ),
    text("json-escapes", "[\"", "\\\\\\\"", "\"]"),
    text(
        "key-begins",
        "",
        concat!("-----BEGIN PRIV", "ATE KEY-----\n"),
        "",
    ),
    text(
        "key-ends",
        "",
        concat!("-----END PRIV", "ATE KEY-----\n"),
        "",
    ),
    text(
        "key-without-end",
        concat!("-----BEGIN PRIV", "ATE KEY-----\n"),
        "MIIEvQIBADANBgkqhkiG9w0BAQ\n",
        "",
    ),
    text("dashes", "", "-----", ""),
    text("tokens-in-a-run", "", "sk-", ""),
    text("long-token", "sk-1", "abcdefgh", ""),
    text("jwts", "", "eyJhbGciOiJI.", ""),
    text("jwt-starts", "", "eyJ", ""),
    text("addresses", "", "a://b:c", ""),
    text("passwords", "", "a://b:c@d,", ""),
    text("schemes", "", "a", "://b:c@d"),
    text("assignments", "", "session_token=", ""),
    text("headers", "", "Authorization: Basic ", ""),
    text("bots", "", "123456789:AA", ""),
    text("configured", "", "t0ken-1t0ken-", ""),
];
