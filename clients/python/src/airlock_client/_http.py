"""What the server of functions and the client over HTTP need of HTTP/1.1."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

BODY_BYTES_MAX = 64 * 1024 * 1024
HEAD_LINES_MAX = 200


class HttpError(Exception):
    """The other side does not speak HTTP as expected."""


async def head(reader: asyncio.StreamReader) -> tuple[str, dict[str, str]] | None:
    """Reads the first line and the headers, in lower case. Returns None at the end of the stream."""
    first = await _line(reader)
    if not first:
        return None
    headers: dict[str, str] = {}
    for _ in range(HEAD_LINES_MAX):
        line = await _line(reader)
        if not line:
            return first, headers
        name, colon, value = line.partition(":")
        if not colon:
            raise HttpError("a header has no colon")
        headers[name.strip().lower()] = value.strip()
    raise HttpError(f"the head has more than {HEAD_LINES_MAX} headers")


async def _line(reader: asyncio.StreamReader) -> str:
    try:
        return (await reader.readline()).decode("latin-1").rstrip("\r\n")
    except ValueError:
        raise HttpError("a line of the head is too long") from None


async def chunks(reader: asyncio.StreamReader, headers: dict[str, str], until_end: bool) -> AsyncIterator[bytes]:
    """Yields the body. `until_end`: a body without a length lasts until the end of the stream."""
    if "chunked" in headers.get("transfer-encoding", "").lower():
        while True:
            size = int((await _line(reader)).split(";")[0] or "0", 16)
            if size == 0:
                while await _line(reader):
                    pass
                return
            yield await reader.readexactly(size)
            await reader.readexactly(2)
    length = headers.get("content-length")
    if length is None and not until_end:
        return
    left = int(length) if length is not None else None
    while left is None or left > 0:
        part = await reader.read(65_536 if left is None else min(left, 65_536))
        if not part:
            if left:
                raise HttpError("the connection ended within the body")
            return
        left = None if left is None else left - len(part)
        yield part


async def body(reader: asyncio.StreamReader, headers: dict[str, str], until_end: bool = False) -> bytes:
    parts, length = [], 0
    async for part in chunks(reader, headers, until_end):
        length += len(part)
        if length > BODY_BYTES_MAX:
            raise HttpError(f"the body is longer than {BODY_BYTES_MAX} bytes")
        parts.append(part)
    return b"".join(parts)
