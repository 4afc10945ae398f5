"""Ids of parametrized values that are the same in each run, despite different addresses and hashes."""

import re


def stable_repr(value) -> str:
    """Return the `repr` of *value* without addresses and test modules, with the items of a set sorted."""
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(map(repr, value)))}}}"
    return re.sub(r" at 0x[0-9a-f]+|\btests\.(?:\w+\.)+", "", repr(value))
