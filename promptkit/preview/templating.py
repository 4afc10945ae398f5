"""How pages are written: templates and Markdown, in which everything is escaped, and nothing is hidden."""

from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup, escape

from promptkit.errors.diagnostics import Location
from promptkit.errors.sources import line_of
from promptkit.fragments.invisible import escape_invisible
from promptkit.language.media_checks import human_size
from promptkit.preview.uploads import MAX_UPLOAD_SIZE

__all__ = ["FOLDER", "SHORT", "environment", "formatted", "page", "prompt_path"]

#: Where the templates lie, and beside them what browsers load.
FOLDER: Final = Path(__file__).parent

#: A longer text is cut; in characters.
SHORT: Final = 20_000

#: The schemes of links that may be followed.
_SCHEMES: Final = frozenset({"http", "https", "mailto"})


@cache
def environment() -> Environment:
    """Return what reads and keeps the templates."""
    made = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {
        "as_typed": _as_typed,
        "human_size": human_size,
        "marked": _marked,
        "may_be_followed": _may_be_followed,
        "prompt_path": prompt_path,
        "resource_path": _resource_path,
        "visible": _visible,
    }
    made.globals |= {"max_upload_size": MAX_UPLOAD_SIZE, "short": SHORT}
    for name in made.list_templates():  # nobody waits now
        made.get_template(name)
    return made


def page(name: str, **values: Any) -> str:
    """Return a template filled in. Text is escaped, and shows characters that nobody would see."""
    return environment().get_template(name).render(values)


def _visible(value: Any) -> Any:
    """Show what is invisible in a text; what is markup already, or no text, stays as it is."""
    return escape_invisible(value) if type(value) is str else value


def _as_typed(text: str) -> Markup:
    """The value of a control as it was typed, with invisible characters."""
    return escape(text.encode(errors="replace").decode())


def prompt_path(name: str, query: str = "") -> str:
    """Return where the page of a prompt is, with the arguments of *query*."""
    return f"/prompts/{quote(name, safe='')}" + (f"?{query}" if query else "")


def _resource_path(uri: str) -> str:
    """Where the page of a resource is."""
    return f"/resources?{urlencode({'uri': uri})}"


def _marked(place: Location) -> tuple[int, str, str, str]:
    """The number of a line of source, and what is before, at and after a place in it."""
    place = place if place.column else place.part("def")  # of a whole function, its name
    source = line_of(place.file, place.line).rstrip() if place.line else ""
    begin, end = place.column - 1, place.end - 1
    if begin < 0:
        begin, end = len(source) - len(source.lstrip()), len(source)
    return place.line, source[:begin], source[begin:end], source[end:]


@lru_cache(maxsize=64)  # while people type, most turns stay as they are
def formatted(text: str) -> Markup:
    """Return Markdown as a page shows it: without HTML of its own, images, and unsafe links."""
    return Markup(_markdown().render(escape_invisible(text)))  # noqa: S704 (made by a renderer that escapes)


def _may_be_followed(url: str) -> bool:
    """Whether a page may link to a URL."""
    try:
        return urlsplit(url).scheme.lower() in _SCHEMES
    except ValueError:
        return False


@cache
def _markdown() -> MarkdownIt:
    made = MarkdownIt("commonmark", {"html": False, "breaks": True}, renderer_cls=_Renderer)
    made.enable(["table", "strikethrough"]).disable(["image", "html_block", "html_inline"])
    made.validateLink = _may_be_followed  # type: ignore[method-assign]
    return made


class _Renderer(RendererHTML):
    """Writes the headings of a prompt as paragraphs: they are no headings of the page."""

    def heading_open(self, tokens: Sequence[Token], idx: int, _options: OptionsDict, _env: EnvType) -> str:
        return f'<p class="level level-{tokens[idx].tag[1:]}">'

    def heading_close(self, *_: object) -> str:
        return "</p>\n"

    def link_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        tokens[idx].attrSet("rel", "noreferrer noopener")
        tokens[idx].attrSet("target", "_blank")
        return self.renderToken(tokens, idx, options, env)
