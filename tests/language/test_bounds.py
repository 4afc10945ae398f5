"""Limits on reading an author's iterators to the size of a reply."""

import asyncio
import re
from itertools import count, repeat
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
from promptkit.catalog.completion import Completer
from promptkit.errors import ResultError
from promptkit.fragments import bullets, numbered, table
from promptkit.language.bounds import MAX_REPLY_BYTES, TooLongError, read_all
from promptkit.language.results import convert_result
from promptkit.protocol.limits import Limits
from promptkit.protocol.lowering import lowering_for
from promptkit.protocol.revisions import REVISIONS
from tests.ids import stable_repr

#: A text so large that few repetitions exceed the limit.
LARGE = "x" * 1_000_000

MESSAGE = (
    r"more than 67,108,864 bytes, in [\d,]+ items: use fewer or shorter items, and no endless iterators$"
)


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
            TooLongError,
            match=r"^more than 10,000 bytes, in [\d,]+ items: use fewer or shorter items, and no endless",
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


class TestIterables:
    def test_finite_iterator_is_read_completely(self):
        """A finite iterator is read completely; a list is returned as it is."""
        items = ["a", "b"]

        assert read_all(items) is items
        assert read_all(iter(items)) == read_all({"a": 1, "b": 2}) == items

    @pytest.mark.parametrize(
        ("call", "prefix"),
        [
            (lambda: bullets(repeat(LARGE)), r"bullets\(items\): "),
            (lambda: numbered(repeat(LARGE)), r"numbered\(items\): "),
            (lambda: table(repeat([LARGE, LARGE])), r"table\(rows\): "),
            (lambda: table([repeat(LARGE)]), r"table\(rows\): row 1: "),
            (lambda: table([["a"]], header=repeat(LARGE)), r"table\(header\): "),
            (lambda: Workflow(repeat(*user(LARGE))), r"Workflow\(\.\.\.\) got "),
        ],
        ids=["bullets", "numbered", "table", "row", "header", "Workflow"],
    )
    def test_error_names_the_argument(self, call, prefix):
        """Functions that read an iterator reject an endless one with an error that names the argument."""
        with pytest.raises(ValueError, match=f"^{prefix}{MESSAGE}"):
            call()

    def test_endless_skill_is_reported(self):
        """An endless skill is reported."""

        @skill(description="Endless.")
        def endless():
            return repeat(LARGE)

        compiled, (diagnostic,) = endless.compile()

        assert compiled is None
        assert re.search(f"did not return text: {MESSAGE}", diagnostic.message)

    def test_endless_completion_is_rejected(self):
        """An endless completion function, synchronous or not, raises an error."""

        def generate():
            yield from repeat(LARGE)

        async def generate_async():
            for number in count():
                yield f"{number} {LARGE}"

        async def return_endless():
            return repeat(LARGE)

        for function in (generate, generate_async, return_endless):
            message = f"^complete function '{function.__name__}' returned {MESSAGE}"
            with pytest.raises(ResultError, match=message):
                Completer(function).complete("x")
            with pytest.raises(ResultError, match=message):
                asyncio.run(Completer(function).complete_async("x"))
