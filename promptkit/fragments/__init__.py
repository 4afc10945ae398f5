"""
Fragments: functions that build text, each returning `Text`, so that they nest and add.

A `str` is raw and a `Text` already composed: `tag` escapes only the first. What is no text is a
`TypeError` that says where. A fragment has the annotations of the `Text` that it is made of; where
these differ, it is a `ValueError`. No text is ever read again as a template.
"""

from promptkit.fragments.markdown import bullets, code_block, json_block, numbered, quote, section, table
from promptkit.fragments.tags import tag, untrusted
from promptkit.fragments.text import dedent, truncate

__all__ = [
    "bullets",
    "code_block",
    "dedent",
    "json_block",
    "numbered",
    "quote",
    "section",
    "table",
    "tag",
    "truncate",
    "untrusted",
]
