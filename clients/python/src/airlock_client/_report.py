"""The report of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Call:
    """One call of a tool. `outcome` is for example `returned`, `denied`, `refused` or `failed`."""

    id: int
    tool: str
    decision: str | None
    outcome: str | None
    code: str | None
    reasons: tuple[str, ...]
    ms: float | None


@dataclass(frozen=True)
class ConsoleLine:
    level: str
    text: str


@dataclass(frozen=True)
class ScriptError:
    """Why a run failed or was stopped."""

    message: str
    raw: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class Usage:
    wall_ms: int
    guest_ms: int
    memory_bytes_peak: int
    calls: int
    output_bytes: int


@dataclass(frozen=True)
class Report:
    """What became of a script. `raw` is the whole report as airlock sent it."""

    run: str | None
    status: str
    """`done`, `failed`, `stopped` or `paused`, among others."""
    code: str | None
    value: Any
    """What the script returned: the whole value, also if it is long."""
    error: ScriptError | None
    calls: tuple[Call, ...]
    console: tuple[ConsoleLine, ...]
    usage: Usage | None
    raw: Mapping[str, Any] = field(repr=False)

    @property
    def is_done(self) -> bool:
        return self.status == "done"

    @classmethod
    def parse(cls, raw: Mapping[str, Any], value: Any) -> Report:
        error = raw.get("error")
        if isinstance(error, Mapping):
            error = ScriptError(str(error.get("message", "")), error)
        elif error is not None:
            error = ScriptError(str(error), {})
        return cls(
            run=raw.get("run"),
            status=str(raw.get("status", "")),
            code=raw.get("code"),
            value=value,
            error=error,
            calls=tuple(_call(it) for it in raw.get("calls") or ()),
            console=tuple(ConsoleLine(it["level"], it["text"]) for it in raw.get("console") or ()),
            usage=_usage(raw.get("usage")),
            raw=raw,
        )


def _call(raw: Mapping[str, Any]) -> Call:
    return Call(
        id=raw["id"],
        tool=raw["tool"],
        decision=raw.get("decision"),
        outcome=raw.get("outcome"),
        code=raw.get("code"),
        reasons=tuple(raw.get("reasons") or ()),
        ms=raw.get("ms"),
    )


def _usage(raw: Mapping[str, Any] | None) -> Usage | None:
    if raw is None:
        return None
    return Usage(**{name: raw.get(name, 0) for name in Usage.__dataclass_fields__})
