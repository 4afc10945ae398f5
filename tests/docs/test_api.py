"""The public API, compared with that of the last tagged version in docs/api.json."""

import json

import pytest

pytest.importorskip("griffe")

from docs import api
from promptkit.version import VERSION

RELEASED = json.loads(api.FILE.read_text(encoding="utf-8"))


def test_no_public_name_breaks_within_a_minor_version():
    """
    Every call of the public API of the last version still works, until the minor version changes.

    After an intended change before a first tag, and for each tag, run `python -m docs.api`.
    """
    is_same_minor = RELEASED["version"].split(".")[:2] == VERSION.split(".")[:2]
    current = json.loads(json.dumps(api.describe()))

    assert len(current["objects"]) > 150
    assert not is_same_minor or api.breaking_changes(RELEASED["objects"], current["objects"]) == []


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        ({"a": None}, {}, "a was removed"),
        ({"a": {"x": ["p", False]}}, {"a": {}}, "'x' was removed"),
        ({"a": {"x": ["p", False]}}, {"a": None}, "'x' was removed"),
        ({"a": {"x": ["p", False]}}, {"a": {"x": ["p", True]}}, "'x' is required"),
        ({"a": {"x": ["p", False]}}, {"a": {"x": ["keyword-only", False]}}, "no longer p"),
        ({"a": {}}, {"a": {"x": ["p", True]}}, "new parameter 'x' is required"),
        ({"a": None}, {"a": {"x": ["p", False]}}, None),
        ({"a": {}}, {"a": {}, "b": {}}, None),
        (
            {"a": {"x": ["positional or keyword", False], "y": ["positional or keyword", False]}},
            {"a": {"y": ["positional or keyword", False], "x": ["positional or keyword", False]}},
            "another order",
        ),
    ],
)
def test_breaking_changes(old, new, change):
    """Calls that no longer work are breaking changes; additions are not."""
    changes = api.breaking_changes(old, new)

    assert changes == [] if change is None else change in changes[0]
