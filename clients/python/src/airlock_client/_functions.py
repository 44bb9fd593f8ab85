"""Calls functions of the host, sync or async, without blocking the event loop."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable
from typing import Any


async def call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls a function and returns its result. A sync function runs in a thread of its own. Cancelling
    does not interrupt it, but the thread keeps neither the loop nor the process from ending."""
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):
        return await function(*args, **kwargs)
    result = await _in_thread(lambda: function(*args, **kwargs))
    return await result if inspect.isawaitable(result) else result


async def _in_thread(function: Callable[[], Any]) -> Any:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def settle(result: Any, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(result)
        elif isinstance(error, StopIteration):
            # A future cannot hold this exception.
            future.set_exception(RuntimeError("the function raised StopIteration"))
        else:
            future.set_exception(error)

    def run() -> None:
        result, error = None, None
        try:
            result = context.run(function)
        except BaseException as raised:
            error = raised
        try:
            loop.call_soon_threadsafe(settle, result, error)
        except RuntimeError:
            pass  # The loop has ended, so nothing waits for the result.

    threading.Thread(target=run, name="airlock-function", daemon=True).start()
    return await future
