//! The tools that generated scripts call: recorded replies of every shape. The outcome depends only
//! on the call, so that both engines get the same outcome.

use sandbox_protocol::{Failure, OpenCall, Outcome, ServerStubs, ToolStub};

/// The member name of a tool, its short name (empty if it has none), and the names of its
/// positional arguments.
type Tool = (&'static str, &'static str, &'static [&'static str]);

const TOOLS: [(&str, &[Tool]); 2] = [
    (
        "shop",
        &[
            ("find", "find", &["query", "limit"]),
            ("list", "", &[]),
            ("save", "", &["id", "row"]),
            ("fails", "", &[]),
            ("echo", "", &[]),
        ],
    ),
    (
        "files",
        &[
            ("read", "readFile", &["path"]),
            ("slow", "", &[]),
            ("sometimes", "", &["n"]),
        ],
    ),
];

/// JSON texts of every shape; the first is empty.
const REPLIES: [&str; 30] = [
    "",
    "null",
    "true",
    "0",
    "-0",
    "1.5e300",
    "9007199254740993",
    "-2147483649",
    "\"\"",
    "\"text €\\ud83d\\ude00 \\u0000\\\"\\\\\"",
    "[]",
    "[null]",
    "[1,[2,[3,[]]]]",
    "{}",
    r#"{"a":1,"b":{"c":[true,false,null]}}"#,
    r#"{"items":[{"id":1,"name":"a"},{"id":2,"name":"b"},{"id":3,"name":"a"}]}"#,
    r#"[{"id":1,"n":0.1},{"id":2,"n":0.2},{"id":3,"m":0.3},{"n":1,"id":4}]"#,
    r#"{"__proto__":{"x":1},"constructor":2,"toString":3}"#,
    r#"{"2":"b","1":"a","z":0,"-1":"m","01":"k"}"#,
    r#"{"a":1,"a":2}"#,
    r#"[0.1,0.5,1e21,1e-7,123456789012345680000]"#,
    r#"{"then":1,"toJSON":"x","length":3}"#,
    r#"["a","b","c","d","e","f","g","h"]"#,
    r#"{"rows":[["x",1],["y",2]],"next":null}"#,
    r#"{"text":"line one\nline two\r\nline three","size":31}"#,
    r#"{"":"empty","é":"acute","😀":1}"#,
    r#"[[],{},"",0,null,false]"#,
    r#"{"date":"2024-02-29T12:30:00Z","ok":true}"#,
    r#"[{"k":"a","v":[1,2]},{"k":"b","v":[]},{"k":"a","v":[3]}]"#,
    r#"{"deep":{"deep":{"deep":{"deep":{"deep":{"deep":1}}}}}}"#,
];

const FAILURES: [(&str, &str, bool); 5] = [
    ("tool-failed", "the shop is closed", true),
    ("denied", "no rule allows `shop.fails`", false),
    ("invalid-arguments", "`id` is missing", false),
    ("unknown", "the outcome is not known", false),
    ("timeout", "it took longer than 60000 ms", true),
];

/// Maximum number of turns before a reply.
pub(super) const TURNS_MAX: usize = 4;

pub(super) fn stubs() -> Vec<ServerStubs> {
    let tool = |server: &str, &(member, short, order): &Tool| ToolStub {
        member: member.to_owned(),
        flat: format!("{server}_{member}"),
        short: short.to_owned(),
        order: order.iter().map(|&name| name.to_owned()).collect(),
        hidden: false,
    };
    let server = |&(name, tools): &(&str, &[_])| ServerStubs {
        name: name.to_owned(),
        tools: tools.iter().map(|it| tool(name, it)).collect(),
    };
    TOOLS.iter().map(server).collect()
}

/// Returns the name of the tool that is called.
pub(super) fn name(call: &OpenCall) -> String {
    let server = TOOLS.get(usize::from(call.server));
    server.map_or_else(String::new, |(server, tools)| {
        let tool = tools.get(usize::from(call.tool));
        format!("{server}.{}", tool.map_or("", |tool| tool.0))
    })
}

/// Returns the outcome of a call, and the number of turns before it.
pub(super) fn reply(call: &OpenCall) -> (Outcome, usize) {
    let name = name(call);
    let lot = call.args.iter().chain(name.as_bytes());
    let lot = lot.fold(7_usize, |lot, byte| {
        lot.wrapping_mul(31).wrapping_add(usize::from(*byte)) % 1_000_003
    });
    let turns = match name.as_str() {
        "files.slow" => 1 + lot % TURNS_MAX,
        _ => usize::from(lot % 5 == 0),
    };
    let outcome = match name.as_str() {
        "shop.fails" => failed(&name, lot),
        "files.sometimes" if lot % 3 == 0 => failed(&name, lot),
        "shop.echo" => Outcome::Value(call.args.clone()),
        "shop.list" => Outcome::Value(REPLIES[14 + lot % 3].into()),
        "files.read" => Outcome::Value(REPLIES[24].into()),
        _ => Outcome::Value(REPLIES[lot % REPLIES.len()].into()),
    };
    (outcome, turns)
}

fn failed(tool: &str, lot: usize) -> Outcome {
    let (code, message, retryable) = FAILURES[lot % FAILURES.len()];
    let structured = ["", r#"{"left":0,"try":["later"]}"#][lot % 2];
    Outcome::Failure(Failure {
        code: code.to_owned(),
        tool: tool.to_owned(),
        message: message.to_owned(),
        retryable,
        content: br#"[{"type":"text","text":"closed"}]"#.to_vec(),
        structured_content: structured.into(),
    })
}
