//! A well-behaved MCP server on stdio, for tests of hosts behind airlock. Its tools answer with
//! every kind of content, send requests to their host, wait forever, or end the server.
//!
//! Usage: `fixture-server [--newer] [LOG]`. Without `--newer`, the server uses the older era. The
//! file LOG gets a line for each call, each cancellation, and each answer to a request of the
//! server.

mod asks;
mod news;
mod shelves;
mod tools;

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, Write};

use news::News;
use serde_json::{Map, Value, json};
use tools::Tools;

const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";

fn main() -> std::io::Result<()> {
    let mut args: Vec<_> = std::env::args_os().skip(1).collect();
    let is_newer = args.first().is_some_and(|it| it == "--newer");
    args.drain(..usize::from(is_newer));
    let open = |path| File::options().create(true).append(true).open(path);
    let mut fixture = Fixture {
        is_newer,
        log: args.into_iter().next().map(open).transpose()?,
        tools: Tools::new(),
        news: News::new(is_newer),
        asking: HashMap::new(),
        is_opened: false,
    };
    fixture.note(&format!("pid {}", std::process::id()))?;
    for line in std::io::stdin().lock().lines() {
        if let Ok(message) = serde_json::from_str(&line?) {
            fixture.hear(&message)?;
        }
    }
    fixture.note("stdin ended")
}

struct Fixture {
    is_newer: bool,
    log: Option<File>,
    tools: Tools,
    news: News,
    /// Calls of the older era, by id, that wait for answers to their requests.
    asking: HashMap<String, PendingInput>,
    /// Whether the address of `address_first` was opened.
    is_opened: bool,
}

struct PendingInput {
    id: Value,
    params: Value,
    /// The answers of each earlier round.
    rounds: Vec<Map<String, Value>>,
    wanted: usize,
    said: Map<String, Value>,
}

impl Fixture {
    /// Writes a line with a single call, because a test may be reading.
    fn note(&mut self, line: &str) -> std::io::Result<()> {
        match &mut self.log {
            Some(log) => log.write_all(format!("{line}\n").as_bytes()),
            None => Ok(()),
        }
    }

    fn hear(&mut self, message: &Value) -> std::io::Result<()> {
        let method = message["method"].as_str().unwrap_or_default();
        if method == "notifications/cancelled" {
            self.note("cancelled")?;
        }
        let Some(id) = message.get("id") else {
            return Ok(());
        };
        if message.get("method").is_none() {
            return self.heard(message);
        }
        if method == "initialize" {
            self.note(&format!("host {}", message["params"]["capabilities"]))?;
        }
        let result = match method {
            "initialize" if !self.is_newer => json!({
                "protocolVersion": "2025-11-25",
                "capabilities": news::capabilities(),
                "serverInfo": {"name": "fixture", "version": "1"},
            }),
            "server/discover" if self.is_newer => json!({
                "supportedVersions": ["2026-07-28"],
                "capabilities": news::capabilities(),
                "resultType": "complete",
                "ttlMs": 0,
                "cacheScope": "private",
            }),
            "tools/list" => json!({"tools": self.tools.list(), "resultType": "complete"}),
            "tools/call" => {
                let tool = message["params"]["name"].as_str().unwrap_or_default();
                self.note(&format!("call {tool}"))?;
                match tool {
                    "trigger_tool_change" => self.tools.change()?,
                    "trigger_prompt_change" => self.news.change()?,
                    "tool_with_progress" => news::progress(&message["params"])?,
                    "tool_with_logging" | "logging_tool" => self.news.log(&message["params"])?,
                    _ => {}
                }
                match tool {
                    "address_first" if !self.is_opened => return send(&asks::first(id)),
                    "opened" => {
                        self.is_opened = true;
                        if !self.is_newer {
                            news::opened()?;
                        }
                        return self.call(id, &message["params"]);
                    }
                    "wait" => return Ok(()),
                    "crash" => std::process::exit(3),
                    _ => return self.call(id, &message["params"]),
                }
            }
            "ping" => json!({}),
            _ => {
                if self.news.is_about(method) {
                    // Logged first, because a client that has the answer may check the log.
                    self.note(&format!("{method} {}", message["params"]))?;
                    return self.news.hear(id, method, &message["params"]);
                }
                if let Some(result) = shelves::answer(method, &message["params"]) {
                    return answer(id, &result);
                }
                let (code, message) = match method {
                    "resources/read" => (-32002, "no such resource"),
                    _ => (-32601, "no such method"),
                };
                let error = json!({"code": code, "message": message});
                return send(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
            }
        };
        answer(id, &result)
    }

    fn call(&mut self, id: &Value, params: &Value) -> std::io::Result<()> {
        let mut rounds = Vec::new();
        if let Some(state) = params["requestState"].as_str() {
            rounds = serde_json::from_str(state).unwrap_or_default();
        }
        if let Some(said) = params["inputResponses"].as_object() {
            self.note(&format!("said {}", Value::from(said.clone())))?;
            rounds.push(said.clone());
        }
        self.go_on(id, params, rounds)
    }

    /// Sends the requests of the next round of a call, or ends the call.
    fn go_on(
        &mut self,
        id: &Value,
        params: &Value,
        rounds: Vec<Map<String, Value>>,
    ) -> std::io::Result<()> {
        let host = &params["_meta"][CAPABILITIES_KEY];
        let requests = asks::round(params, rounds.len(), host);
        if requests.is_empty() {
            if params["name"] == "elicitation_address" && !self.is_newer {
                news::opened()?;
            }
            return answer(id, &tools::called(params, &rounds));
        }
        if self.is_newer {
            let state = serde_json::to_string(&rounds)?;
            let result = json!({
                "resultType": "input_required",
                "inputRequests": requests,
                "requestState": state,
            });
            return answer(id, &result);
        }
        let asking = PendingInput {
            id: id.clone(),
            params: params.clone(),
            rounds,
            wanted: requests.len(),
            said: Map::new(),
        };
        self.asking.insert(id.to_string(), asking);
        for (key, request) in requests {
            let mut request = request;
            request["jsonrpc"] = "2.0".into();
            request["id"] = format!("{id}/{key}").into();
            send(&request)?;
        }
        Ok(())
    }

    /// Handles an answer to a request of the older era.
    fn heard(&mut self, message: &Value) -> std::io::Result<()> {
        let asked = message["id"].as_str().and_then(|it| it.split_once('/'));
        let Some((id, key)) = asked else {
            return Ok(());
        };
        let Some(asking) = self.asking.get_mut(id) else {
            return Ok(());
        };
        if let Some(error) = message.get("error") {
            let asking = self.asking.remove(id).expect("an open call");
            self.note(&format!("refused {error}"))?;
            let said = format!("it was refused: {}", error["message"]);
            let content = [json!({"type": "text", "text": said})];
            return answer(&asking.id, &json!({"content": content, "isError": true}));
        }
        asking
            .said
            .insert(key.to_owned(), message["result"].clone());
        if asking.said.len() < asking.wanted {
            return Ok(());
        }
        let mut asking = self.asking.remove(id).expect("an open call");
        self.note(&format!("said {}", Value::from(asking.said.clone())))?;
        asking.rounds.push(asking.said);
        self.go_on(&asking.id, &asking.params, asking.rounds)
    }
}

fn answer(id: &Value, result: &Value) -> std::io::Result<()> {
    send(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

fn send(message: &Value) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{message}")?;
    stdout.flush()
}
