"""Questions about calls, and their answers."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Union

from . import _functions

log = logging.getLogger("airlock_client")


@dataclass(frozen=True)
class Question:
    """Whether a call is allowed. `message` has all facts that airlock's own page shows: the tool, the
    arguments, the rule, and the calls that each answer covers."""

    message: str
    choices: tuple[str, ...]
    """The decisions that airlock accepts, such as `allow`, `allow-tool` and `refuse`."""
    schema: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class Answer:
    """A decision of `Question.choices`. `uses` belongs to `allow-tool` and `allow-session`, `result` to `happened`."""

    decision: str
    uses: int | None = None
    result: str | None = None


Reply = Union[bool, Answer, None]
OnApproval = Callable[[Question], Union[Reply, Awaitable[Reply]]]

REFUSE = {"action": "accept", "content": {"decision": "refuse"}}
DECLINE = {"action": "decline"}
# airlock marks requests that it passes on with the name of the server. It sets this mark itself.
SERVER_KEY = "dev.airlock/server"


async def answer(on_approval: OnApproval | None, params: Mapping[str, Any]) -> dict[str, Any]:
    """Answers one elicitation. Everything but an explicit yes refuses the call."""
    schema = params.get("requestedSchema") or {}
    choices = schema.get("properties", {}).get("decision", {}).get("enum")
    if on_approval is None or SERVER_KEY in (params.get("_meta") or {}) or not choices:
        return DECLINE
    question = Question(str(params.get("message", "")), tuple(choices), schema)
    try:
        reply = await _functions.call(on_approval, question)
    except Exception:
        log.exception("on_approval failed; the call is refused")
        return REFUSE
    if reply is True:
        reply = Answer("allow")
    if reply is None or reply is False:
        return REFUSE
    if not isinstance(reply, Answer) or reply.decision not in question.choices:
        log.error("on_approval returned %r; expected True, False or an Answer with one of %s", reply, question.choices)
        return REFUSE
    content: dict[str, Any] = {"decision": reply.decision}
    if reply.uses is not None:
        content["uses"] = reply.uses
    if reply.result is not None:
        content["result"] = reply.result
    return {"action": "accept", "content": content}
