"""
Functions that build text. Each returns a `Text`, so they nest and can be added.

A `str` is raw, a `Text` already composed: `tag` escapes only the first. A fragment has the
annotations of the `Text` that it is made of. No text is ever read again as a template.
"""

from promptkit.fragments.answers import answer_format
from promptkit.fragments.filling import fill
from promptkit.fragments.markdown import (
    bullets,
    code_block,
    json_block,
    numbered,
    quote,
    section,
    table,
)
from promptkit.fragments.text import blocks, dedent, inline, lines, tag, truncate, untrusted

__all__ = [
    "answer_format",
    "blocks",
    "bullets",
    "code_block",
    "dedent",
    "fill",
    "inline",
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
