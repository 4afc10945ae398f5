"""Helpers for the tests of several recipes."""

import re


def extract_untrusted(rendering: object, label: str) -> str:
    """Return the text in the block that `untrusted` labels *label*. There must be exactly one such block."""
    matches = re.findall(rf"<({label}-[0-9a-f]{{32}})>\n(.*?)\n</\1>", str(rendering), re.DOTALL)
    assert len(matches) == 1, f"expected one {label!r} block, got {len(matches)} in {rendering}"
    return str(matches[0][1])
