# An agent of the OpenAI Agents SDK, with the SDK's defaults.
#
# Usage: openai_agents_host.py MODEL URL, or … MODEL COMMAND ARGUMENT…
import asyncio
import sys

from agents import Agent, Runner, set_tracing_disabled
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
from agents.models.openai_responses import OpenAIResponsesModel
from openai import AsyncOpenAI

url, target, *arguments = sys.argv[1:]


async def main():
    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=f"{url}/v1", api_key="none")
    if target.startswith("http://"):
        server = MCPServerStreamableHttp({"url": target})
    else:
        server = MCPServerStdio({"command": target, "args": arguments})
    async with server:
        model = OpenAIResponsesModel("scripted", client)
        agent = Agent("host", model=model, mcp_servers=[server])
        await Runner.run(agent, "begin", max_turns=1_000)


asyncio.run(main())
