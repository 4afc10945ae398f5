"""A reload frees the previous version of recipes, even where libraries cache parts of them."""

import gc
import sys
import weakref
from types import SimpleNamespace

import msgspec
import pytest

from promptkit.compiler import reloading
from promptkit.types.scalar_types import SCALARS
from tests.compiler.test_reload_steps import Author

#: The start of each version: its MARK shows whether anything still references the module.
HEAD = """
import sys, weakref
from dataclasses import dataclass
from typing import Annotated, Generic, Optional, TypeVar
import attrs
from promptkit import Arg, prompt, register_type
from promptkit.fragments import fill

class Mark:
    pass

MARK = Mark()
sys.marks.setdefault(__name__, []).append(weakref.ref(MARK))
sys.executed.append(__name__)

@prompt(name=__name__.replace(".", "_"))
def says():
    return "{version}"
"""

#: Recipe code that makes some library keep references, by what holds them; each version differs.
KEEPERS = {
    "nothing": "",
    "Annotated": """
def words():
    return [str(MARK)]

@prompt
def annotated(word: Annotated[str, Arg("{version}", complete=words)] = "x"):
    return word
""",
    "Optional": """
@dataclass
class Point:
    x: int
    def mark(self):
        return MARK

@prompt
def optional(point: Optional[Point] = None, points: list[Optional[Point]] = []):
    return str(point)
""",
    "Generic": """
T = TypeVar("T")

class Box(Generic[T]):
    def mark(self) -> "Box[int]":
        return MARK

BOX = Box[int]()
""",
    "attrs": """
@attrs.frozen
class Line:
    member_{version}: int = 0
    def mark(self):
        return MARK

@prompt
def attrs_class(line: Line | None = None):
    return str(line)
""",
    "registered": """
class Money:
    def __init__(self, text):
        self.mark = MARK

register_type(Money, Money, expected="an amount")

@prompt
def registered(price: Money | None = None):
    return str(price)
""",
    "completer": """
@prompt
def completed(word: Annotated[str, Arg(complete=["a", "{version}"])] = "x"):
    return str(MARK)
""",
    "failure": """
try:
    raise LookupError(MARK)
except LookupError as error:
    KEPT = error
""",
}


@pytest.fixture
def author(recipes, monkeypatch):
    """
    An author of recipes whose executions and live versions are recorded.

    Nothing is frozen or unfrozen, because a collection would otherwise visit the millions of objects of other
    tests.
    """
    collector = {name: getattr(gc, name) for name in ("collect", "disable", "enable")}
    monkeypatch.setattr(
        reloading, "gc", SimpleNamespace(**collector, freeze=lambda: None, unfreeze=lambda: None)
    )
    monkeypatch.setattr(sys, "executed", [], raising=False)
    monkeypatch.setattr(sys, "marks", {}, raising=False)
    return Author(recipes("shelf"))


def save_version(author, body, number, name="recipe"):
    """Save version *number* of a recipe."""
    source = (HEAD + body).format(version=f"v{number}") + "\n" * (number % 3)
    author.write_bytes(f"{name}.py", source.encode())


def msgspec_keeps_unions():
    """Return whether msgspec keeps every class that it has seen in a union, as 0.22 does on Python 3.14."""

    class Member(msgspec.Struct):
        pass

    msgspec.json.Decoder(Member | None)
    reference = weakref.ref(Member)
    del Member
    gc.collect()
    return reference() is not None


def test_at_most_two_versions_stay_in_memory(author):
    """An idle server has only the served version of each recipe and the one before it in memory."""
    bodies = {
        name: body for name, body in KEEPERS.items() if name != "Optional" or not msgspec_keeps_unions()
    }
    for number in range(6):
        for name, body in bodies.items():
            save_version(author, body, number, name)
        if number:
            author.reload()
        else:
            author.start()
        for prompt in author.catalog.values():
            assert prompt.render({})
        assert {author.texts()[f"shelf_{name}"] for name in bodies} == {f"v{number}"}

    author.free()
    for name in bodies:
        marks = sys.marks[f"shelf.{name}"]
        assert [mark() is not None for mark in marks[:4]] == [False] * 4, name
        assert len(marks) == 6
        assert marks[-1]() is not None


def test_broken_version_keeps_registered_types(author):
    """While the file is broken, the classes of the served version stay registered."""
    body = KEEPERS["registered"]
    save_version(author, body, 0)
    author.start()
    for number in (1, 2):
        save_version(author, body + "\n1 / 0\n", number)
        author.reload()

    assert sys.marks["shelf.recipe"][0]() is not None
    assert author.catalog["registered"].render({"price": "3"})
    assert author.texts()["shelf_recipe"] == "v0"


def test_reloads_do_not_accumulate_types(author):
    """However often a recipe is loaded, only one version of a class that it registers stays registered."""
    save_version(author, KEEPERS["registered"], 0)
    author.start()
    for number in range(1, 4):
        save_version(author, KEEPERS["registered"], number)
        author.reload()

    assert len([kind for kind in SCALARS if kind.__module__ == "shelf.recipe"]) == 1
