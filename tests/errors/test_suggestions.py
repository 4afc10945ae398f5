import pytest

from promptkit.errors.suggestions import near_file


@pytest.mark.parametrize(
    ("named", "meant"),
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
def test_a_slip_finds_its_file(named, meant, tmp_path):
    """The suggestion is a similar path in the same folder; an equal suffix alone is not similar."""
    (tmp_path / "below").mkdir()
    for name in ("tickets.csv", "b.csv", "notes.md", "below/plan.md"):
        (tmp_path / name).touch()

    assert near_file(named, tmp_path) == (f"; did you mean {meant!r}?" if meant else "")
