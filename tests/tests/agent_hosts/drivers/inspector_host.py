# The command line of the Inspector with a loop of our own. Each call is a client of its own.
#
# Usage: inspector_host.py MODEL INSPECTOR… -- TARGET…
import asyncio
import json
import subprocess
import sys

url, *rest = sys.argv[1:]
inspector, target = rest[: rest.index("--")], rest[rest.index("--") :]


def inspect(*arguments):
    command = [*inspector, "--cli", "--format", "json", "--quiet", *arguments, *target]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    return json.loads(done.stdout)


async def call(tool, args):
    answer = inspect("--method", "tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(args))
    return answer["result"]["content"]


async def main():
    from model_loop import converse

    tools = inspect("--method", "tools/list")["result"]["tools"]
    await converse(url, [(it["name"], it["description"]) for it in tools], call)


asyncio.run(main())
