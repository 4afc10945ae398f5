"""The recipe and the other files of the project in which messages are provoked."""

RECIPE = '''
from typing import Annotated, Literal
from promptkit import Arg, PromptError, prompt, resource

@prompt
def review(code: str, depth: int = 1, tone: Literal["kind", "curt"] = "kind"):
    """Ask for a review."""
    return f"Review {code} ({depth}, {tone})."

@prompt
def refuse():
    """Refuse."""
    raise PromptError("there are no logs yet")

@prompt
def empty(text: str = ""):
    """Render to nothing."""
    return text

@prompt(tool=False)
def private(data: bytes, points: list[int] = []):
    """Take data."""
    return str(data)

@resource("docs://page")
def page() -> str:
    """The page."""
    return "x"

@resource("docs://lines/{first}")
def lines(first: int) -> str:
    """Some lines."""
    return "x" * first
'''

FILES = {
    "pyproject.toml": b"",
    "latin.txt": b"caf\xe9",
    "points.json": b"[1]",
    "tickets.csv": b"code,depth\nx,1\n",
    "odd.csv": b"code,dept\nx,1\n",
    "twice.csv": b"code,code\nx,1\n",
    "empty.csv": b"",
    "keys": b"short\n",
    "tokens": b"",
}
