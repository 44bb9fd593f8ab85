# A host on the official Python SDK that resumes runs. Prints one JSON object with its
# observations.
#
# Usage: resuming.py legacy|auto NAME URL begin, or resuming.py legacy|auto NAME URL RUN
import asyncio
import json
import sys

from mcp import Client
from mcp.client import session as sessions
from mcp.types import Implementation

# The SDK's own time limit is too short for slow machines.
sessions.DISCOVER_TIMEOUT_SECONDS = 600
WRONG = "const all = await w.read({title: 'r'}); await w.create({title: 'a'}); return all.missing.length"
RIGHT = WRONG.replace(".missing", "")
WAITS = "return await w.ask({title: 'b'})"


async def main():
    mode, name, url, step = sys.argv[1:]
    seen = {}
    async with Client(url, mode=mode, client_info=Implementation(name=name, version="1")) as client:
        if step == "begin":
            failed = await client.call_tool("run_script", {"code": WRONG})
            seen["failed"] = failed.content[0].text
            args = {"code": RIGHT, "resume": failed.structured_content["run"]}
            seen["corrected"] = (await client.call_tool("run_script", args)).structured_content
            seen["paused"] = (await client.call_tool("run_script", {"code": WAITS})).structured_content
        else:
            resumed = await client.call_tool("resume_run", {"run": step})
            seen["resumed"] = {"text": resumed.content[0].text, "report": resumed.structured_content}
    print(json.dumps(seen))


asyncio.run(main())
