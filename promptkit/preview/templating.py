"""Rendering of templates and Markdown, with all text escaped and invisible characters made visible."""

from collections.abc import Sequence
from functools import cache, lru_cache, partial
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
from promptkit.errors.sources import read_line
from promptkit.fragments.invisible import escape_invisible
from promptkit.language.content import human_size
from promptkit.preview.editors import editor_url
from promptkit.preview.media import MAX_UPLOAD_SIZE

#: The folder that contains the templates and the static files.
FOLDER: Final = Path(__file__).parent

#: Maximum length of displayed text, in characters. Longer text is truncated.
SHORT: Final = 20_000

#: Formats code with CSS classes, which the style sheet colors.
_HTML_FORMATTER: Final = HtmlFormatter(nowrap=True)

#: The URL schemes that links can have.
_SCHEMES: Final = frozenset({"http", "https", "mailto"})


@cache
def environment(editor: str = "") -> Environment:
    """
    Return the template environment, with all templates loaded.

    Args:
        editor:
            The URL scheme that opens a location in an editor, or ``""`` to omit such links.
    """
    env = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_escape_invisible,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    env.filters |= {
        "highlight_code": highlight_code,
        "editor_url": partial(editor_url, editor),
        "escape_html_only": _escape_html_only,
        "case_path": _case_path,
        "human_size": human_size,
        "split_source_line": _split_source_line,
        "is_safe_link": _is_safe_link,
        "prompt_path": prompt_path,
        "resource_path": _resource_path,
        "search_path": search_path,
        "escape_invisible": _escape_invisible,
    }
    env.globals |= {"max_upload_size": MAX_UPLOAD_SIZE, "short": SHORT}
    for name in env.list_templates():  # compile all templates before the first request
        env.get_template(name)
    return env


def render_template(name: str, editor: str = "", **values: Any) -> str:
    """Render a template, escaping text and making invisible characters visible."""
    return environment(editor).get_template(name).render(values)


@lru_cache(maxsize=64)
def highlight_code(text: str, language: str) -> Markup:
    """Return code for a page, highlighted if the language is known and the code is short enough."""
    code = escape_invisible(str(text))  # *text* can be Markup
    if len(code) > SHORT:
        return escape(code)
    try:
        lexer = get_lexer_by_name(language, stripnl=False)
    except ClassNotFound:
        return escape(code)
    highlighted = highlight(code, lexer, _HTML_FORMATTER)  # always ends with a line break
    return Markup(highlighted if code.endswith("\n") else highlighted.removesuffix("\n"))  # noqa: S704 (Pygments escapes it)


def _escape_invisible(value: Any) -> Any:
    """Make invisible characters in a plain string visible. Return markup and other values unchanged."""
    return escape_invisible(value) if type(value) is str else value


def _escape_html_only(text: str) -> Markup:
    """Escape the value of a control for HTML, but keep invisible characters that users have typed."""
    return escape(text.encode(errors="replace").decode())


def prompt_path(name: str, query: str = "") -> str:
    """Return the path of a prompt's page, followed by the query string *query*."""
    return f"/prompts/{quote(name, safe='')}" + (f"?{query}" if query else "")


def _case_path(name: str, case: str) -> str:
    """Return the path of a prompt's page that shows the values of a case in its form."""
    return prompt_path(name, urlencode({"use-case": case}))


def search_path(query: str) -> str:
    """Return the path of the gallery with a search query."""
    return f"/?{urlencode({'q': query})}" if query else "/"


def _resource_path(uri: str) -> str:
    """Return the path of a resource's page."""
    return f"/resources?{urlencode({'uri': uri})}"


def _split_source_line(location: Location) -> tuple[int, str, str, str]:
    """Return the line number of a location, and the line's text before, at and after the location."""
    location = location if location.column else location.part("def")  # for a whole function, mark its name
    source = read_line(location.file, location.line).rstrip() if location.line else ""
    start, end = location.column - 1, location.end - 1
    if start < 0:
        start, end = len(source) - len(source.lstrip()), len(source)
    return location.line, source[:start], source[start:end], source[end:]


@lru_cache(maxsize=64)  # while users type, most turns stay the same
def format_markdown(text: str) -> Markup:
    """Convert Markdown to HTML for a page, without embedded HTML, images or unsafe links."""
    return Markup(_markdown().render(escape_invisible(text)))  # noqa: S704 (the renderer escapes it)


def _is_safe_link(url: str) -> bool:
    """Return whether a page can link to a URL."""
    try:
        return urlsplit(url).scheme.lower() in _SCHEMES
    except ValueError:
        return False


@cache
def _markdown() -> MarkdownIt:
    options = {
        "html": False,
        "breaks": True,
        "highlight": lambda code, word, _: str(highlight_code(code, word)),
    }
    markdown = MarkdownIt("commonmark", options, renderer_cls=_Renderer)
    markdown.enable(["table", "strikethrough"]).disable(["image", "html_block", "html_inline"])
    markdown.validateLink = _is_safe_link  # type: ignore[method-assign]
    return markdown


class _Renderer(RendererHTML):
    """Renders headings as paragraphs, because the headings in a prompt are not headings of the page."""

    def heading_open(self, tokens: Sequence[Token], idx: int, _options: OptionsDict, _env: EnvType) -> str:
        return f'<p class="level level-{tokens[idx].tag[1:]}">'

    def heading_close(self, *_: object) -> str:
        return "</p>\n"

    def link_open(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        tokens[idx].attrSet("rel", "noreferrer noopener")
        tokens[idx].attrSet("target", "_blank")
        return self.renderToken(tokens, idx, options, env)
