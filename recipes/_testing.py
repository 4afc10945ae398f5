"""What the tests of several recipes look for."""

import re


def foreign(shown: object, label: str) -> str:
    """Return what stands between the delimiters of `untrusted` with *label*, in whatever was rendered."""
    found = re.findall(rf"<({label}-[0-9a-f]{{32}})>\n(.*?)\n</\1>", str(shown), re.DOTALL)
    assert len(found) == 1, f"there is not one {label!r} in {shown}"
    return str(found[0][1])
