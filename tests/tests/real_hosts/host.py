# A host on the official Python SDK: search, describe, run, progress, an approval
# and a cancellation. Prints one JSON object with what it saw.
import asyncio
import json
import sys

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.types import ElicitResult

LIST = "return (await demo.tickets_list({})).tickets.length"
ASK = "const made = await demo.tickets_create({ title: 'from a host' }); return typeof made"


async def approve(context, params):
    seen["asked"] = params.message
    return ElicitResult(action="accept", content={"decision": "allow"})


seen = {}


async def converse(client):
    seen["listed"] = [tool.name for tool in (await client.list_tools()).tools]
    found = await client.call_tool("search_tools", {"query": "list tickets"})
    seen["found"] = [tool["name"] for tool in found.structured_content["tools"]]
    early = await client.call_tool("run_script", {"code": LIST})
    seen["early"] = early.content[0].text
    tools = ["demo.tickets_list", "demo.tickets_create", "demo.logs_services"]
    await client.call_tool("get_tool_details", {"tools": tools})
    lines = []

    async def progress(done, total, message):
        lines.append(message)

    done = await client.call_tool("run_script", {"code": LIST}, progress_callback=progress)
    seen["status"], seen["progress"] = done.structured_content["status"], lines
    asked = await client.call_tool("run_script", {"code": ASK})
    seen["approved"] = asked.structured_content["status"]
    read = await client.read_resource("resource:///tool_descriptions")
    seen["unselected"] = read.contents[0].text
    endless = client.call_tool("run_script", {"code": "await new Promise((r) => setTimeout(r, 25000))"})
    running = asyncio.create_task(endless)
    await asyncio.sleep(0)
    running.cancel()
    try:
        await running
        seen["cancelled"] = False
    except asyncio.CancelledError:
        seen["cancelled"] = True
    again = await client.call_tool("run_script", {"code": "return 1 + 1"})
    seen["after"] = again.structured_content["value"]


async def main():
    server = StdioServerParameters(command=sys.argv[1], args=sys.argv[2:])
    async with Client(stdio_client(server), elicitation_callback=approve) as client:
        await converse(client)
    print(json.dumps(seen))


asyncio.run(main())
