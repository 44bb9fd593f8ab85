//! Drives agent hosts with a scripted model on loopback, over both transports: a search and one
//! script over three servers, a call that needs approval, and a long value and an image. Checks
//! what the model gets, and that `docs/hosts.md` says the same.

mod conversation;

use tests::agent_hosts::{self, AgentHost};
use tests::binary::workspace;

use conversation::{Conversation, Outcome};

/// Runs the conversation over both transports, and compares the outcomes with the document.
fn check(host: &AgentHost) {
    let mut rows = Vec::new();
    for transport in ["stdio", "HTTP"] {
        let Some(conversation) = Conversation::start(host, transport) else {
            return;
        };
        rows.push(row(host, transport, &conversation.run()));
    }
    let page = std::fs::read_to_string(workspace().join("docs/hosts.md")).expect("the page");
    let start = format!("| {} |", host.title);
    let documented: Vec<_> = page.lines().filter(|it| it.starts_with(&start)).collect();
    assert_eq!(documented, rows, "docs/hosts.md");
}

fn row(host: &AgentHost, transport: &str, outcome: &Outcome) -> String {
    let Outcome {
        instructions,
        servers,
        approval,
        value,
        image,
    } = outcome;
    let title = host.title;
    format!(
        "| {title} | {transport} | {instructions} | {servers} | {approval} | {value} | {image} |"
    )
}

#[test]
fn openai_agents() {
    check(&agent_hosts::OPENAI_AGENTS);
}

#[test]
fn langchain_adapters() {
    check(&agent_hosts::LANGCHAIN);
}

#[test]
fn pydantic_ai() {
    check(&agent_hosts::PYDANTIC_AI);
}

#[test]
fn mcp_use() {
    check(&agent_hosts::MCP_USE);
}

#[test]
fn fastmcp() {
    check(&agent_hosts::FASTMCP);
}

#[test]
fn ai_sdk() {
    check(&agent_hosts::AI_SDK);
}

#[test]
fn claude_code() {
    check(&agent_hosts::CLAUDE_CODE);
}

#[test]
fn codex() {
    check(&agent_hosts::CODEX);
}

#[test]
fn gemini_cli() {
    check(&agent_hosts::GEMINI_CLI);
}

#[test]
fn opencode() {
    check(&agent_hosts::OPENCODE);
}

#[test]
fn inspector() {
    check(&agent_hosts::INSPECTOR);
}
