"""How pages are written: templates in which everything is escaped, and nothing is hidden."""

from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from promptkit.fragments.invisible import escape_invisible
from promptkit.preview.uploads import MAX_UPLOAD_SIZE

__all__ = ["FOLDER", "as_typed", "environment", "page", "prompt_path", "resource_path", "visible"]

#: Where the templates lie, and beside them what browsers load.
FOLDER: Final = Path(__file__).parent


@cache
def environment() -> Environment:
    """Return what reads and keeps the templates."""
    made = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=visible,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {"as_typed": as_typed, "prompt_path": prompt_path, "resource_path": resource_path}
    made.globals["max_upload_size"] = MAX_UPLOAD_SIZE
    for name in made.list_templates():  # nobody waits now
        made.get_template(name)
    return made


def page(name: str, **values: Any) -> str:
    """Return a template filled in. Text is escaped, and shows characters that nobody would see."""
    return environment().get_template(name).render(values)


def visible(value: Any) -> Any:
    """Show what is invisible in a text; what is markup already, or no text, stays as it is."""
    return escape_invisible(value) if type(value) is str else value


def as_typed(text: str) -> Markup:
    """Return the value of a control as it was typed, with invisible characters."""
    return escape(text.encode(errors="replace").decode())


def prompt_path(name: str, query: str = "") -> str:
    """Return where the page of a prompt is, with the arguments of *query*."""
    return f"/prompts/{quote(name, safe='')}" + (f"?{query}" if query else "")


def resource_path(uri: str) -> str:
    """Return where the page of a resource is."""
    return f"/resources?{urlencode({'uri': uri})}"
