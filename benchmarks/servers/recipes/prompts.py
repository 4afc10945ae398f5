"""The five named prompts, as recipes for promptkit. The generated prompts are in a separate file."""

import os
from functools import cache
from pathlib import Path
from typing import Literal

import attrs

from promptkit import Image, Workflow, assistant, prompt, user

PICTURES = Path(os.environ["BENCHMARK_PICTURES"])

Language = Literal["python", "rust", "go"]


@cache
def read(name: str) -> bytes:
    """Return the bytes of a picture, which is read on first use."""
    return (PICTURES / name).read_bytes()


@attrs.frozen
class Change:
    """The value of a structured argument."""

    title: str
    files: list[str]
    urgent: bool


@prompt
def plain(code: str) -> str:
    """Review a piece of code."""
    return f"Review this code.\n\n{code}"


@prompt
def typed(code: str, language: Language = "python", depth: int = 1) -> str:
    """Review code in a language."""
    return f"Review this {language} code, {depth} deep.\n\n{code}"


@prompt
def structured(change: Change) -> str:
    """Review a change."""
    pace = "now" if change.urgent else "later"
    return f"Review {change.title!r} {pace}: {', '.join(change.files)}"


@prompt
def turns(error: str) -> Workflow:
    """Walk through an error."""
    return (
        user(f"I see an error: {error}")
        + assistant("What have you tried so far?")
        + user("I have restarted the service.")
    )


@prompt
def picture(caption: str) -> Workflow:
    """Look at a picture."""
    return user(caption, Image(read("picture.png")))
