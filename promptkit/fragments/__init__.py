"""
Functions that build text. They return `Text`, so that their results can be nested and added.

A `str` is raw, while a `Text` is already composed, so `tag` escapes only strings. The result of a function
has the annotations of the `Text` values passed to it, and is never parsed as a template.
"""

from promptkit.fragments.answers import answer_format
from promptkit.fragments.budget import fit, optional
from promptkit.fragments.markdown import (
    bullets,
    code_block,
    json_block,
    numbered,
    quote,
    section,
    table,
)
from promptkit.fragments.text import blocks, dedent, fill, inline, lines, tag, truncate, untrusted

__all__ = [
    "answer_format",
    "blocks",
    "bullets",
    "code_block",
    "dedent",
    "fill",
    "fit",
    "inline",
    "json_block",
    "lines",
    "numbered",
    "optional",
    "quote",
    "section",
    "table",
    "tag",
    "truncate",
    "untrusted",
]
