"""The client: starts airlock, runs scripts, and calls airlock's tools."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, Union

from . import _adapters, _approval
from ._errors import AirlockError
from ._report import Report
from ._session import Message, Session
from ._stdio import StdioTransport, find_program
from ._tool_server import ToolServer
from ._url import UrlTransport

TOKEN_VARIABLE = "AIRLOCK_CLIENT_TOKEN"
REPORT_KEY = "dev.airlock/report"
PAGE_KEY = "dev.airlock/page"
PAGE_BYTES = 1_000_000


@dataclass(frozen=True)
class Progress:
    """A report about a run in progress. `progress` grows with each report."""

    progress: float
    message: str


OnProgress = Callable[[Progress], Union[None, Awaitable[None]]]


@dataclass(frozen=True)
class HostTool:
    """One of the tools that airlock offers to a model, such as `run_script`."""

    name: str
    description: str
    input_schema: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class Content:
    """The result of a tool, as a model gets it."""

    blocks: tuple[Mapping[str, Any], ...]
    is_error: bool
    raw: Mapping[str, Any] = field(repr=False)

    @property
    def text(self) -> str:
        return "\n".join(it["text"] for it in self.blocks if it.get("type") == "text")

    @property
    def images(self) -> list[Mapping[str, Any]]:
        return [it for it in self.blocks if it.get("type") == "image"]


class Airlock:
    """Starts `airlock serve`, or connects to `url`. Use it with `async with`; leaving ends everything.

    config       path of an airlock.toml
    tools        functions that scripts can call as `host.NAME({…})`; rules apply to them as to all tools
    on_approval  decides calls that need an approval: returns True, False or an Answer. Without it,
                 airlock asks the configured approver, or refuses
    args         further arguments of `airlock serve`
    program      path of airlock; default: beside this Python, else on PATH
    env, cwd     environment and working folder of airlock; default: those of this process
    name         the name of `tools` in scripts and rules
    url, token   address of a running `airlock serve --http`, and its bearer token
    """

    def __init__(
        self,
        *,
        config: str | os.PathLike[str] | None = None,
        tools: Sequence[Callable[..., Any]] = (),
        on_approval: _approval.OnApproval | None = None,
        args: Sequence[str] = (),
        program: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        name: str = "host",
        url: str | None = None,
        token: str | None = None,
    ) -> None:
        if url is not None and (config or tools or args or program or env or cwd):
            raise AirlockError(
                "`url` names an airlock that runs already, so config, tools, args, program, env and cwd have no effect. "
                "Leave them out, or leave out `url`"
            )
        self._config, self._args, self._program = config, list(args), program
        self._env, self._cwd, self._name = env, cwd, name
        self._url, self._token = url, token
        self._on_approval = on_approval
        self._tool_server = ToolServer.of(tools)
        self._session: Session | None = None
        self._stack = AsyncExitStack()
        self.tools: tuple[HostTool, ...] = ()
        """airlock's tools for models."""
        self.instructions = ""
        """What airlock tells a model about its tools."""

    async def __aenter__(self) -> Airlock:
        if self._session is not None:
            raise AirlockError("this client was used already. Create another `Airlock`")
        try:
            await self._start()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def run(self, code: str, *, input: Any = None, on_progress: OnProgress | None = None) -> Report:
        """Runs a script and returns its report, also if the script failed. Cancelling the task ends the run."""
        args: Message = {"code": code}
        if input is not None:
            args["input"] = input
        result = await self._run(args, on_progress)
        # The script is the host's own, so no model has to read the tools that it calls.
        read: set[str] = set()
        while (missing := _undisclosed(result)) and missing not in read:
            read.add(missing)
            await self._call("get_tool_details", {"tools": missing.split(",")})
            result = await self._run(args, on_progress)
        raw = _raw_report(result)
        # airlock suspends a run while a person takes long to answer. The answer still counts.
        is_open = self._on_approval is not None
        while is_open and raw["status"] == "paused":
            is_open = await self._open_session.answered()
            raw = _raw_report(await self._call("resume_run", {"run": raw["run"]}, on_progress))
        value = raw.get("value")
        if at := raw.get("value_at"):
            text = await self._read(at["uri"])
            value = text if at["format"] == "text" else json.loads(text)
        return Report.parse(raw, value)

    async def call_tool(self, name: str, args: Mapping[str, Any], *, on_progress: OnProgress | None = None) -> Content:
        """Calls one of airlock's tools, as a model does."""
        result = await self._call(name, dict(args), on_progress)
        return Content(tuple(result.get("content") or ()), bool(result.get("isError")), result)

    def pydantic_ai(self) -> Any:
        """Returns a toolset of pydantic-ai."""
        return _adapters.pydantic_ai(self)

    def openai_agents(self) -> list[Any]:
        """Returns tools of the OpenAI Agents SDK."""
        return _adapters.openai_agents(self)

    def langchain(self) -> list[Any]:
        """Returns tools of LangChain."""
        return _adapters.langchain(self)

    def anthropic(self) -> list[Any]:
        """Returns tools for the tool runner of the Anthropic SDK."""
        return _adapters.anthropic(self)

    async def _start(self) -> None:
        session = self._session = Session(self._on_elicitation, self._tool_server.cancel_calls)
        if self._url is None:
            command, env = await self._command()
            cwd = None if self._cwd is None else os.fspath(self._cwd)
            session.transport = await StdioTransport.start(command, env, cwd, session)
        else:
            session.transport = UrlTransport(self._url, self._token, session)
        self._stack.push_async_callback(session.transport.close)
        self._stack.push_async_callback(session.close)
        greeting = await session.initialize(can_ask=self._on_approval is not None)
        self.instructions = greeting.get("instructions", "")
        await self._list()

    async def _command(self) -> tuple[list[str], dict[str, str]]:
        """Returns the command of airlock. The token of the functions is in its environment only."""
        program = find_program(None if self._program is None else os.fspath(self._program))
        command = [program, "serve", "--quiet"]
        env = dict(os.environ if self._env is None else self._env)
        if self._config is not None:
            command += ["--config", os.path.abspath(self._config)]
        if self._tool_server.tools:
            self._stack.push_async_callback(self._tool_server.close)
            headers = {"Authorization": f"Bearer ${{env:{TOKEN_VARIABLE}}}"}
            entry = {"type": "http", "url": await self._tool_server.start(), "headers": headers}
            folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="airlock-client-"))
            file = os.path.join(folder, "servers.json")
            with open(file, "w", encoding="utf-8") as servers:
                json.dump({"mcpServers": {self._name: entry}}, servers)
            command += ["--mcp-config", file]
            env[TOKEN_VARIABLE] = self._tool_server.token
        return command + self._args, env

    async def _list(self) -> None:
        tools: list[HostTool] = []
        cursor: Message = {}
        while True:
            page = await self._request("tools/list", cursor)
            tools += [HostTool(it["name"], it.get("description", ""), it["inputSchema"]) for it in page["tools"]]
            if not page.get("nextCursor"):
                break
            cursor = {"cursor": page["nextCursor"]}
        self.tools = tuple(tools)

    async def _on_elicitation(self, params: Mapping[str, Any]) -> Message:
        return await _approval.answer(self._on_approval, params)

    async def _request(self, method: str, params: Message, on_progress: OnProgress | None = None) -> Any:
        told = None
        if on_progress is not None:
            callback = on_progress

            def told(params: Mapping[str, Any]) -> Any:
                return callback(Progress(params.get("progress", 0), str(params.get("message", ""))))

        return await self._open_session.request(method, params, told)

    @property
    def _open_session(self) -> Session:
        if self._session is None:
            raise AirlockError("airlock is not started. Use `async with Airlock(…) as airlock`")
        return self._session

    async def _call(self, name: str, args: Message, on_progress: OnProgress | None = None) -> Message:
        result: Message = await self._request("tools/call", {"name": name, "arguments": args}, on_progress)
        return result

    async def _run(self, args: Message, on_progress: OnProgress | None) -> Message:
        return await self._call("run_script", args, on_progress)

    async def _read(self, uri: str) -> str:
        """Reads a long text to its end."""
        parts, start = [], 0
        while True:
            read = await self._request("resources/read", {"uri": f"{uri}?from={start}&length={PAGE_BYTES}"})
            page = read["contents"][0]
            parts.append(page["text"])
            start = page["_meta"][PAGE_KEY].get("next", 0)
            if not start:
                return "".join(parts)


def _raw_report(result: Mapping[str, Any]) -> Mapping[str, Any]:
    raw = (result.get("_meta") or {}).get(REPORT_KEY) or result.get("structuredContent")
    if isinstance(raw, dict) and "status" in raw:
        return raw
    raise AirlockError(Content(tuple(result.get("content") or ()), True, result).text or "airlock sent no report")


def _undisclosed(result: Mapping[str, Any]) -> str | None:
    """Returns the tools that must be read before the script can start. No call has been made then."""
    error = (result.get("structuredContent") or {}).get("error")
    if not isinstance(error, dict) or error.get("code") != "TOOL_DESCRIPTION_REQUIRED":
        return None
    return str(error.get("resource_uri", "")).partition("?tools=")[2] or None
