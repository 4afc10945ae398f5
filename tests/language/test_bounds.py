"""Limits on reading an author's iterators to the size of a reply."""

import re
from itertools import repeat
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit import (
    EmbeddedResource,
    Message,
    ResourceLink,
    Text,
    Workflow,
    cache_point,
    skill,
    system,
    user,
)
from promptkit.language.bounds import MAX_REPLY_BYTES, TooLongError
from promptkit.language.results import convert_result
from promptkit.protocol.limits import Limits
from promptkit.protocol.lowering import lowering_for
from promptkit.protocol.revisions import REVISIONS
from tests.ids import stable_repr

#: A text so large that few repetitions exceed the limit.
LARGE = "x" * 1_000_000

MESSAGE = r"more than 67,108,864 bytes, in [\d,]+ items: make it finite, or return less$"


def test_default_limit():
    """Outside a server, the limit is the same as a server's default."""
    assert Limits().reply == MAX_REPLY_BYTES


BLOCKS = (
    st.text(max_size=20)
    | st.builds(EmbeddedResource, st.just("a:b"), text=st.text(max_size=20))
    | st.builds(EmbeddedResource, st.just("a:b"), blob=st.binary(min_size=1, max_size=20))
)


@given(st.lists(BLOCKS, max_size=20))
def test_content_within_the_limit_is_accepted(parts):
    """The counted size never exceeds the size of the encoded reply, in any revision."""
    workflow = convert_result(parts)
    prompt = SimpleNamespace(description=None)
    sizes = [len(lowering_for(revision).result(prompt, workflow)) for revision in REVISIONS.values()]

    assert convert_result(parts, min(sizes)) == workflow


class TestEndlessResults:
    @pytest.mark.parametrize(
        "value",
        [
            "x",
            Text("x" * 99, priority=1),
            EmbeddedResource("a:b", text="x" * 99),
            EmbeddedResource("a:b", blob=b"x" * 99),
            ResourceLink("a:b", name="x" * 99),
            Message("assistant", "x"),
            user("a") + user("b"),
            system("x"),
            cache_point(),
        ],
        ids=stable_repr,
    )
    @pytest.mark.parametrize(
        "wrap",
        [
            repeat,
            lambda value: [repeat(value)],
            lambda value: ("a", [iter([repeat(value)])]),
            lambda v: repeat([v]),
        ],
        ids=["iterator", "in a list", "nested", "lists"],
    )
    def test_endless_iterator_is_rejected(self, value, wrap):
        """An endless iterator of any content, nested at any depth, is read up to the limit."""
        with pytest.raises(
            TooLongError, match=r"^more than 10,000 bytes, in [\d,]+ items: make it finite, or return less$"
        ):
            convert_result(wrap(value), 10_000)

    def test_endless_sequence_is_rejected(self):
        """An endless sequence class of an author is limited, too."""

        class Endless(list):
            def __iter__(self):
                return repeat("x")

        with pytest.raises(TooLongError):
            convert_result(("a", "b", Endless()), 10_000)

    def test_repeated_message_counts_each_time(self):
        """A message that is repeated counts every time, although it takes memory only once."""
        with pytest.raises(TooLongError):
            convert_result(Workflow([*user(LARGE)] * 1000))

    def test_media_count_with_their_encoded_size(self, png):
        """Media count with their encoded size."""
        from promptkit import Image

        with pytest.raises(TooLongError):
            convert_result([Image(png)] * 1000, 500 * len(png))


def test_endless_skill_is_reported():
    """An endless skill is reported."""

    @skill(description="Endless.")
    def endless():
        return repeat(LARGE)

    compiled, (diagnostic,) = endless.compile()

    assert compiled is None
    assert re.search(f"did not return text: {MESSAGE}", diagnostic.message)
