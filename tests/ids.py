"""How values are named in the ids of tests: equal in each run, whatever their addresses and hashes."""

import re


def shown(value) -> str:
    """Return the `repr` of *value* without addresses and modules of tests; the items of a set in order."""
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(map(repr, value)))}}}"
    return re.sub(r" at 0x[0-9a-f]+|\btests\.(?:\w+\.)+", "", repr(value))
