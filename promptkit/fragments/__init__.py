"""
Functions that build text. Each returns a `Text`, so they nest and can be added.

A `str` is raw, a `Text` already composed: `tag` escapes only the first. A fragment has the
annotations of the `Text` that it is made of. No text is ever read again as a template.
"""

from promptkit.fragments.markdown import (
    bullets,
    code_block,
    json_block,
    lines,
    numbered,
    quote,
    section,
    table,
)
from promptkit.fragments.text import dedent, tag, truncate, untrusted

__all__ = [
    "bullets",
    "code_block",
    "dedent",
    "json_block",
    "lines",
    "numbered",
    "quote",
    "section",
    "table",
    "tag",
    "truncate",
    "untrusted",
]
