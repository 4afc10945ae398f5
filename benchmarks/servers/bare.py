"""
A baseline: a loop that reads requests and writes the same replies as the other servers.

It does not validate input or report errors, and it converts only the arguments for which a prompt needs this.
"""

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from pybase64 import b64encode

PICTURES = Path(os.environ["BENCHMARK_PICTURES"])
LANGUAGES = ("python", "rust", "go")

decode = msgspec.json.Decoder().decode
encode = msgspec.json.Encoder().encode


@cache
def read(name: str) -> bytes:
    """Return the bytes of a picture, which is read on first use."""
    return (PICTURES / name).read_bytes()


def text(words: str, role: str = "user") -> dict[str, Any]:
    """Return a text message."""
    return {"role": role, "content": {"type": "text", "text": words}}


def picture(caption: str) -> list[dict[str, Any]]:
    """Render a caption and an image."""
    image = {"type": "image", "data": b64encode(read("picture.png")).decode(), "mimeType": "image/png"}
    return [text(caption), {"role": "user", "content": image}]


def review(code: str, language: str = "python", depth: str = "1") -> list[dict[str, Any]]:
    """Render the prompts with typed arguments."""
    return [text(f"Review this {language} code, {int(depth)} deep.\n\n{code}")]


def structured(change: str) -> list[dict[str, Any]]:
    """Render the prompt with a structured argument."""
    fields = decode(change)
    pace = "now" if fields["urgent"] else "later"
    return [text(f"Review {fields['title']!r} {pace}: {', '.join(fields['files'])}")]


def turns(error: str) -> list[dict[str, Any]]:
    """Render a conversation of three turns."""
    return [
        text(f"I see an error: {error}"),
        text("What have you tried so far?", "assistant"),
        text("I have restarted the service."),
    ]


#: The description, the arguments and the renderer of each prompt, keyed by name. The first argument is
#: required.
PROMPTS: dict[str, tuple[str, tuple[str, ...], Callable[..., list[dict[str, Any]]]]] = {
    "plain": ("Review a piece of code.", ("code",), lambda code: [text(f"Review this code.\n\n{code}")]),
    "typed": ("Review code in a language.", ("code", "language", "depth"), review),
    "structured": ("Review a change.", ("change",), structured),
    "turns": ("Walk through an error.", ("error",), turns),
    "picture": ("Look at a picture.", ("caption",), picture),
}
PROMPTS |= {
    f"generated_{number:05}": PROMPTS["typed"]
    for number in range(int(os.environ["BENCHMARK_PROMPTS"]) - len(PROMPTS))
}
LIST = {
    "prompts": [
        {
            "name": name,
            "description": description,
            "arguments": [{"name": argument, "required": argument == arguments[0]} for argument in arguments],
        }
        for name, (description, arguments, _) in PROMPTS.items()
    ]
}
SERVER = {"name": "bare", "version": "1"}
CAPABILITIES = {"prompts": {}, "completions": {}}


def get(params: dict[str, Any]) -> dict[str, Any]:
    """Return the result of ``prompts/get``."""
    description, _, render = PROMPTS[params["name"]]
    return {"description": description, "messages": render(**params["arguments"])}


def complete(params: dict[str, Any]) -> dict[str, Any]:
    """Return the result of ``completion/complete``."""
    typed = params["argument"]["value"]
    return {"completion": {"values": [language for language in LANGUAGES if language.startswith(typed)]}}


METHODS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "initialize": lambda params: {
        "protocolVersion": params["protocolVersion"],
        "capabilities": CAPABILITIES,
        "serverInfo": SERVER,
    },
    "server/discover": lambda _: {"supportedVersions": ["2026-07-28"], "capabilities": CAPABILITIES},
    "prompts/list": lambda _: LIST,
    "prompts/get": get,
    "completion/complete": complete,
}


def answer(line: bytes) -> bytes:
    """Return the reply to one request, in the era of the request."""
    request = decode(line)
    result = METHODS[request["method"]](request["params"])
    if "_meta" in request["params"]:
        meta = {"io.modelcontextprotocol/serverInfo": SERVER}
        result = {"resultType": "complete", **result, "_meta": meta}
    return encode({"jsonrpc": "2.0", "id": request["id"], "result": result})


def write(data: bytes) -> None:
    """Write all of *data*."""
    while data:
        data = data[os.write(1, data) :]


def main() -> None:
    """Answer every line that has an id, until the end of the input."""
    partial = b""
    while chunk := os.read(0, 65536):
        *lines, partial = (partial + chunk).split(b"\n")
        replies = [answer(line) + b"\n" for line in lines if b'"id"' in line]
        if replies:
            write(b"".join(replies))


main()
