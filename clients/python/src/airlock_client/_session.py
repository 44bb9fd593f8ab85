"""One MCP session with airlock: requests, progress, cancellation, and requests of airlock."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from ._errors import AirlockClosed, AirlockError
from ._version import VERSION

log = logging.getLogger("airlock_client")
PROTOCOL_VERSION = "2025-11-25"
Message = dict[str, Any]
OnProgress = Callable[[Mapping[str, Any]], Any]


class Transport(Protocol):
    async def send(self, message: Message) -> None: ...

    async def close(self) -> None: ...


class Session:
    def __init__(self, on_elicitation: Callable[[Mapping[str, Any]], Awaitable[Message]], on_lost: Callable[[], None]) -> None:
        self._on_elicitation = on_elicitation
        self._on_lost = on_lost
        self._ids = itertools.count(1)
        self._pending: dict[int, asyncio.Future[Any]] = {}
        self._progress: dict[int, OnProgress] = {}
        self._questions: dict[Any, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Future[Any]] = set()
        self._lost: AirlockClosed | None = None
        self.transport: Transport | None = None

    async def initialize(self, can_ask: bool) -> Message:
        capabilities: Message = {"elicitation": {"form": {}}} if can_ask else {}
        info = {"name": "airlock-client-python", "version": VERSION}
        params = {"protocolVersion": PROTOCOL_VERSION, "capabilities": capabilities, "clientInfo": info}
        greeting: Message = await self.request("initialize", params)
        await self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return greeting

    def check(self) -> None:
        """Fails if the connection is lost."""
        if self._lost is not None:
            raise AirlockClosed(str(self._lost))

    async def send(self, message: Message) -> None:
        self.check()
        assert self.transport is not None
        await self.transport.send(message)

    async def request(self, method: str, params: Message, on_progress: OnProgress | None = None) -> Any:
        """Sends a request and returns its result. If the task is cancelled, airlock cancels the request."""
        id = next(self._ids)
        if on_progress is not None:
            params = {**params, "_meta": {"progressToken": id}}
            self._progress[id] = on_progress
        future = self._pending[id] = asyncio.get_running_loop().create_future()
        try:
            await self.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
            return await future
        except asyncio.CancelledError:
            # `initialize` must not be cancelled, says the specification.
            if self._lost is None and method != "initialize":
                cancelled = {"requestId": id, "reason": "the caller's task was cancelled"}
                self.spawn(self.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled}))
            raise
        finally:
            self._pending.pop(id, None)
            self._progress.pop(id, None)
            if future.done() and not future.cancelled():
                future.exception()  # It counts as seen, also if sending has failed.

    async def answered(self) -> bool:
        """Waits for the answers to all open questions. Returns whether there was one."""
        questions = list(self._questions.values())
        if questions:
            await asyncio.wait(questions)
        return bool(questions)

    def receive(self, message: Any) -> None:
        """Takes a message of airlock."""
        if not isinstance(message, dict):
            log.error("airlock sent something that is not a JSON-RPC message")
        elif "method" not in message:
            self._settle(message)
        elif message["method"] == "notifications/progress":
            params = message.get("params", {})
            if on_progress := self._progress.get(params.get("progressToken")):
                self._tell(on_progress, params)
        elif message["method"] == "notifications/cancelled":
            if question := self._questions.get(message.get("params", {}).get("requestId")):
                question.cancel()
        elif "id" in message:
            task = self.spawn(self._answer(message))
            self._questions[message["id"]] = task
            task.add_done_callback(lambda _: self._questions.pop(message["id"], None))

    def fail(self, id: int, error: AirlockError) -> None:
        """Ends one request."""
        future = self._pending.get(id)
        if future is not None and not future.done():
            future.set_exception(error)

    def lose(self, error: AirlockClosed) -> None:
        """Ends all requests and refuses further ones."""
        if self._lost is not None:
            return
        self._lost = error
        for id in list(self._pending):
            self.fail(id, AirlockClosed(str(error)))
        for question in self._questions.values():
            question.cancel()
        self._on_lost()

    async def close(self) -> None:
        # A cancellation that was just requested must still reach airlock.
        sending = [it for it in self._tasks if it not in self._questions.values()]
        if sending:
            await asyncio.wait(sending, timeout=1)
        self.lose(AirlockClosed("the client was closed"))
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def spawn(self, work: Awaitable[Any]) -> asyncio.Task[Any]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        assert isinstance(task, asyncio.Task)
        return task

    def _ended(self, task: asyncio.Future[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) and not isinstance(error, AirlockError):
            log.error("%s: %s", type(error).__name__, error)

    def _settle(self, message: Message) -> None:
        future = self._pending.get(message.get("id", 0))
        if future is None or future.done():
            return
        if error := message.get("error"):
            future.set_exception(AirlockError(str(error.get("message")), error.get("code")))
        else:
            future.set_result(message.get("result"))

    def _tell(self, on_progress: OnProgress, params: Mapping[str, Any]) -> None:
        try:
            told = on_progress(params)
            if asyncio.iscoroutine(told):
                self.spawn(told)
        except Exception:
            log.exception("on_progress failed")

    async def _answer(self, message: Message) -> None:
        reply: Message = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] == "ping":
            reply["result"] = {}
        elif message["method"] == "elicitation/create":
            reply["result"] = await self._on_elicitation(message.get("params") or {})
        else:
            reply["error"] = {"code": -32601, "message": f"unknown method: {message['method']}"}
        await self.send(reply)
