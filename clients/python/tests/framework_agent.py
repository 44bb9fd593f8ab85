# An agent of a framework with the tools of the client, for a scripted model.
#
# Usage: framework_agent.py FRAMEWORK MODEL, with the path of airlock in AIRLOCK_BIN
import asyncio
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from airlock_client import Airlock

framework, url = sys.argv[1:]


def price(item: str) -> float:
    """Returns the price of an item."""
    return {"apple": 0.5, "pear": 0.75}[item]


async def pydantic_ai(airlock):
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model = OpenAIChatModel("scripted", provider=OpenAIProvider(base_url=f"{url}/v1", api_key="none"))
    await Agent(model, toolsets=[airlock.pydantic_ai()]).run("begin")


async def openai_agents(airlock):
    from agents import Agent, Runner, set_tracing_disabled
    from agents.models.openai_responses import OpenAIResponsesModel
    from openai import AsyncOpenAI

    set_tracing_disabled(True)
    model = OpenAIResponsesModel("scripted", AsyncOpenAI(base_url=f"{url}/v1", api_key="none"))
    await Runner.run(Agent("agent", model=model, tools=airlock.openai_agents()), "begin")


async def langchain(airlock):
    from langchain.agents import create_agent
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model="scripted", base_url=f"{url}/v1", api_key="none")
    await create_agent(model, airlock.langchain()).ainvoke({"messages": [("user", "begin")]})


async def anthropic(airlock):
    from anthropic import AsyncAnthropic

    client = AsyncAnthropic(base_url=url, api_key="none")
    messages = [{"role": "user", "content": "begin"}]
    # The scripted model keeps no conversation, so each request has all messages.
    runner = client.beta.messages.tool_runner(
        model="scripted", max_tokens=1_000, messages=messages, tools=airlock.anthropic(), thread=False
    )
    await runner.until_done()


async def main():
    program = os.environ["AIRLOCK_BIN"]
    args = ["--demo", "--allow", "demo.*_list", "--ask", "host.*", "--start-wait", "600s"]
    async with Airlock(program=program, args=args, tools=[price], on_approval=lambda _: True) as airlock:
        await globals()[framework](airlock)


asyncio.run(main())
