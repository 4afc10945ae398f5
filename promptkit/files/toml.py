"""A parser for untrusted TOML that takes linear time."""

import re
import tomllib
from typing import Any, Final

#: Strings and comments. Each alternative matches wherever its first character occurs, which makes searching
#: linear in time.
_STRING_OR_COMMENT: Final = re.compile(
    rb'''"""(?:[^"\\]|\\.|"(?!""))*+(?:"""|\Z)'''
    rb"""|'''(?:[^']|'(?!''))*+(?:'''|\Z)"""
    rb"""|"(?:[^"\\\n]|\\.)*+"?|'[^'\n]*+'?|#[^\n]*+""",
    re.DOTALL,
)

#: A key with many parts. `tomllib` takes quadratic time for such keys.
_LONG_KEY: Final = re.compile(rb"(?:\.[ \t]*+[\w-]++[ \t]*+){100}")


def parse_toml(data: bytes) -> dict[str, Any]:
    """
    Return the tables of a TOML document.

    Raises:
        ValueError: If *data* is not TOML, is not UTF-8, or is nested too deeply.
    """
    if _LONG_KEY.search(_STRING_OR_COMMENT.sub(b"x", data)):
        msg = "a key has more than 100 parts"
        raise ValueError(msg)
    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except RecursionError:
        msg = "it is nested too deeply"
        raise ValueError(msg) from None
