import pytest

from promptkit.errors.suggestions import is_misspelling_of, nearest


@pytest.mark.parametrize(
    ("name", "known", "suggestion"),
    [
        ("abd", ["abc"], "abc"),  # two thirds in common
        ("abde", ["abcx"], None),
        ("dcba", ["abcd"], None),  # the letters are in another order
        ("git", ["git_commit"], "git_commit"),
        ("gi", ["git_commit"], None),
        ("log", ["daily-log"], "daily-log"),
        ("log", ["catalogs"], None),  # not a word of the name
    ],
)
def test_limits_of_similarity(name, known, suggestion):
    """
    A known name is suggested if both names share two thirds of the letters of the longer one, in order. It is
    also suggested if it starts with an unknown name of at least three letters, or has that name as a word.
    """
    assert nearest(name, known) == suggestion


@pytest.mark.parametrize(
    ("name", "other", "misspelt"),
    [
        ("form", "from", True),
        ("FORM", "from", True),
        ("names", "name", True),
        ("name", "names", True),
        ("cat", "cats", True),
        ("dog", "cat", False),
        ("named", "names", True),
        ("cat", "cut", False),
        ("cab", "abc", True),
        ("review", "reviewing", False),
        ("reviewer", "review", False),
        ("abcdefghij", "abcdefghXY", True),  # a ratio of exactly 0.8
        ("abcdefghij", "abcdefgXYZ", False),
    ],
)
def test_misspelt_names(name, other, misspelt):
    """
    A misspelt name differs in length by at most one letter, and has the same letters in another order or
    about one wrong letter.
    """
    assert is_misspelling_of(name, other) is misspelt
