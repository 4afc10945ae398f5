"""
Write docs/api.json, the public API of a version: `python -m docs.api`, before a version is tagged.

tests/docs/test_api.py compares the code with it.
"""

import json
import sys
from typing import Any, Final

from docs.render_reference import ROOT, constructor_of, public_objects
from promptkit.version import VERSION

FILE: Final = ROOT / "docs" / "api.json"

#: The parameters of a callable by name: their kind, and whether they are required.
Parameters = dict[str, tuple[str, bool]]


def describe() -> dict[str, Any]:
    """
    Return the version, and the parameters of each public object; None for an object that users do not call.
    """
    objects = {path: _parameters(node, value) for path, node, value in public_objects()}
    return {"version": VERSION, "objects": dict(sorted(objects.items()))}


def _parameters(node: Any, value: Any) -> Parameters | None:
    constructor = constructor_of(node, value)
    if constructor is None:
        return None
    bound = [parameter for parameter in constructor.parameters if parameter.name not in ("self", "cls")]
    return {each.name: (str(each.kind and each.kind.value), each.required) for each in bound}


def breaking_changes(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return a description of each change from *old* to *new* that breaks code written for the *old* API."""
    changes = []
    for path, before in old.items():
        if path not in new:
            changes.append(f"{path} was removed")
            continue
        after = new[path] or {}
        for name, (kind, is_required) in (before or {}).items():
            if name not in after:
                changes.append(f"{path}: the parameter {name!r} was removed")
            elif after[name][0] != kind:
                changes.append(f"{path}: the parameter {name!r} is {after[name][0]}, no longer {kind}")
            elif after[name][1] and not is_required:
                changes.append(f"{path}: the parameter {name!r} is required")
        changes += [
            f"{path}: the new parameter {name!r} is required"
            for name, (_, is_required) in after.items()
            if is_required and name not in (before or {})
        ]
        positional = [name for name, (kind, _) in (before or {}).items() if kind.startswith("positional")]
        if [name for name in after if name in positional] != [name for name in positional if name in after]:
            changes.append(f"{path}: positional parameters have another order")
    return changes


def main() -> int:
    """Write the file, and return the exit code."""
    FILE.write_text(json.dumps(describe(), indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
