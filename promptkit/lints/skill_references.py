"""References in the Markdown of a skill: links, and paths in its text."""

import re
from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase
from posixpath import normpath
from typing import Any, Final
from urllib.parse import unquote

from msgspec import Struct

#: Paths of files in the folders that the format recommends.
_PATH: Final = re.compile(
    r"(?<![\w./:@~$}>\\-])(?:\./)?(?:references|scripts|assets)/[\w./*?{}<>$\[\]-]*\w\.\w+\b(?![/{<*-])"
)

#: Words of texts about skills in general, whose paths are examples.
_EXAMPLE: Final = re.compile(r"\b(?:examples?|e\.g\.|for instance|such as|would|could)(?!\w)", re.IGNORECASE)

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//|/|#|~")

#: Variables that agents replace by the folder of the skill.
_SKILL_FOLDER: Final = re.compile(
    r"\$?(?:\{(?:baseDir|base_dir|CLAUDE_SKILL_DIR|SKILL_DIR|SKILL_ROOT|skill_dir)\}|SKILL_DIR|SKILL_ROOT)/"
)

#: Parts of paths that stand for something.
_PLACEHOLDER: Final = re.compile(
    r"[{}<>$\[\]|…]|\.\.\.|^path/|/path/|^(?:url|link|URL|file|path|uri|image)$|\b(?:example|your|my|foo|bar|xxx?|name)\b",
    re.IGNORECASE,
)


class Reference(Struct, frozen=True):
    """
    A reference to a file of the skill.

    Args:
        path:
            The path, relative to the skill's folder; can contain ``*`` and ``?``.

        line:
            The line in the Markdown, from 0.

        is_link:
            Whether it is a link, and not a path in text.
    """

    path: str
    line: int
    is_link: bool

    def exists_in(self, paths: Collection[str]) -> bool:
        """Return whether it leads to one of *paths*, or to a folder with one of them."""
        path = normpath(self.path)
        return path == "." or any(
            fnmatchcase(other, path) or other.startswith(f"{path}/") or fnmatchcase(other, f"{path}/*")
            for other in paths
        )


def find_references(markdown: str) -> Iterator[Reference]:
    """
    Yield the references in a text: links, and paths in ``references/``, ``scripts/`` and ``assets/``.

    Code blocks, HTML and comments are examples rather than references. So are paths with placeholders.
    """
    from markdown_it import MarkdownIt  # slow to import, and few recipes have skills

    line = 0
    for block in MarkdownIt("commonmark").enable("table").parse(markdown):
        line = block.map[0] if block.map else line
        if block.type == "inline":
            yield from _references_in(block.children or (), line)


def _references_in(tokens: Collection[Any], line: int) -> Iterator[Reference]:
    """Yield the references in a paragraph, a heading or a cell."""
    is_example = any(_EXAMPLE.search(token.content) for token in tokens)
    for token in tokens:
        line += token.type in ("softbreak", "hardbreak")
        if token.type in ("link_open", "image"):
            target = str(token.attrs.get("href") or token.attrs.get("src") or "")
            path = _plain(unquote(target))
            if path and not _SCHEME.match(path) and not _PLACEHOLDER.search(path):
                yield Reference(path, line, is_link=True)
        elif token.type in ("text", "code_inline") and not is_example:
            for match in _PATH.findall(token.content):
                path = _plain(match)
                if path and not _PLACEHOLDER.search(path):
                    yield Reference(path, line, is_link=False)


def _plain(target: str) -> str:
    """Return a path without the variable of the skill's folder, the query and the fragment."""
    path = _SKILL_FOLDER.sub("", target, count=1)
    return path.partition("#")[0].partition("?")[0] if "#" in path or "?" in path else path
