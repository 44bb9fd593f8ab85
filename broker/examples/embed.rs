//! A complete host application: one tool that lives in this process, an approver that answers in
//! place of a person, and a script that uses both.
//!
//! `cargo run --example embed` runs it, and so does `cargo test`.

use std::num::NonZeroU32;

use airlock::core::decide::{Answer, Question};
use airlock::core::report::Status;
use airlock::{Broker, InProcessTool, RunEvent, Script, ToolFailure};
use serde_json::{Value, json};

const SCRIPT: &str = r#"
const prices = await Promise.all(["apple", "pear"].map((fruit) => shop.price({ fruit })));
try {
  await shop.price({ fruit: "stone" });
} catch (error) {
  console.log(`${error.code}: ${error.message}`);
}
return prices.reduce((sum, price) => sum + price.cents, 0);
"#;

/// An async function with a description like any MCP tool's.
fn price_tool() -> InProcessTool {
    let description = json!({
        "name": "price",
        "description": "The price of one fruit.",
        "inputSchema": {
            "type": "object",
            "properties": {"fruit": {"type": "string"}},
            "required": ["fruit"],
        },
        "outputSchema": {
            "type": "object",
            "properties": {"cents": {"type": "integer"}},
            "required": ["cents"],
        },
    });
    InProcessTool::new("shop", description, |args: Value| async move {
        match args.get("fruit").and_then(Value::as_str) {
            Some("apple") => Ok(json!({"cents": 40})),
            Some("pear") => Ok(json!({"cents": 55})),
            other => Err(ToolFailure::new(format!(
                "no price for {}",
                other.unwrap_or("nothing")
            ))),
        }
    })
}

/// Approves three calls of the price list, and denies everything else.
async fn approve(question: Question) -> Answer {
    match NonZeroU32::new(3) {
        Some(uses_max) if question.tool.to_string() == "shop.price" => Answer::up_to(uses_max),
        _ => Answer::Refuse,
    }
}

async fn embed() -> Result<Value, Box<dyn std::error::Error>> {
    let state = std::env::temp_dir().join(format!("airlock-embed-{}", std::process::id()));
    let broker = Broker::builder()
        .tool(price_tool())
        .ask("shop.*")?
        .approver(approve)
        .state_dir(&state)
        .build()
        .await?;

    let mut running = broker.run(Script::body(SCRIPT).named("prices.js"));
    while let Some(event) = running.next_event().await {
        match event {
            RunEvent::Console { text, .. } => println!("the script says: {text}"),
            RunEvent::CallSettled { call, outcome, .. } => println!("call {}: {outcome:?}", call.0),
            _ => {}
        }
    }
    let report = running.report().await;
    broker.close().await;
    std::fs::remove_dir_all(&state)?;

    if report.status != Status::Done {
        return Err(format!("the run ended otherwise: {:?}", report.error).into());
    }
    let value = report.value.ok_or("the script returned nothing")?;
    Ok(serde_json::from_str(value.get())?)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let value = tokio::runtime::Runtime::new()?.block_on(embed())?;
    println!("{value} cents");
    Ok(())
}

#[test]
fn host_runs_script_with_own_tool_and_approver() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    assert_eq!(runtime.block_on(embed()).unwrap(), json!(95));
}
