import os

import pytest

from promptkit.errors.diagnostics import Location
from promptkit.errors.sources import text_of, tree_of


class TestLocations:
    def test_a_missing_part_has_the_location_of_the_function(self, tmp_path):
        """A part that is not found in the source has the location of the function."""
        file = tmp_path / "recipe.py"
        file.write_text("@prompt\ndef f(a: int) -> str: ...\n")
        here, above = Location(str(file), 1), Location(str(file), 7)

        assert here.part("a") == Location(str(file), 2, 7, 13)
        assert here.part("return") == Location(str(file), 2, 18, 21)
        assert here.part("def") == Location(str(file), 2, 5, 6)
        assert here.part("b") is here
        assert above.part("a") is above
        assert Location("<string>", 1).part("a") == Location("<string>", 1)

    def test_a_changed_file_is_read_again(self, tmp_path):
        """Columns refer to the current content, or are 0 if the content is not valid Python."""
        file = tmp_path / "recipe.py"
        here = Location(str(file), 1)
        columns = []
        for source in ("def f(a): ...\n", "def f( a): ...  # longer\n", "def f(a:\n"):
            file.write_text(source)
            columns.append(here.part("a").column)

        assert columns == [7, 8, 0]

    def test_columns_count_characters(self, tmp_path):
        """Columns count characters and not bytes, as in editors."""
        file = tmp_path / "recipe.py"
        file.write_text("def 日本(概要: str): ...\n", encoding="utf-8")

        assert Location(str(file), 1).part("概要") == Location(str(file), 1, 8, 15)
        assert Location(str(file), 1).part("def") == Location(str(file), 1, 5, 7)

    @pytest.mark.parametrize(
        ("source", "text"),
        [
            ("x = 1\ny = x + nowhere\n", "nowhere"),
            ("x = 1 +\n", "+"),
            ("def f(:\n    pass\n", ":"),
            ("print('日本' + 3)\n", "'日本' + 3"),
            ("if True:\nx = 1\n", "x"),
        ],
        ids=["name", "end of line", "syntax", "wide", "indentation"],
    )
    def test_a_failed_import_has_the_location_that_python_reports(self, source, text, collect_diagnostics):
        """The location of a failed import is the one that Python reports."""
        (diagnostic,) = collect_diagnostics(broken=source)

        location = diagnostic.location
        line = source.splitlines()[location.line - 1]
        assert line[location.column - 1 : location.end - 1].strip() in (text, "")
        assert location.column > 0


def test_a_huge_file_is_not_read(tmp_path):
    """A huge sparse file is not read, because that would fill the memory."""
    with (tmp_path / "odd.py").open("wb") as file:
        file.truncate(16 << 30)

    assert text_of(str(tmp_path / "odd.py")) == ""
    assert tree_of(str(tmp_path / "odd.py")) is not None


@pytest.mark.parametrize("line", [0, 1])
def test_a_pipe_is_not_read(tmp_path, line):
    """A pipe is not read, because that could block forever."""
    os.mkfifo(tmp_path / "odd.py")

    assert Location(str(tmp_path / "odd.py"), line).part("def").line == line
