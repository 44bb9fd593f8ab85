//! The tools that hostile scripts call: `box` has one tool for every outcome of a call, and `clash`
//! has names that are hard to distinguish.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use airlock::{InProcessTool, ToolFailure};
use serde_json::{Value, json};

use super::Log;

type Answer = Result<Value, ToolFailure>;

/// Returns all tools, which record their calls in `log`. `remark` is appended to the descriptions
/// of the tools that answer at once.
pub(super) fn all(log: &Arc<Log>, remark: &str) -> Vec<InProcessTool> {
    let any = || json!({"type": "object"});
    let path = || json!({"type": "object", "properties": {"path": {}}});
    let tool = |name: &'static str, schema: Value, answer: fn(&Value) -> Answer| {
        quick(log, name, remark, schema, answer)
    };
    vec![
        tool("box.echo", any(), |args| Ok(args.clone())),
        tool("box.write", path(), |_| Ok(json!({"ok": true}))),
        tool("box.forbidden", any(), |_| {
            Ok(json!("this must never be seen"))
        }),
        tool("box.pattern", any(), |_| Ok(json!({"pattern": "^(a+)+$"}))),
        tool("box.thenable", any(), |_| {
            Ok(json!({"then": "a word", "value": 1}))
        }),
        tool("box.whoami", any(), |_| Ok(json!({"server": "box"}))),
        tool(
            "box.read",
            object(json!({"id": {"type": "integer"}}), &["id"]),
            |args| Ok(json!({"id": args["id"]})),
        ),
        tool(
            "box.send",
            object(
                json!({"to": {"type": "string"}, "subject": {"type": "string"}, "body": {"type": "string"}}),
                &["to"],
            ),
            |_| Ok(json!({"sent": true})),
        ),
        tool(
            "box.pay",
            object(
                json!({"amount": {"type": "number", "minimum": 0, "maximum": 250}}),
                &["amount"],
            ),
            |args| Ok(json!({"paid": args["amount"]})),
        ),
        tool("box.fail", any(), |_| {
            Err(ToolFailure {
                structured_content: Some(json!({"hint": "list them first"})),
                ..ToolFailure::new("no such ticket: 42")
            })
        }),
        tool("box.lost", any(), |_| {
            panic!(
                "GET http://10.0.0.7/internal?token={} failed, see /srv/private/log",
                super::CANARY
            )
        }),
        tool(
            "box.big",
            object(json!({"bytes": {"type": "integer"}}), &["bytes"]),
            |args| {
                let bytes = args["bytes"]
                    .as_u64()
                    .and_then(|bytes| usize::try_from(bytes).ok())
                    .unwrap_or_default();
                Ok(json!({"text": "b".repeat(bytes)}))
            },
        ),
        slow(log),
        gauge(log),
        tool("clash.get-sum", any(), |_| Ok(json!({"name": "get-sum"}))),
        tool("clash.get_sum", any(), |_| Ok(json!({"name": "get_sum"}))),
        tool("clash.get.sum", any(), |_| Ok(json!({"name": "get.sum"}))),
        tool("twin.whoami", any(), |_| Ok(json!({"server": "twin"}))),
        tool("twin.write", any(), |_| Ok(json!({"ok": true}))),
        tool("box.environment", any(), |_| {
            Ok(json!({"API_TOKEN": format!("{}-configured", super::CANARY), "LANG": "C"}))
        }),
    ]
}

fn object(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn quick(
    log: &Arc<Log>,
    name: &'static str,
    remark: &str,
    schema: Value,
    answer: fn(&Value) -> Answer,
) -> InProcessTool {
    let log = Arc::clone(log);
    described(name, remark, schema, move |args: Value| {
        log.note(name, &args);
        async move { answer(&args) }
    })
}

/// Returns the tool that answers `value` after `ms`.
fn slow(log: &Arc<Log>) -> InProcessTool {
    let log = Arc::clone(log);
    let schema = object(json!({"ms": {"type": "integer"}, "value": {}}), &["ms"]);
    described("box.slow", "", schema, move |args: Value| {
        log.note("box.slow", &args);
        async move {
            tokio::time::sleep(Duration::from_millis(
                args["ms"].as_u64().unwrap_or_default(),
            ))
            .await;
            Ok(json!({"value": args["value"]}))
        }
    })
}

/// Returns the tool that answers how many of its calls are open.
fn gauge(log: &Arc<Log>) -> InProcessTool {
    let log = Arc::clone(log);
    described(
        "box.gauge",
        "",
        json!({"type": "object"}),
        move |args: Value| {
            log.note("box.gauge", &args);
            let open = InFlightGuard::one_more(&log);
            async move {
                tokio::time::sleep(Duration::from_millis(3)).await;
                Ok(json!({"in_flight": open.0.in_flight.load(Ordering::SeqCst)}))
            }
        },
    )
}

struct InFlightGuard(Arc<Log>);

impl InFlightGuard {
    fn one_more(log: &Arc<Log>) -> Self {
        log.in_flight.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(log))
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::SeqCst);
    }
}

fn described<F, Fut>(name: &'static str, remark: &str, schema: Value, function: F) -> InProcessTool
where
    F: Fn(Value) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Answer> + 'static,
{
    let (server, tool) = name.split_once('.').expect("a name with a dot");
    let description = json!({"name": tool, "description": format!("The tool {tool}.{remark}"), "inputSchema": schema});
    InProcessTool::new(server, description, function)
}
