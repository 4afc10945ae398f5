import pytest

from promptkit.errors.suggestions import near_file


@pytest.mark.parametrize(
    ("path", "suggestion"),
    [
        ("tikets.csv", "tickets.csv"),
        ("tickets.cvs", "tickets.csv"),
        ("Notes.md", "notes.md"),
        ("below/plna.md", "below/plan.md"),
        ("a.csv", None),
        ("nosuch.csv", None),
        ("no/such/tickets.csv", None),
        ("", None),
        ("/", None),
    ],
)
def test_a_misspelt_path_finds_the_similar_file(path, suggestion, tmp_path):
    """The suggestion is a similar path in the same folder; an equal suffix alone is not similar."""
    (tmp_path / "below").mkdir()
    for name in ("tickets.csv", "b.csv", "notes.md", "below/plan.md"):
        (tmp_path / name).touch()

    assert near_file(path, tmp_path) == (f"; did you mean {suggestion!r}?" if suggestion else "")
