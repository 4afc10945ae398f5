import pytest

HEAD = """
import asyncio
import glob
import os
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from promptkit import Arg, Image, Text, prompt, read_below, resource
from promptkit.workspace import workspace

FOLDER = Path(__file__).parent


def checked(path):
    return path


{decorator}
async def subject(
    text: Annotated[str, Arg("Any")],
    path: Path | None = None,
    paths: list[Path] = [],
    count: int = 3,
    choice: Literal["a", "b"] = "a",
    pattern: Annotated[str, Meta(pattern="^[a-z]+$")] = "x",
):
"""


@pytest.fixture
def find_reported_parameters(collect_diagnostics):
    """A function that returns the parameters reported in the body of a prompt or another function."""

    def find_reported_parameters(body, decorator="@prompt"):
        source = f"{HEAD.replace('{decorator}', decorator)}    {body}\n"
        diagnostics = [
            diagnostic
            for diagnostic in collect_diagnostics(subject=source)
            if diagnostic.rule.value == "PK331"
        ]
        return [diagnostic.message.split("'")[3] for diagnostic in diagnostics]

    return find_reported_parameters


@pytest.mark.parametrize(
    ("body", "reported"),
    [
        ("return open(text).read()", ["text"]),
        ("return path.read_text()", ["path"]),
        ("return (workspace() / path).read_text()", ["path"]),
        ("return (FOLDER / f'{text}.md').read_text()", ["text"]),
        ("return FOLDER.joinpath(text).resolve().read_text()", ["text"]),
        ("return Path(text).expanduser().read_text()", ["text"]),
        ("return open(os.path.join('notes', text), encoding='utf-8').read()", ["text"]),
        ("return await asyncio.to_thread(Path(text).read_text)", ["text"]),
        ("return ', '.join(os.listdir(text))", ["text"]),
        ("return str(glob.glob(f'{text}/*'))", ["text"]),
        ("return Image.from_path(text)", ["text"]),
        ("return ''.join(item.read_text() for item in paths)", ["paths"]),
        ("file = workspace() / text; return file.read_text()", ["text"]),
        ("path = FOLDER / path; return path.read_text()", ["path"]),
        ("open(text, 'w'); return 'x'", ["text"]),
        ("return Path(text if count else path).read_text()", ["path", "text"]),
    ],
)
def test_path_of_a_caller_is_reported(body, reported, find_reported_parameters):
    """A file or folder is reported if a parameter is a part of its path, directly or through a variable."""
    assert sorted(find_reported_parameters(body)) == reported


@pytest.mark.parametrize(
    "body",
    [
        "return Text.below(workspace(), path)",
        "return read_below(text, FOLDER).decode()",
        "return Image.from_path(text, root=FOLDER)",
        "return (FOLDER / 'notes.md').read_text()",
        "return (FOLDER / choice).read_text()",
        "return (FOLDER / f'{count}.md').read_text()",
        "return (FOLDER / pattern).read_text()",
        "return checked(path).read_text()",
        "path = checked(path); return path.read_text()",
        "file = (FOLDER / path).resolve(); assert file.is_relative_to(FOLDER); return file.read_text()",
        "return text.strip().replace('open', 'x')",
        "file = FOLDER; a = file / file; b = a / a; c = b / b; d = c / c; return d.read_text()",
    ],
)
def test_safe_paths_are_not_reported(body, find_reported_parameters):
    """
    Files below a folder, paths of numbers, choices and checked values, and paths that the function checks are
    not reported.
    """
    assert find_reported_parameters(body) == []


def test_helpers_are_not_reported(find_reported_parameters):
    """A helper can be called with the author's own paths."""
    assert find_reported_parameters("return path.read_text()", decorator="") == []


def test_resources_are_reported(collect_diagnostics):
    """A resource has callers like a prompt."""
    source = """
from pathlib import Path
from promptkit import resource

@resource("notes://{name}")
def notes(name: str) -> str:
    return (Path(__file__).parent / name).read_text()
"""
    (diagnostic,) = collect_diagnostics(notes=source)

    assert diagnostic.message.startswith("resource 'notes': 'name' is part of a file's path")
