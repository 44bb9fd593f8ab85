"""JSON Schema of type hints, and the values that fit them."""

from __future__ import annotations

import dataclasses
import inspect
import math
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

if sys.version_info >= (3, 11):
    from typing import NotRequired, Required

    _QUALIFIERS: tuple[Any, ...] = (Required, NotRequired)
else:
    _QUALIFIERS = ()

_SCALARS = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
_LISTS = (list, Sequence, typing.Sequence)
_DICTS = (dict, Mapping, typing.Mapping)


class UnsupportedHint(TypeError):
    """A parameter has no type hint, or one that JSON Schema cannot express."""


class InvalidArguments(ValueError):
    """Arguments do not fit the type hints."""


def parameters(function: Callable[..., Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the JSON Schema of a function's arguments, and the hint of each."""
    name = getattr(function, "__name__", repr(function))
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as error:
        raise UnsupportedHint(f"a type hint of `{name}` cannot be resolved: {error}. Define the type at the top of its module") from None
    properties: dict[str, Any] = {}
    required = []
    used = {}
    for parameter in inspect.signature(function).parameters.values():
        where = f"the parameter `{parameter.name}` of `{name}`"
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise UnsupportedHint(f"{where} cannot be passed by name. Use ordinary parameters")
        if parameter.name not in hints:
            raise UnsupportedHint(f"{where} has no type hint. Add one, such as `{parameter.name}: str`")
        hint = used[parameter.name] = hints[parameter.name]
        properties[parameter.name] = of_hint(hint, where)
        if parameter.default is parameter.empty:
            required.append(parameter.name)
        elif parameter.default is None or isinstance(parameter.default, (str, bool, int, float)):
            properties[parameter.name]["default"] = parameter.default
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = required
    return schema, used


def returned(function: Callable[..., Any]) -> dict[str, Any]:
    """Returns the JSON Schema of what a function returns."""
    hint = get_type_hints(function, include_extras=True).get("return", Any)
    return of_hint(hint, f"the result of `{getattr(function, '__name__', function)}`")


def of_hint(hint: Any, where: str, inside: tuple[Any, ...] = ()) -> dict[str, Any]:
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        schema = of_hint(args[0], where, inside)
        texts = [it for it in args[1:] if isinstance(it, str)]
        return {**schema, "description": texts[0]} if texts else schema
    if origin in _QUALIFIERS:
        return of_hint(args[0], where, inside)
    if hint is Any or hint is object:
        return {}
    if hint is None:
        return {"type": "null"}
    if hint in _SCALARS:
        return {"type": _SCALARS[hint]}
    if origin is Literal:
        return {"enum": list(args)}
    if origin is Union or origin is types.UnionType:
        return {"anyOf": [of_hint(it, where, inside) for it in args]}
    if hint in _LISTS or origin in _LISTS:
        return {"type": "array", "items": of_hint(args[0], where, inside)} if args else {"type": "array"}
    if hint in _DICTS or origin in _DICTS:
        if not args:
            return {"type": "object"}
        if _plain(args[0]) is not str:
            raise UnsupportedHint(f"{where} has the type `{_name(hint)}`. JSON has only text as keys: use `dict[str, …]`")
        return {"type": "object", "additionalProperties": of_hint(args[1], where, inside)}
    if _is_record(hint):
        if hint in inside:
            raise UnsupportedHint(f"{where} has the type `{_name(hint)}`, which contains itself. Use `dict` for the inner value")
        fields, required = _fields(hint)
        return {
            "type": "object",
            "properties": {name: of_hint(it, f"`{name}` in {where}", (*inside, hint)) for name, it in fields.items()},
            "required": [name for name in fields if name in required],
            "additionalProperties": False,
        }
    raise UnsupportedHint(
        f"{where} has the type `{_name(hint)}`, which JSON Schema cannot express. Supported are int, float, str, bool, "
        "None, list, dict, Optional, Union, Literal, dataclasses, TypedDict and Annotated"
    )


def convert(value: Any, hint: Any, where: str) -> Any:
    """Returns the value as the hint says it: dataclasses instead of dicts. Fails if it does not fit."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated or origin in _QUALIFIERS:
        return convert(value, args[0], where)
    if hint is Any or hint is object:
        return value
    if origin is Union or origin is types.UnionType:
        for option in args:
            try:
                return convert(value, option, where)
            except InvalidArguments:
                continue
        raise _unfit(value, hint, where)
    if origin is Literal:
        if any(value == it and type(value) is type(it) for it in args):
            return value
        raise _unfit(value, hint, where)
    if hint is None or hint is type(None):
        is_fit = value is None
    elif hint is int:
        # JavaScript has no integers, so 2.0 is one.
        if isinstance(value, float) and math.isfinite(value) and value.is_integer():
            value = int(value)
        is_fit = isinstance(value, int) and not isinstance(value, bool)
    elif hint is float:
        is_fit = isinstance(value, (int, float)) and not isinstance(value, bool)
        value = float(value) if is_fit else value
    elif hint in (str, bool):
        is_fit = isinstance(value, hint)
    elif hint in _LISTS or origin in _LISTS:
        if isinstance(value, list):
            return [convert(it, args[0], f"{where}[{n}]") for n, it in enumerate(value)] if args else value
        is_fit = False
    elif hint in _DICTS or origin in _DICTS:
        if isinstance(value, dict):
            return {key: convert(it, args[1], f"{where}.{key}") for key, it in value.items()} if args else value
        is_fit = False
    else:
        return _record(value, hint, where)
    if not is_fit:
        raise _unfit(value, hint, where)
    return value


def _record(value: Any, hint: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise _unfit(value, hint, where)
    fields, required = _fields(hint)
    missing = [name for name in fields if name in required and name not in value]
    unknown = [name for name in value if name not in fields]
    if missing or unknown:
        what = f"has no `{missing[0]}`" if missing else f"has the unknown member `{unknown[0]}`"
        raise InvalidArguments(f"{where} {what}; expected {', '.join(fields)}")
    values = {name: convert(it, fields[name], f"{where}.{name}") for name, it in value.items()}
    return hint(**values) if dataclasses.is_dataclass(hint) and isinstance(hint, type) else values


def to_json(value: Any) -> Any:
    """Returns the value with dicts instead of dataclasses."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {it.name: to_json(getattr(value, it.name)) for it in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {key: to_json(it) for key, it in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(it) for it in value]
    return value


def _fields(hint: Any) -> tuple[dict[str, Any], set[str]]:
    hints = get_type_hints(hint, include_extras=True)
    if not dataclasses.is_dataclass(hint):
        return hints, set(hint.__required_keys__)
    fields = [it for it in dataclasses.fields(hint) if it.init]
    without_default = {
        it.name for it in fields if it.default is dataclasses.MISSING and it.default_factory is dataclasses.MISSING
    }
    return {it.name: hints[it.name] for it in fields}, without_default


def _is_record(hint: Any) -> bool:
    return isinstance(hint, type) and (dataclasses.is_dataclass(hint) or typing.is_typeddict(hint))


def _plain(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _unfit(value: Any, hint: Any, where: str) -> InvalidArguments:
    shown = repr(value)
    shown = shown if len(shown) <= 60 else f"{shown[:60]}…"
    return InvalidArguments(f"{where} is {shown}; expected {_name(hint)}")


def _name(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint).replace("typing.", "")
