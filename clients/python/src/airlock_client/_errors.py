"""The errors of this package."""

from __future__ import annotations


class AirlockError(Exception):
    """airlock refused a request, or cannot be used as asked. `code` is the code of JSON-RPC, if airlock sent one."""

    def __init__(self, message: str, code: int | None = None) -> None:
        super().__init__(message)
        self.code = code


class AirlockClosed(AirlockError):
    """airlock has ended, or the connection to it is lost. Calls in progress may have happened."""
