# A host on the official Python SDK: search, describe, run, an approval, progress and
# a cancellation. Prints one JSON object with its observations.
#
# Usage: host.py legacy|auto URL, or host.py legacy|auto COMMAND ARGUMENT…
import asyncio
import json
import sys

from mcp import Client, StdioServerParameters
from mcp.client import session as sessions, stdio
from mcp.client.stdio import stdio_client
from mcp.types import ElicitResult

# The SDK's own time limits are too short for slow machines.
sessions.DISCOVER_TIMEOUT_SECONDS = 600
stdio.PROCESS_TERMINATION_TIMEOUT = 600
LIST = "return (await demo.tickets_list({})).tickets.length > 0"
ASK = "return typeof await demo.tickets_create({ title: 'from a host' })"
WAIT = "return await test.wait({})"
TOOLS = ["demo.tickets_list", "demo.tickets_create", "test.wait"]
SESSION = "dev.airlock/session"

seen = {"progress": []}


async def approve(context, params):
    seen["asked"] = params.message
    return ElicitResult(action="accept", content={"decision": "allow"})


async def converse(client):
    session = {}

    def run(code, **options):
        return client.call_tool("run_script", {"code": code, **session}, **options)

    seen["listed"] = [tool.name for tool in (await client.list_tools()).tools]
    found = await client.call_tool("search_tools", {"query": "list tickets"})
    seen["found"] = [tool["name"] for tool in found.structured_content["tools"]]
    seen["early"] = (await run(LIST)).content[0].text
    details = await client.call_tool("get_tool_details", {"tools": TOOLS})
    if SESSION in (details.meta or {}):
        session["session"] = details.meta[SESSION]

    seen["value"] = (await run(LIST)).structured_content["value"]
    seen["approved"] = (await run(ASK)).structured_content["status"]
    read = await client.read_resource("resource:///tool_descriptions")
    seen["unselected"] = read.contents[0].text
    waits = asyncio.Event()

    async def progress(done, total, message):
        seen["progress"].append(message)
        if "test.wait: allow" in message:
            waits.set()

    running = asyncio.create_task(run(WAIT, progress_callback=progress))
    await waits.wait()
    running.cancel()
    seen["cancelled"] = isinstance((await asyncio.gather(running, return_exceptions=True))[0], asyncio.CancelledError)
    seen["after"] = (await run("return 1 + 1")).structured_content["value"]


async def main():
    mode, target, *arguments = sys.argv[1:]
    server = target if target.startswith("http://") else stdio_client(StdioServerParameters(command=target, args=arguments))
    async with Client(server, mode=mode, elicitation_callback=approve) as client:
        seen["version"] = client.protocol_version
        await converse(client)
    print(json.dumps(seen))


asyncio.run(main())
