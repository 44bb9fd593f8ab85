//! Text for a model's system prompt, which hosts may include. It tells the model in which order to
//! search, read and call tools.

use serde_json::{Value, json};

use super::request::Request;
use super::rpc::{RpcErrorResponse, sanitize};
use super::settings::{ListMode, ServeSettings};

pub(super) const NAME: &str = "use_tools";
const ABOUT: &str = "How to find, read and call the tools behind this server";

const FIND: &str = "\
airlock gives you the tools of several servers. Short descriptions are enough to choose by; read full \
descriptions when you need them.
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

/// What a user changes so that calls that need approval can be made with a host that cannot ask.
pub(super) const CHANGES_FOR_APPROVAL: &str = "`approver = \"web\"` (airlock asks on a page in the browser) or \
`approver = \"later\"` (the run waits for `airlock runs answer RUN:CALL allow` at a terminal) in airlock's \
configuration file and restart airlock, or start airlock with --grant FILE";

/// Returns the text for a host. If no person can be asked about calls, it says so.
pub(super) fn instructions(settings: &ServeSettings, can_ask: bool) -> String {
    let text = text(settings.mode);
    if can_ask || settings.has_approver {
        return text;
    }
    format!(
        "{text}\nThis host cannot show questions, so calls that need approval are refused. The user \
         can set {CHANGES_FOR_APPROVAL}, or --allow 'server.tool'."
    )
}

/// Returns the list with this text as a prompt, for hosts that use prompts.
pub(super) fn list() -> Value {
    json!({"prompts": [{"name": NAME, "title": "Use the tools", "description": ABOUT}]})
}

/// Whether a request is for this prompt and not for a prompt of a server.
pub(super) fn is_own(request: &Request) -> bool {
    request.params.get("name").and_then(Value::as_str) == Some(NAME)
}

pub(super) fn read(request: &Request, mode: ListMode) -> Result<Value, RpcErrorResponse> {
    let name = request.params.get("name").and_then(Value::as_str);
    match name.ok_or_else(|| RpcErrorResponse::invalid("`name` is missing or not a string"))? {
        NAME => {
            let content = json!({"type": "text", "text": text(mode)});
            let messages = json!([{"role": "user", "content": content}]);
            Ok(json!({"description": ABOUT, "messages": messages}))
        }
        other => Err(RpcErrorResponse::invalid(format!(
            "there is no prompt `{}`",
            sanitize(other)
        ))),
    }
}

/// Returns the recommended text.
#[must_use]
pub fn text(mode: ListMode) -> String {
    let call = match mode {
        ListMode::Code => SCRIPTS,
        ListMode::Progressive => DIRECTLY,
        ListMode::Stable => STABLE,
    };
    format!("{FIND}{call}{RULES}")
}
