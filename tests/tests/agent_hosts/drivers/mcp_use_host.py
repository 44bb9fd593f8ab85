# An agent of mcp-use, and a person who approves in the host.
#
# Usage: mcp_use_host.py MODEL URL, or … MODEL COMMAND ARGUMENT…
import asyncio
import sys

from langchain_openai import ChatOpenAI
from mcp.types import ElicitResult
from mcp_use import MCPAgent, MCPClient

url, target, *arguments = sys.argv[1:]


async def approve(context, params):
    return ElicitResult(action="accept", content={"decision": "allow"})


async def main():
    server = {"url": target} if target.startswith("http://") else {"command": target, "args": arguments}
    client = MCPClient({"mcpServers": {"airlock": server}}, elicitation_callback=approve)
    model = ChatOpenAI(model="scripted", base_url=f"{url}/v1", api_key="none")
    agent = MCPAgent(llm=model, client=client, max_steps=1_000)
    await agent.run("begin")
    await client.close_all_sessions()


asyncio.run(main())
