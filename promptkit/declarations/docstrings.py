"""The summary and the descriptions of parameters in an author's docstring."""

import inspect
import re
from typing import Final

# Patterns are compiled on first use: compiling them takes as long as importing a module.

#: Whitespace within one line. With ``\s*``, a run of blank lines would take quadratic time.
_BLANKS: Final = r"[^\S\n]*"

#: Start of a docstring's description of parameters. Without a match, the slow parser is not imported.
_PARAMETERS: Final = (
    rf"^{_BLANKS}(?:[:@](?:param|arg|argument|parameter|key)\b"
    rf"|(?:Args|Arguments|Params|Parameters|Keyword Args){_BLANKS}(?::{_BLANKS})?$)"
)

#: Titles of the sections that end a docstring's prose, in Google and NumPy style.
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
    """Whether a docstring may have more than a summary."""
    return not {"\n", ":", "@"}.isdisjoint(text or "")


def read_summary(text: str | None) -> str | None:
    """Return the first paragraph of a docstring, on one line."""
    text = inspect.cleandoc(text or "")
    section = re.search(_SECTION, text, re.MULTILINE) if _may_have_sections(text) else None
    prose = text[: section.start()] if section else text
    return " ".join(prose.partition("\n\n")[0].split()) or None


def read_descriptions(text: str | None) -> dict[str, str]:
    """Return the description of each parameter from a docstring in Google, NumPy or Sphinx style."""
    return {name: description for name, description in _parameters_in(text).items() if description}


def _parameters_in(text: str | None) -> dict[str, str]:
    """Return the description of each parameter that a docstring names, ``""`` if it has only a type."""
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
