"""Starts `airlock serve` or connects to one, and speaks MCP with it."""

from ._approval import Answer, Question
from ._client import Airlock, Content, HostTool, Progress
from ._errors import AirlockClosed, AirlockError
from ._report import Call, ConsoleLine, Report, ScriptError, Usage
from ._schema import UnsupportedHint

__all__ = [
    "Airlock",
    "AirlockClosed",
    "AirlockError",
    "Answer",
    "Call",
    "ConsoleLine",
    "Content",
    "HostTool",
    "Progress",
    "Question",
    "Report",
    "ScriptError",
    "UnsupportedHint",
    "Usage",
]
