"""The prompts, served by FastMCP."""

import os
from functools import cache
from pathlib import Path
from typing import Literal

from fastmcp import FastMCP
from fastmcp.prompts import Message, Prompt
from fastmcp.utilities.types import Image
from mcp_types import CompletionArgument, CompletionContext, PromptReference, ResourceTemplateReference
from pydantic import BaseModel
from starlette.applications import Starlette

PICTURES = Path(os.environ["BENCHMARK_PICTURES"])
LANGUAGES = ("python", "rust", "go")
NAMED = 5

Language = Literal["python", "rust", "go"]
server = FastMCP("benchmark")


@cache
def read(name: str) -> bytes:
    """Return the bytes of a picture, which is read on first use."""
    return (PICTURES / name).read_bytes()


class Change(BaseModel):
    """The value of a structured argument."""

    title: str
    files: list[str]
    urgent: bool


@server.prompt
def plain(code: str) -> str:
    """Review a piece of code."""
    return f"Review this code.\n\n{code}"


@server.prompt
def typed(code: str, language: Language = "python", depth: int = 1) -> str:
    """Review code in a language."""
    return f"Review this {language} code, {depth} deep.\n\n{code}"


@server.prompt
def structured(change: Change) -> str:
    """Review a change."""
    pace = "now" if change.urgent else "later"
    return f"Review {change.title!r} {pace}: {', '.join(change.files)}"


@server.prompt
def turns(error: str) -> list[Message]:
    """Walk through an error."""
    return [
        Message(f"I see an error: {error}"),
        Message("What have you tried so far?", role="assistant"),
        Message("I have restarted the service."),
    ]


@server.prompt
def picture(caption: str) -> list[Message]:
    """Look at a picture."""
    return [Message(caption), Message(Image(data=read("picture.png"), format="png").to_image_content())]


def create_prompt(number: int) -> Prompt:
    """Return one of the many prompts that make a list long."""

    def generated(code: str, language: Language = "python", depth: int = 1) -> str:
        """Review code in a language."""
        return f"Review this {language} code, {depth} deep.\n\n{code}"

    return Prompt.from_function(generated, name=f"generated_{number:05}")


for each in range(int(os.environ["BENCHMARK_PROMPTS"]) - NAMED):
    server.add_prompt(create_prompt(each))


@server.completion
def complete(
    _: PromptReference | ResourceTemplateReference,
    argument: CompletionArgument,
    __: CompletionContext | None,
) -> list[str]:
    """Return the languages that start with the input."""
    return [language for language in LANGUAGES if language.startswith(argument.value)]


def over_http() -> Starlette:
    """Return the ASGI application."""
    return server.http_app(json_response=True)


if __name__ == "__main__":
    server.run("stdio", show_banner=False)
