"""An MCP server on a loopback socket, whose tools are functions of the host."""

from __future__ import annotations

import asyncio
import hmac
import inspect
import json
import logging
import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from . import _functions, _http, _schema
from ._errors import AirlockError
from ._version import VERSION

log = logging.getLogger("airlock_client")
PROTOCOL_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26")
_REASONS = {200: "OK", 202: "Accepted", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 405: "Method Not Allowed"}


@dataclass(frozen=True)
class FunctionTool:
    function: Callable[..., Any]
    definition: dict[str, Any]
    hints: dict[str, Any]

    @classmethod
    def of(cls, function: Callable[..., Any]) -> FunctionTool:
        name = getattr(function, "__name__", "")
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise AirlockError(f"{function!r} has no name that a script can use. Define it with `def`")
        schema, hints = _schema.parameters(function)
        definition: dict[str, Any] = {"name": name, "inputSchema": schema}
        if text := inspect.getdoc(function):
            definition["description"] = text
        # MCP results are objects. airlock gives scripts the value inside this wrapper.
        result = {"type": "object", "properties": {"result": _schema.returned(function)}, "required": ["result"]}
        definition["outputSchema"] = result
        return cls(function, definition, hints)

    async def call(self, args: dict[str, Any]) -> dict[str, Any]:
        """Calls the function, and returns the result of `tools/call`."""
        try:
            for name in args:
                if name not in self.hints:
                    raise _schema.InvalidArguments(f"unknown argument `{name}`; expected {', '.join(self.hints) or 'none'}")
            for name in self.definition["inputSchema"].get("required", ()):
                if name not in args:
                    raise _schema.InvalidArguments(f"missing argument `{name}`")
            values = {name: _schema.convert(value, self.hints[name], f"`{name}`") for name, value in args.items()}
            result = _schema.to_json(await _functions.call(self.function, **values))
            json.dumps(result, allow_nan=False)
        except Exception as error:
            return {"content": [{"type": "text", "text": f"{type(error).__name__}: {error}"}], "isError": True}
        return {"content": [], "structuredContent": {"result": result}}


@dataclass
class ToolServer:
    """Answers only requests with its own token."""

    tools: dict[str, FunctionTool]
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    _server: asyncio.Server | None = None
    _connections: set[asyncio.Task[None]] = field(default_factory=set)
    _calls: dict[Any, asyncio.Task[dict[str, Any]]] = field(default_factory=dict)

    @classmethod
    def of(cls, functions: Sequence[Callable[..., Any]]) -> ToolServer:
        tools: dict[str, FunctionTool] = {}
        for function in functions:
            tool = FunctionTool.of(function)
            if tool.definition["name"] in tools:
                raise AirlockError(f"two tools have the name `{tool.definition['name']}`. Rename one of the functions")
            tools[tool.definition["name"]] = tool
        return cls(tools)

    async def start(self) -> str:
        """Opens the socket, and returns its address."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/mcp"

    def cancel_calls(self) -> None:
        for call in self._calls.values():
            call.cancel()

    async def close(self) -> None:
        if self._server is None:
            return
        self._server.close()
        self.cancel_calls()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            while await self._exchange(reader, writer):
                pass
        except (_http.HttpError, OSError, ValueError, EOFError) as error:
            log.debug("a connection to the server of functions ended: %s", error)
        except asyncio.CancelledError:
            pass  # Only `close` cancels a connection.
        finally:
            self._connections.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answers one request. Returns whether another may follow."""
        head = await _http.head(reader)
        if head is None:
            return False
        first, headers = head
        method, path, *_ = [*first.split(" "), "", ""]
        given = headers.get("authorization", "")
        # Checked before the body is read.
        if not hmac.compare_digest(given.encode("latin-1"), f"Bearer {self.token}".encode()):
            await _respond(writer, 401, {"error": "missing or wrong bearer token"})
            return False
        sent = await _http.body(reader, headers)
        if path != "/mcp":
            await _respond(writer, 404, {"error": "not found"})
        elif method != "POST":
            await _respond(writer, 405, {"error": "only POST is supported"})
        else:
            await _respond(writer, *await self._answer(sent))
        return headers.get("connection", "").lower() != "close"

    async def _answer(self, sent: bytes) -> tuple[int, dict[str, Any] | None]:
        try:
            message = json.loads(sent)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            return 400, {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "not a JSON-RPC message"}}
        method, params = message.get("method"), message.get("params") or {}
        if "id" not in message or method is None:
            if method == "notifications/cancelled" and (call := self._calls.get(params.get("requestId"))):
                call.cancel()
            return 202, None
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if method == "initialize":
            wanted = params.get("protocolVersion")
            reply["result"] = {
                "protocolVersion": wanted if wanted in PROTOCOL_VERSIONS else PROTOCOL_VERSIONS[0],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "airlock-client", "version": VERSION},
            }
        elif method == "ping":
            reply["result"] = {}
        elif method == "tools/list":
            reply["result"] = {"tools": [it.definition for it in self.tools.values()]}
        elif method == "tools/call" and (tool := self.tools.get(params.get("name", ""))):
            reply["result"] = await self._call(message["id"], tool, params.get("arguments") or {})
        elif method == "tools/call":
            reply["error"] = {"code": -32602, "message": f"unknown tool: {params.get('name')}"}
        else:
            reply["error"] = {"code": -32601, "message": f"unknown method: {method}"}
        return 200, reply

    async def _call(self, id: Any, tool: FunctionTool, args: dict[str, Any]) -> dict[str, Any]:
        task = asyncio.ensure_future(tool.call(args))
        self._calls[id] = task
        try:
            await asyncio.wait([task])
        finally:
            self._calls.pop(id, None)
            task.cancel()
        if task.cancelled():
            return {"content": [{"type": "text", "text": "the call was cancelled"}], "isError": True}
        return task.result()


async def _respond(writer: asyncio.StreamWriter, status: int, message: dict[str, Any] | None) -> None:
    sent = b"" if message is None else json.dumps(message, ensure_ascii=False).encode(errors="replace")
    head = f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: application/json\r\nContent-Length: {len(sent)}\r\n\r\n"
    writer.write(head.encode() + sent)
    await writer.drain()
