"""Speaks with an airlock that serves over streamable HTTP."""

from __future__ import annotations

import asyncio
import json
import ssl
from urllib.parse import urlsplit

from . import _http
from ._errors import AirlockClosed, AirlockError
from ._session import PROTOCOL_VERSION, Message, Session


class UrlTransport:
    """Each request has a connection of its own. Requests of airlock come in the stream of a response."""

    def __init__(self, url: str, token: str | None, session: Session) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise AirlockError(f"invalid URL `{url}`; expected for example http://127.0.0.1:8080/mcp")
        self._is_tls = parts.scheme == "https"
        self._host, self._port = parts.hostname, parts.port or (443 if self._is_tls else 80)
        self._netloc = parts.netloc.rpartition("@")[2]
        self._path = (parts.path or "/mcp") + (f"?{parts.query}" if parts.query else "")
        self._url, self._token, self._session = url, token, session
        self._session_id: str | None = None

    async def send(self, message: Message) -> None:
        if "id" in message and "method" in message:
            self._session.spawn(self._request(message))
        else:
            await self._exchange(message)

    async def close(self) -> None:
        if self._session_id is None:
            return
        try:
            await asyncio.wait_for(self._exchange(None), 2)
        except (AirlockError, asyncio.TimeoutError):
            pass  # airlock forgets the session later.

    async def _request(self, message: Message) -> None:
        try:
            await self._exchange(message)
            error: AirlockError = AirlockClosed(f"the response of {self._url} ended without a result")
        except AirlockError as why:
            error = why
        self._session.fail(message["id"], error)

    async def _exchange(self, message: Message | None) -> None:
        try:
            await self._send(message)
        except (OSError, EOFError, ValueError, _http.HttpError) as error:
            raise AirlockClosed(f"no connection to {self._url}: {error or type(error).__name__}") from None

    async def _send(self, message: Message | None) -> None:
        """Sends a message, or the end of the session, and takes what comes back."""
        tls = ssl.create_default_context() if self._is_tls else None
        reader, writer = await asyncio.open_connection(self._host, self._port, ssl=tls)
        try:
            writer.write(self._bytes(message))
            await writer.drain()
            answered = await _http.head(reader)
            if answered is None:
                raise _http.HttpError("the connection ended before a response")
            status, headers = int(answered[0].split(" ")[1]), answered[1]
            self._session_id = headers.get("mcp-session-id", self._session_id)
            if status >= 400:
                text = (await _http.body(reader, headers, until_end=True)).decode(errors="replace")
                raise AirlockError(f"{self._url} answered with HTTP status {status}: {text[:500]}")
            if headers.get("content-type", "").startswith("text/event-stream"):
                await self._events(reader, headers)
            elif sent := await _http.body(reader, headers, until_end=message is not None and status == 200):
                self._session.receive(json.loads(sent))
        finally:
            writer.close()

    def _bytes(self, message: Message | None) -> bytes:
        body = b"" if message is None else json.dumps(message).encode()
        lines = [
            f"{'DELETE' if message is None else 'POST'} {self._path} HTTP/1.1",
            f"Host: {self._netloc}",
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            f"Content-Length: {len(body)}",
            f"MCP-Protocol-Version: {PROTOCOL_VERSION}",
            "Connection: close",
        ]
        if self._session_id is not None:
            lines.append(f"Mcp-Session-Id: {self._session_id}")
        if self._token is not None:
            lines.append(f"Authorization: Bearer {self._token}")
        if any("\n" in line or "\r" in line for line in lines):
            raise AirlockError("a header must not contain a line break; check `url` and `token`")
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + body

    async def _events(self, reader: asyncio.StreamReader, headers: dict[str, str]) -> None:
        parts: list[bytes] = []
        data: list[bytes] = []
        async for part in _http.chunks(reader, headers, until_end=True):
            *lines, rest = part.split(b"\n")
            for line in lines:
                line = b"".join([*parts, line]).rstrip(b"\r")
                parts = []
                if line.startswith(b"data:"):
                    data.append(line[5:].removeprefix(b" "))
                elif not line and data:
                    text = b"\n".join(data)
                    data = []
                    if text.strip():
                        self._session.receive(json.loads(text))
            parts.append(rest)
