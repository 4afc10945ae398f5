"""How pages are written: templates and Markdown, in which everything is escaped, and nothing is hidden."""

from collections.abc import Sequence
from functools import cache, lru_cache, partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup, escape
from pygments import highlight
from pygments.formatters.html import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from promptkit.errors.diagnostics import Location
from promptkit.errors.sources import line_of
from promptkit.fragments.invisible import escape_invisible
from promptkit.language.media_checks import human_size
from promptkit.preview.live import tag_search
from promptkit.preview.media import MAX_UPLOAD_SIZE

#: Where the templates lie, and beside them what browsers load.
FOLDER: Final = Path(__file__).parent

#: A longer text is cut; in characters.
SHORT: Final = 20_000

#: Names classes, which the style sheet gives colours to.
_COLOURS: Final = HtmlFormatter(nowrap=True)

#: The schemes of links that may be followed.
_SCHEMES: Final = frozenset({"http", "https", "mailto"})


@cache
def environment(editor: str = "") -> Environment:
    """
    Return what reads and keeps the templates.

    Args:
        editor:
            The scheme of the URLs that open a place in an editor; ``""`` for no such links.
    """
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
        "coloured": coloured,
        "editor_url": partial(_editor_url, editor),
        "as_typed": _as_typed,
        "case_path": _case_path,
        "human_size": human_size,
        "marked": _marked,
        "may_be_followed": _may_be_followed,
        "prompt_path": prompt_path,
        "resource_path": _resource_path,
        "search_path": search_path,
        "tag_search": tag_search,
        "visible": _visible,
    }
    made.globals |= {"max_upload_size": MAX_UPLOAD_SIZE, "short": SHORT, "static": static_path()}
    for name in made.list_templates():  # nobody waits now
        made.get_template(name)
    return made


def page(name: str, editor: str = "", **values: Any) -> str:
    """Return a template filled in. Text is escaped, and shows characters that nobody would see."""
    return environment(editor).get_template(name).render(values)


@lru_cache(maxsize=64)
def coloured(text: str, language: str) -> Markup:
    """Return code as a page shows it: in colours, if the language is known and the code not too long."""
    shown = escape_invisible(str(text))  # it may be a part of a template
    if len(shown) > SHORT:
        return escape(shown)
    try:
        lexer = get_lexer_by_name(language, stripnl=False)
    except ClassNotFound:
        return escape(shown)
    made = highlight(shown, lexer, _COLOURS)  # which always ends with a line
    return Markup(made if shown.endswith("\n") else made.removesuffix("\n"))  # noqa: S704 (it is escaped)


def _editor_url(editor: str, place: Location) -> str:
    """What opens a place in an editor; ``""`` if there is none."""
    path = Path(place.file)
    if not (editor and path.is_absolute()):
        return ""
    return f"{editor}://file/{quote(path.as_posix().lstrip('/'), safe='/:')}:{place.line}"


def _visible(value: Any) -> Any:
    """Show what is invisible in a text; what is markup already, or no text, stays as it is."""
    return escape_invisible(value) if type(value) is str else value


def _as_typed(text: str) -> Markup:
    """The value of a control as it was typed, with invisible characters."""
    return escape(text.encode(errors="replace").decode())


def prompt_path(name: str, query: str = "") -> str:
    """Return where the page of a prompt is, with the arguments of *query*."""
    return f"/prompts/{quote(name, safe='')}" + (f"?{query}" if query else "")


def _case_path(name: str, case: str) -> str:
    """The page of a prompt with a case of it in its form."""
    return prompt_path(name, urlencode({"use-case": case}))


def search_path(typed: str) -> str:
    """Return where all prompts are that a search finds."""
    return f"/?{urlencode({'q': typed})}" if typed else "/"


@cache
def static_path() -> str:
    """Return where scripts and styles are: another path whenever one of them is another."""
    digest = sha256()
    for file in sorted((FOLDER / "static").iterdir()):
        digest.update(file.read_bytes())
    return f"/static/{digest.hexdigest()[:16]}"


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
    options = {"html": False, "breaks": True, "highlight": lambda code, word, _: str(coloured(code, word))}
    made = MarkdownIt("commonmark", options, renderer_cls=_Renderer)
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
