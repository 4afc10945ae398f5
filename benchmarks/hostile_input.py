"""Hostile input of any size, and the prompts and resources that receive it."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from msgspec import Meta

from promptkit import Arg, Prompt, Resource, prompt, resource
from promptkit.compiler.compilation import compile
from promptkit.loader.recipes import Recipes

__all__ = ["CATALOG", "KINDS", "OPENING", "InputFactory"]

#: A function that creates one or more lines of input of a given size.
InputFactory = Callable[[int], bytes]

#: The modulus of Python's hashes of integers.
PRIME: Final = 2**61 - 1

#: A protocol revision that supports batches.
REVISION: Final = "2025-03-26"


@dataclass(frozen=True)
class Point:
    """A hashable record, for use in sets."""

    x: Decimal
    y: int = 0


@dataclass
class Tree:
    """A recursive record."""

    name: str
    children: "list[Tree]"


#: The type of each prompt's argument, keyed by prompt name.
TYPES: Final[Mapping[str, Any]] = {
    "text": str,
    "whole": int,
    "exact": Decimal,
    "float": float,
    "choice": Literal["red", "green", "blue"],
    "bytes": bytes,
    "duration": timedelta,
    "moment": Annotated[datetime, Meta(tz=True)],
    "pattern": Annotated[str, Meta(pattern="^[a-z]+$")],
    "numbers": list[int],
    "words": list[str],
    "choices": list[Literal["red", "green"] | int],
    "whole_set": set[int],
    "exact_set": frozenset[Decimal],
    "id_set": set[UUID],
    "point_set": set[Point],
    "by_number": dict[int, str],
    "by_price": dict[Decimal, int],
    "exact_by_name": dict[str, Decimal],
    "record": Point,
    "tree": Tree,
    "anything": dict,
}

#: The URI templates, which are tried in order until one matches.
TEMPLATES: Final = (
    "{a}",
    "{a}/{b}",
    "{+path}!",
    "{+a}/{+b}/{+c}!",
    "{a}{b}{c}!",
    "{a}.{b}.{c}!",
    "{a,b,c}!",
    "{/a*}!",
    "{/a,b}{?q}",
    "{;a*}!",
    "{.a*}!",
    "x{?a,b}",
    "{a}{?a*}!",
    "{?a*,b*}",
    "{#a}!",
)


def _create_prompt(name: str, annotation: Any) -> Prompt[..., str]:
    """Return a prompt that takes one value of a type and renders a few words."""

    def take(value: Any) -> str:
        return type(value).__name__

    take.__annotations__["value"] = annotation
    return prompt(name=name)(take)


@prompt
def complete(
    color: Annotated[str, Arg(complete=["red", "dark red", "lightGreen"])],
    path: Annotated[str, Arg(complete=lambda typed: [f"notes/{typed}", f"{typed[::-1]} {typed}"])],
) -> str:
    """Complete arguments from a list and by a function."""
    return color + path


def _create_resource(number: int, template: str) -> Resource[..., str]:
    """Return one of many resources whose URIs start in the same way."""
    names = [name for name in ("a", "b", "c", "q", "path") if name in template]
    read = eval(f"lambda {', '.join(f'{name}=None' for name in names)}: 'a note'")  # noqa: S307 (the source is built here)
    read.__name__ = f"notes_{number}"
    read.__annotations__ = {**dict.fromkeys(names, str | list[str] | None), "return": str}
    return resource(f"notes:///{template}")(read)


CATALOG: Final = compile(
    Recipes(
        prompts=(*(_create_prompt(*item) for item in TYPES.items()), complete),
        resources=tuple(_create_resource(*item) for item in enumerate(TEMPLATES)),
    )
)


def _line(message: Any) -> bytes:
    return json.dumps(message).encode() + b"\n"


def _request(method: str, params: Mapping[str, Any], number: int | str = 1) -> bytes:
    return _line({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def _prompt_requests(name: str, create_value: Callable[[int], Any]) -> InputFactory:
    """Return a function that creates a request for a prompt, with an argument of a given size."""
    return lambda size: _request("prompts/get", {"name": name, "arguments": {"value": create_value(size)}})


def _resource_requests(create_value: Callable[[int], str]) -> InputFactory:
    """Return a function that creates a request for a resource, with a URI of a given size."""
    return lambda size: _request("resources/read", {"uri": f"notes:///{create_value(size * 7 // 8)}"})


def _completion_requests(argument: str, create_value: Callable[[int], str]) -> InputFactory:
    """Return a function that creates a completion request, with typed text of a given size."""

    def line(size: int) -> bytes:
        partial = {"name": argument, "value": create_value(size)}
        ref = {"type": "ref/prompt", "name": "complete"}
        return _request("completion/complete", {"ref": ref, "argument": partial})

    return line


def _colliding_numbers(size: int) -> list[str]:
    """Return integers that have the same hash, as text."""
    return [str(PRIME * number) for number in range(1, size + 1)]


def _colliding_keys(size: int, value: Any) -> str:
    """Return a JSON object whose keys have the same hash after conversion to numbers."""
    return json.dumps(dict.fromkeys(_colliding_numbers(size), value))


OPENING: Final = _request(
    "initialize",
    {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": {"name": "hostile", "version": "1"}},
    0,
) + _line({"jsonrpc": "2.0", "method": "notifications/initialized"})

#: The kinds of hostile input, keyed by name. The server replies to each with a result or an error.
KINDS: Final[Mapping[str, InputFactory]] = {
    # Hash tables.
    "set of colliding numbers": _prompt_requests("whole_set", lambda n: ",".join(_colliding_numbers(n))),
    "set of colliding Decimals": _prompt_requests("exact_set", _colliding_numbers),
    "set of colliding UUIDs": _prompt_requests(
        "id_set", lambda n: ",".join(str(UUID(int=PRIME * i)) for i in range(1, n + 1))
    ),
    "set of colliding records": _prompt_requests(
        "point_set", lambda n: json.dumps([{"x": x} for x in _colliding_numbers(n)])
    ),
    "dict by colliding Decimals": _prompt_requests("by_price", lambda n: _colliding_keys(n, 1)),
    "set of numbers of equal low bits": _prompt_requests(
        "whole_set", lambda n: ",".join(str(i << 40) for i in range(n))
    ),
    "one number many times": _prompt_requests("exact_set", lambda n: "1.0,1.00," * (n // 2)),
    "dict by number": _prompt_requests("by_number", lambda n: json.dumps({str(i): "x" for i in range(n)})),
    # Numbers and times.
    "digits": _prompt_requests("whole", lambda n: "1" * n),
    "digits with an end": _prompt_requests("exact", lambda n: "1" * n + "x"),
    "digits in a record": _prompt_requests("record", lambda n: json.dumps({"x": "1" * n + "x"})),
    "digits with an end, as members": _prompt_requests(
        "exact_by_name", lambda n: json.dumps({"a": "1" * n + "x"})
    ),
    "a fraction": _prompt_requests("exact", lambda n: "0." + "1" * n),
    "float": _prompt_requests("float", lambda n: "1" * n + "e-" + "1" * n),
    "duration of digits": _prompt_requests("duration", lambda n: "1" * n + "d" + "." * n),
    "duration of units": _prompt_requests("duration", lambda n: "1d " * n),
    "moment": _prompt_requests("moment", lambda n: "2026-01-31T" + "0" * n),
    # Text.
    "text": _prompt_requests("text", lambda n: "x" * n),
    "text that a pattern rejects": _prompt_requests("pattern", lambda n: "x" * n + "1"),
    "invalid choice": _prompt_requests("choice", lambda n: "red" * n),
    "base64": _prompt_requests("bytes", lambda n: "A" * (4 * n) + "!"),
    "data: URI of escapes": _prompt_requests("bytes", lambda n: "data:," + "%41" * n),
    # Lists, records, and their errors.
    "list of numbers": _prompt_requests("numbers", lambda n: "1," * n),
    "list of errors": _prompt_requests("numbers", lambda n: "x," * n),
    "list of commas": _prompt_requests("words", lambda n: "," * n),
    "list of lines": _prompt_requests("words", lambda n: "x\n" * n),
    "list of a union": _prompt_requests("choices", lambda n: "7," * n),
    "list of invalid choices": _prompt_requests("choices", lambda n: json.dumps(["redd"] * n)),
    "record of unknown members": _prompt_requests(
        "record", lambda n: json.dumps({f"k{i}": i for i in range(n)})
    ),
    "errors after a long key": _prompt_requests("anything", lambda n: json.dumps({"k" * n: [1] * n})),
    "wide tree": _prompt_requests("tree", lambda n: json.dumps({"name": "a", "children": [{}] * n})),
    "deep tree": _prompt_requests("tree", lambda n: '{"name":"a","children":[' * n + "]}" * n),
    "brackets": _prompt_requests("numbers", lambda n: "[" * n),
    "JSON in JSON": _prompt_requests("anything", lambda n: json.dumps({"a": json.dumps("\\" * n)})),
    # Names.
    "unknown prompt": lambda n: _request("prompts/get", {"name": "n" * n}),
    "unknown argument": lambda n: _request("prompts/get", {"name": "text", "arguments": {"v" * n: "x"}}),
    "many unknown arguments": lambda n: _request(
        "prompts/get", {"name": "text", "arguments": {f"value{i}": "x" for i in range(n)}}
    ),
    "unknown method": lambda n: _request("m" * n, {}),
    # URIs. None of the templates before the last one matches them.
    "URI of letters": _resource_requests(lambda n: "a" * n),
    "URI of slashes": _resource_requests(lambda n: "/" * n),
    "URI of dots": _resource_requests(lambda n: "." * n),
    "URI of commas": _resource_requests(lambda n: "/" + "," * n),
    "URI of escapes": _resource_requests(lambda n: "/%41" + "%41" * (n // 3)),
    "URI of escapes that are not UTF-8": _resource_requests(lambda n: "%FF" * (n // 3)),
    "URI of pairs": _resource_requests(lambda n: "x?" + "".join(f"k{i}=1&" for i in range(n // 8))),
    "URI of one pair": _resource_requests(lambda n: "x?" + "a=1&" * (n // 4)),
    "URI of questions": _resource_requests(lambda n: "?a=" * (n // 3)),
    "URI of segments": _resource_requests(lambda n: "/a,b.c;d=e" * (n // 10)),
    # Completion.
    "completion of a word": _completion_requests("color", lambda n: "r" * n),
    "completion by a function": _completion_requests("path", lambda n: "a b" * n),
    # Lines.
    "many lines": lambda n: _request("ping", {}) * n,
    "lines that are not JSON": lambda n: b"{]\n" * n,
    "line of blanks": lambda n: b" " * n + _request("ping", {}),
    "batch": lambda n: b"[" + b",".join(_request("ping", {}, i).strip() for i in range(1, n + 1)) + b"]\n",
    "long id": lambda n: _request("ping", {}, "i" * n),
    "id of escapes": lambda n: _request("ping", {}, "\u00e9\\" * n),
    "cursor": lambda n: _request("prompts/list", {"cursor": "A" * n}),
    "deep params": lambda n: (
        b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b"[" * n + b"]" * n + b"}\n"
    ),
    "members of params": lambda n: _request("ping", {f"k{i}": [i] for i in range(n)}),
}
