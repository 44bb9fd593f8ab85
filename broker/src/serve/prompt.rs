//! What a host may put into a model's system prompt, so that it finds, reads
//! and calls tools in the order in which that works.

use super::settings::Mode;

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
