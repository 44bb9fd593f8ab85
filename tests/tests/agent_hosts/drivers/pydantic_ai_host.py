# An agent of pydantic-ai, and a person who approves in the host.
#
# Usage: pydantic_ai_host.py MODEL URL, or … MODEL COMMAND ARGUMENT…
import asyncio
import sys

from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import UsageLimits

url, target, *arguments = sys.argv[1:]


async def approve(message, response_type, params, context):
    return {"decision": "allow"}


async def main():
    server = target if target.startswith("http://") else StdioTransport(target, arguments)
    model = OpenAIChatModel("scripted", provider=OpenAIProvider(base_url=f"{url}/v1", api_key="none"))
    agent = Agent(model, toolsets=[MCPToolset(server, elicitation_handler=approve)])
    async with agent:
        await agent.run("begin", usage_limits=UsageLimits(request_limit=1_000))


asyncio.run(main())
