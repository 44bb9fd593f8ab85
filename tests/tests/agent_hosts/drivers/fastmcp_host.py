# The client of fastmcp with a loop of our own, and a person who approves in the host.
#
# Usage: fastmcp_host.py MODEL URL, or … MODEL COMMAND ARGUMENT…
import asyncio
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from model_loop import converse

url, target, *arguments = sys.argv[1:]


async def approve(message, response_type, params, context):
    return {"decision": "allow"}


async def main():
    server = target if target.startswith("http://") else StdioTransport(target, arguments)
    async with Client(server, elicitation_handler=approve) as client:

        async def call(tool, args):
            result = await client.call_tool(tool, args, raise_on_error=False)
            return [it.model_dump(by_alias=True) for it in result.content]

        await converse(url, [(it.name, it.description) for it in await client.list_tools()], call)


asyncio.run(main())
