//! What a host may put into a model's system prompt, so that it finds, reads
//! and calls tools in the order in which that works.

use serde_json::{Value, json};

use super::request::Request;
use super::rpc::{Refusal, shown};
use super::settings::Mode;

pub(super) const NAME: &str = "use_tools";
const ABOUT: &str = "How to find, read and call the tools that stand behind this server";

const FIND: &str = "\
airlock stands between you and the tools of several servers. Their short descriptions are enough to \
choose by; full ones are read when they are needed.
1. FIND tools with search_tools, by what they should do.
2. READ the ones that you have chosen: get_tool_details with their names, or the resource \
resource:///tool_descriptions?tools=server.tool,server.other. Always name the tools: reading the \
resource without ?tools= fails. Reading a description allows its tool for this session; calling a tool \
before that fails with TOOL_DESCRIPTION_REQUIRED.
";
const SCRIPTS: &str = "3. CALL them in one script with run_script: `await server.tool({…})`, with loops, \
Promise.all and plain JavaScript between the calls. Return only what you need; console.log is shown too.";
const DIRECTLY: &str = "3. CALL them: one call directly, several in one script with run_script, where \
they are `await server.tool({…})`.";
const STABLE: &str = "3. CALL them: one call with call_tool, several in one script with run_script, where \
they are `await server.tool({…})`.";
const RULES: &str = "
Every call is decided by rules and may need a person's approval. A denied call did not happen; a failed \
one may have. A script that fails reports its line and the calls that were made already.";

/// The same as a prompt, for hosts that take it from there.
pub(super) fn list() -> Value {
    json!({"prompts": [{"name": NAME, "title": "Use the tools", "description": ABOUT}]})
}

pub(super) fn read(request: &Request, mode: Mode) -> Result<Value, Refusal> {
    let name = request.params.get("name").and_then(Value::as_str);
    match name.ok_or_else(|| Refusal::invalid("`name` is missing or not a string"))? {
        NAME => {
            let content = json!({"type": "text", "text": text(mode)});
            let messages = json!([{"role": "user", "content": content}]);
            Ok(json!({"description": ABOUT, "messages": messages}))
        }
        other => Err(Refusal::invalid(format!(
            "there is no prompt `{}`",
            shown(other)
        ))),
    }
}

/// The recommended text.
#[must_use]
pub fn text(mode: Mode) -> String {
    let call = match mode {
        Mode::Code => SCRIPTS,
        Mode::Progressive => DIRECTLY,
        Mode::Stable => STABLE,
    };
    format!("{FIND}{call}{RULES}")
}
