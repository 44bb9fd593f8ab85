# An agent of LangChain with the MCP adapters, and a person who approves in the host.
#
# Usage: langchain_host.py MODEL URL, or … MODEL COMMAND ARGUMENT…
import asyncio
import sys

from langchain.agents import create_agent
from langchain_mcp_adapters.callbacks import Callbacks
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools
from langchain_openai import ChatOpenAI
from mcp.types import ElicitResult

url, target, *arguments = sys.argv[1:]


async def approve(context, params, callback_context):
    return ElicitResult(action="accept", content={"decision": "allow"})


async def main():
    if target.startswith("http://"):
        connection = {"transport": "streamable_http", "url": target}
    else:
        connection = {"transport": "stdio", "command": target, "args": arguments}
    client = MultiServerMCPClient({"airlock": connection}, callbacks=Callbacks(on_elicitation=approve))
    model = ChatOpenAI(model="scripted", base_url=f"{url}/v1", api_key="none")
    async with client.session("airlock") as session:
        agent = create_agent(model, await load_mcp_tools(session))
        await agent.ainvoke({"messages": [("user", "begin")]}, {"recursion_limit": 1_000})


asyncio.run(main())
