"""Ranking of text by its words."""

import pytest

from promptkit.catalog.ranking import Ranking, words_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Use it when the user asks to review code", ["review", "code"]),
        ("Reviews, reviewing and reviewed", ["review", "review", "review"]),
        ("policies and a policy", ["policy", "policy"]),
        ("stopping stops", ["stop", "stop"]),
        ("代码审查", ["代", "码", "审", "查"]),
        ("Größe", ["gröss"]),
    ],
)
def test_words(text, words):
    """
    Common words are dropped, endings are removed, and text in scripts without spaces is split into
    characters.
    """
    assert words_of(text) == words


def test_rank():
    """
    The string with the rarest words of the request is first, and strings without any of its words are
    omitted.
    """
    ranking = Ranking(["review code", "write code", "plan a trip"])

    assert [number for _, number in ranking.rank("please review my code")] == [0, 1]
    assert ranking.rank("bake bread") == []


def test_pairs():
    """Equal strings have a cosine of 1, and each pair is yielded once."""
    ranking = Ranking(["review code", "review code", "plan a trip"])
    assert [(round(cosine, 6), *numbers) for cosine, *numbers in ranking.similar_pairs(0.5)] == [(1, 0, 1)]


def test_characters_are_compared():
    """Chinese text is compared by its characters."""
    assert [*Ranking(["审查代码", "审查代码的质量", "写测试"]).similar_pairs(0.5)]
