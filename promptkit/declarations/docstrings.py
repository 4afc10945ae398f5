"""Docstrings of authors' functions: the summary, and what is said of each parameter."""

import inspect
import re
from typing import Final

# Patterns are compiled when a docstring may have sections, as that takes as long as to import a module.

#: Blanks of one line: from each of many blank lines, ``\s*`` would go through all that follow.
_BLANKS: Final = r"[^\S\n]*"

#: Where a docstring describes parameters. Without a match, the parser (slow to import) is not needed.
_PARAMETERS: Final = (
    rf"^{_BLANKS}(?:[:@](?:param|arg|argument|parameter|key)\b"
    rf"|(?:Args|Arguments|Params|Parameters|Keyword Args){_BLANKS}(?::{_BLANKS})?$)"
)

#: Where a docstring's prose ends: at any section, in Google, NumPy or Sphinx style.
_TITLES: Final = (
    "Args|Arguments|Params|Parameters|Keyword Args|Other Parameters|Returns?|Yields?|Raises|Warns"
    "|Examples?|Notes?|Warnings?|See Also|References|Attributes|Todo"
)

_FIELDS: Final = "param|arg|argument|parameter|key|type|returns?|rtype|raises?|except|yields?"

_SECTION: Final = (
    rf"^{_BLANKS}(?:[:@](?:{_FIELDS})\b"
    rf"|(?:{_TITLES}){_BLANKS}:{_BLANKS}$|(?:{_TITLES})\n{_BLANKS}-{{3,}}{_BLANKS}$)"
)


def _may_have_sections(text: str | None) -> bool:
    """Whether a docstring may say more than a summary."""
    return not {"\n", ":", "@"}.isdisjoint(text or "")


def read_summary(text: str | None) -> str | None:
    """Return a docstring's summary, which is its first paragraph, on one line."""
    text = inspect.cleandoc(text or "")
    section = re.search(_SECTION, text, re.MULTILINE) if _may_have_sections(text) else None
    prose = text[: section.start()] if section else text
    return " ".join(prose.partition("\n\n")[0].split()) or None


def read_descriptions(text: str | None) -> dict[str, str]:
    """Return what a docstring in Google, NumPy or Sphinx style says about each parameter."""
    return {name: said for name, said in _parameters_in(text).items() if said}


def _parameters_in(text: str | None) -> dict[str, str]:
    """What a docstring says about each parameter that it names, ``""`` for a type alone."""
    if not text or not _may_have_sections(text) or not re.search(_PARAMETERS, text, re.MULTILINE):
        return {}
    from docstring_parser import parse

    try:
        parsed = parse(text)
    except Exception:  # noqa: BLE001 (it raises various errors for text that only looks like a section)
        return {}
    return {
        name.strip().lstrip("*"): " ".join((p.description or "").split())
        for p in parsed.params
        if "attribute" not in p.args
        for name in p.arg_name.split(",")
    }
