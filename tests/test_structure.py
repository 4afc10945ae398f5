"""The figures that keep the package easy to find one's way in."""

import ast

import pytest

from tests.structure import Figure, cycles, definitions, figures, report


def test_figures_are_kept():
    """
    No figure is above its bound; if one is, every place is named.
    """
    kept = figures()

    assert all(figure.kept for figure in kept), report(kept, {})


def test_a_report_names_the_places_of_what_is_exceeded():
    """
    A table of all figures, and below it the places that count where there are too many.
    """
    few, many = Figure("few", 1, 2, ["a.py"]), Figure("many", 2, 0, ["b.py", "c.py"])

    assert report([few, many], {"lines": "7"}).splitlines() == [
        "figure  found  at most",
        "few     1      2",
        "many    2      0        exceeded",
        "lines   7",
        "",
        "many:",
        "  b.py",
        "  c.py",
    ]


@pytest.mark.parametrize(
    ("graph", "found"),
    [
        ({"a": {"b", "c"}, "b": {"c"}}, []),
        ({"a": {"b"}, "b": {"a"}, "c": {"a"}}, [("a", "b")]),
        ({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"e"}, "e": {"d"}}, [("a", "b", "c"), ("d", "e")]),
    ],
    ids=["none", "two", "three, and two more"],
)
def test_cycles_are_found(graph, found):
    """
    A cycle is found whatever leads into it.
    """
    assert cycles(graph) == found


def test_private_definitions():
    """
    Private is what is called so, and what a private class holds, but not what a private function holds.
    """
    source = """
    def public():
        def inner(): ...
    def _private():
        def inner_of_private(): ...
    class Public:
        def method(self): ...
        def _own(self): ...
    class _Private:
        def method_of_private(self): ...
    """
    found = {node.name: private for node, private in definitions(ast.parse(f"if True:{source}"))}
    hidden = [name for name, private in found.items() if private]

    assert hidden == ["_private", "_own", "_Private", "method_of_private"]
