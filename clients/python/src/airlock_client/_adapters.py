"""airlock's tools as tools of frameworks. Each framework is imported only when it is used."""

from __future__ import annotations

import base64
import importlib
import json
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from ._errors import AirlockError

if TYPE_CHECKING:
    from ._client import Airlock, Content, HostTool


def _framework(module: str, package: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise AirlockError(f"`{module}` cannot be imported ({error}). Install it with `pip install {package}`") from None


def _caller(airlock: Airlock, tool: HostTool) -> Callable[..., Coroutine[Any, Any, Content]]:
    async def call(**args: Any) -> Content:
        return await airlock.call_tool(tool.name, args)

    return call


def pydantic_ai(airlock: Airlock) -> Any:
    framework = _framework("pydantic_ai", "pydantic-ai-slim")
    messages = _framework("pydantic_ai.messages", "pydantic-ai-slim")
    toolsets = _framework("pydantic_ai.toolsets", "pydantic-ai-slim")

    def adapted(tool: HostTool) -> Any:
        call = _caller(airlock, tool)

        async def run(**args: Any) -> Any:
            content = await call(**args)
            images = [messages.BinaryContent(base64.b64decode(it["data"]), media_type=it["mimeType"]) for it in content.images]
            return [content.text, *images] if images else content.text

        return framework.Tool.from_schema(run, tool.name, tool.description, dict(tool.input_schema))

    return toolsets.FunctionToolset([adapted(it) for it in airlock.tools])


def openai_agents(airlock: Airlock) -> list[Any]:
    agents = _framework("agents", "openai-agents")

    def adapted(tool: HostTool) -> Any:
        call = _caller(airlock, tool)

        async def run(_: Any, args: str) -> Any:
            content = await call(**json.loads(args or "{}"))
            images = [agents.ToolOutputImage(image_url=_data_url(it)) for it in content.images]
            return [agents.ToolOutputText(text=content.text), *images] if images else content.text

        return agents.FunctionTool(
            name=tool.name,
            description=tool.description,
            params_json_schema=dict(tool.input_schema),
            on_invoke_tool=run,
            # The strict mode does not know `input`, which can be any JSON.
            strict_json_schema=False,
        )

    return [adapted(it) for it in airlock.tools]


def langchain(airlock: Airlock) -> list[Any]:
    tools = _framework("langchain_core.tools", "langchain")

    def adapted(tool: HostTool) -> Any:
        call = _caller(airlock, tool)

        async def run(**args: Any) -> Any:
            content = await call(**args)
            images = [{"type": "image_url", "image_url": {"url": _data_url(it)}} for it in content.images]
            return [{"type": "text", "text": content.text}, *images] if images else content.text

        return tools.StructuredTool(
            name=tool.name, description=tool.description, args_schema=dict(tool.input_schema), coroutine=run
        )

    return [adapted(it) for it in airlock.tools]


def anthropic(airlock: Airlock) -> list[Any]:
    framework = _framework("anthropic", "anthropic")

    def adapted(tool: HostTool) -> Any:
        call = _caller(airlock, tool)

        async def run(**args: Any) -> Any:
            content = await call(**args)
            images = [
                {"type": "image", "source": {"type": "base64", "media_type": it["mimeType"], "data": it["data"]}}
                for it in content.images
            ]
            return [{"type": "text", "text": content.text}, *images]

        return framework.beta_async_tool(
            run, name=tool.name, description=tool.description, input_schema=dict(tool.input_schema)
        )

    return [adapted(it) for it in airlock.tools]


def _data_url(image: Any) -> str:
    return f"data:{image['mimeType']};base64,{image['data']}"
