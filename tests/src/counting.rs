//! A server that counts its calls: two tools, `w.create` and `w.read`, of which only the first writes.
//! Each has the argument `title`. The title decides about the answer: with `hang` or `late` there is
//! none, unless the file `answers` exists in the home; `no` fails; `hold` is answered after the next
//! failure.

use serde_json::json;

use crate::command::Home;

/// The server, in shell. It writes the title of each call to `calls.log` before it answers.
const SERVER: &str = r#"
say() { printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$1" "$2"; }
made() { say "$1" '"result":{"content":[{"type":"text","text":"made '"$2"'"}]}'; }
held=
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/^{"jsonrpc":"2.0","id":\([0-9]*\).*/\1/p')
  case $line in
    *'"server/discover"'*) say "$id" '"error":{"code":-32601,"message":"no"}' ;;
    *'"initialize"'*) say "$id" '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
    *'"tools/list"'*) say "$id" '"result":{"tools":[TOOLS]}' ;;
    *'"tools/call"'*)
      title=$(printf '%s' "$line" | sed -n 's/.*"title":"\([^"]*\)".*/\1/p')
      printf '%s\n' "$title" >> calls.log
      case $title in
        *hang*|*late*) [ -e answers ] && made "$id" "$title" ;;
        *hold*) held="$held $id" ;;
        no*)
          say "$id" '"result":{"content":[{"type":"text","text":"no"}],"isError":true}'
          for it in $held; do made "$it" held; done
          held= ;;
        *) made "$id" "$title" ;;
      esac ;;
  esac
done
"#;

const TOOLS: [&str; 2] = ["create", "read"];

/// Writes the server to a file of the home, and returns a configuration that starts it.
#[must_use]
pub fn config(home: &Home, program: &str, description: &str) -> String {
    let schema = json!({"type": "object", "properties": {"title": {"type": "string"}}});
    let tool = |name: &str| {
        json!({"name": name, "description": description, "inputSchema": schema}).to_string()
    };
    let server = SERVER.replace("TOOLS", &TOOLS.map(tool).join(","));
    let path = home.write(program, server);
    format!(
        "[servers.w]\ncommand = \"sh\"\nargs = [{}]\ncwd = {}\nread_only = [\"read\"]\n",
        json!(path),
        json!(home.path()),
    )
}

/// Returns the titles of the calls that the server got, in order.
#[must_use]
pub fn made(home: &Home) -> Vec<String> {
    let log = std::fs::read_to_string(home.path().join("calls.log")).unwrap_or_default();
    log.lines().map(str::to_owned).collect()
}
