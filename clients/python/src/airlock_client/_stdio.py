"""Starts `airlock serve` and speaks with it over stdio."""

from __future__ import annotations

import asyncio
import collections
import json
import logging
import os
import shutil
import sysconfig
from collections.abc import Mapping, Sequence

from ._errors import AirlockClosed, AirlockError
from ._session import Message, Session

log = logging.getLogger("airlock_client")
STDERR_LINES_MAX = 20
LINE_CHARS_MAX = 2_000
# airlock ends within two seconds of the end of its stdin.
END_SECONDS = 5.0


def find_program(program: str | None) -> str:
    """Returns the path of airlock: as given, else beside this Python, else on PATH."""
    if program is None:
        beside = os.path.join(sysconfig.get_path("scripts"), "airlock")
        program = beside if os.access(beside, os.X_OK) else "airlock"
    found = shutil.which(program)
    if found is None:
        raise AirlockError(f"no program `{program}`. Install it with `pip install airlock-mcp`, or pass `program=` with its path")
    return found


class StdioTransport:
    def __init__(self, process: asyncio.subprocess.Process, session: Session) -> None:
        self._process = process
        self._session = session
        self._writing = asyncio.Lock()
        self._stderr: collections.deque[str] = collections.deque(maxlen=STDERR_LINES_MAX)
        self._stderr_task = asyncio.ensure_future(self._read_stderr())
        self._stdout_task = asyncio.ensure_future(self._read_stdout())

    @classmethod
    async def start(cls, command: Sequence[str], env: Mapping[str, str], cwd: str | None, session: Session) -> StdioTransport:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *command, stdin=pipe, stdout=pipe, stderr=pipe, env=dict(env), cwd=cwd,
            # Ctrl-C reaches only this process, which then ends airlock in order.
            start_new_session=True,
        )  # fmt: skip
        return cls(process, session)

    async def send(self, message: Message) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        async with self._writing:
            try:
                stdin.write(json.dumps(message).encode() + b"\n")
                await stdin.drain()
            except (ConnectionError, RuntimeError):
                # The reader of stdout finds out why, and ends all requests with one error.
                await asyncio.shield(self._stdout_task)
                self._session.check()

    async def close(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        for end in (None, self._process.terminate, self._process.kill):
            if end is not None and self._process.returncode is None:
                end()
            try:
                await asyncio.wait_for(self._process.wait(), END_SECONDS)
                break
            except asyncio.TimeoutError:
                continue
        self._stdout_task.cancel()
        self._stderr_task.cancel()
        await asyncio.gather(self._stdout_task, self._stderr_task, return_exceptions=True)

    async def _read_stdout(self) -> None:
        assert self._process.stdout is not None
        parts: list[bytes] = []
        while part := await self._process.stdout.read(1 << 18):
            *lines, rest = part.split(b"\n")
            for line in lines:
                self._receive(b"".join([*parts, line]))
                parts = []
            parts.append(rest)
        self._session.lose(AirlockClosed(await self._why()))

    def _receive(self, line: bytes) -> None:
        try:
            self._session.receive(json.loads(line))
        except ValueError:
            log.error("airlock printed a line that is not JSON: %r", line[:200])

    async def _why(self) -> str:
        """Says how the process ended."""
        try:
            code = await asyncio.wait_for(self._process.wait(), END_SECONDS)
            how = f"exit code {code}" if code >= 0 else f"signal {-code}"
            await asyncio.wait([self._stderr_task], timeout=1)
        except asyncio.TimeoutError:
            how = "it closed its output"
        text = "\n".join(self._stderr)
        return f"airlock has ended ({how})" + (f". It printed:\n{text}" if text else "")

    async def _read_stderr(self) -> None:
        assert self._process.stderr is not None
        rest = b""
        while part := await self._process.stderr.read(65_536):
            *lines, rest = (rest + part).split(b"\n")
            for line in lines:
                self._note(line)
            rest = rest[:LINE_CHARS_MAX]
        if rest:
            self._note(rest)

    def _note(self, line: bytes) -> None:
        text = line.decode(errors="replace")[:LINE_CHARS_MAX]
        self._stderr.append(text)
        log.info("airlock: %s", text)
