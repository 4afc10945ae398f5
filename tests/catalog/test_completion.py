import asyncio
import functools
import gc
import subprocess
import sys
from collections.abc import Sequence
from enum import Enum, IntEnum, StrEnum
from itertools import combinations
from pathlib import Path
from textwrap import dedent
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit import Arg, prompt
from promptkit.catalog.completion import MAX_VALUES, Completer, Completion, complete, rank
from promptkit.testing import Client
from promptkit.types.parsing import reader_for
from tests.ids import stable_repr

BRANCHES = ["main", "fix/main-menu", "release-notes", "releaseNotes", "notes", "NOTEBOOK", "no-tests"]


class Tone(Enum):
    WARM = "#f80"
    COLD = "#08f"
    HOT = "#f80"  # noqa: PIE796 (an alias on purpose)


class Level(IntEnum):
    LOW = 1
    HIGH = 10


class Word(StrEnum):
    YES = "yes"
    NO = "no"


class Pair(Enum):
    LEFT = (1, 0)
    RIGHT = (0, 1)


class Loud(str):  # noqa: SLOT000 (a class that authors derive)
    def __str__(self):
        return self.upper()


#: Few characters, so that many match: both cases, word borders, and letters that casefolding lengthens.
ALPHABET = "abAB-_ 1ßſİéΣ"  # noqa: RUF001 (casefolding turns a long s into s)
TEXTS = st.text(ALPHABET, max_size=7)
CANDIDATES = st.lists(TEXTS, max_size=12)
TYPED = st.text(ALPHABET, max_size=3)


def matches(text, typed):
    """Return whether the characters of *typed* occur in *text* in order (an independent check)."""
    characters = iter(text.casefold())
    return all(char in characters for char in typed.casefold())


def span(text, typed):
    """Return the length of the shortest part of *text* that has *typed* in order, by brute force."""
    text, typed = text.casefold(), typed.casefold()
    stretches = [text[a:b] for a, b in combinations(range(len(text) + 1), 2)]
    return min(len(stretch) for stretch in stretches if matches(stretch, typed))


def is_prefix(text, typed):
    return text.casefold().startswith(typed.casefold())


def is_inside(text, typed):
    return typed.casefold() in text.casefold()


class TestRanking:
    def test_order_of_the_match_classes(self):
        """Exact matches come first, then prefixes, word starts and other matches."""
        candidates = ["no-tests", "release_notes", "Notebook", "footnote", "NOTE", "zebra", "my note"]

        expected = ("NOTE", "Notebook", "release_notes", "my note", "footnote", "no-tests")
        assert expected == rank(candidates, "note")

    @pytest.mark.parametrize(
        "candidate",
        ["x-ab", "x_ab", "x ab", "x/ab", "x.ab", "éAb", "xAb", "1-ab", "ßAB", "İ.ab", "xbaAb"],
    )
    def test_words_start_after_separators_and_at_capitals(self, candidate):
        """A match after a separator or at a capital comes before a match inside a word."""
        assert (candidate, "xabx") == rank(["xabx", candidate], "ab")

    @pytest.mark.parametrize("candidate", ["xab", "XAB", "1ab", "1Ab", "XAb"])
    def test_words_do_not_start_elsewhere(self, candidate):
        """No word starts within a run of capitals or after a digit."""
        assert ("x-ab", candidate) == rank([candidate, "x-ab"], "ab")

    @pytest.mark.parametrize("typed", ["notes", "notes-v", "NOTES-V2", "n"])
    def test_match_can_extend_into_the_next_word(self, typed):
        """A match must begin at the start of a word, but can extend into the next word."""
        assert rank(["xnotes-v2v", "release-notes-v2"], typed) == ("release-notes-v2", "xnotes-v2v")

    def test_tightest_match_comes_first(self):
        """The shortest matching part of each candidate determines its rank."""
        candidates = ["a--b", "-a---b", "a---b-a-b-b", "xab", "ba", "1a--b---a----b"]

        expected = ("xab", "a---b-a-b-b", "a--b", "1a--b---a----b", "-a---b")
        assert expected == rank(candidates, "ab")

    def test_separator_does_not_start_a_word(self):
        """A match that starts with a separator does not count as the start of a word."""
        assert rank(["x-a", "x--a"], "-a") == ("x-a", "x--a")

    def test_casefolding_in_every_script(self):
        """Matching uses casefolding, so that it works in every script."""
        assert rank(["Straßen", "STRASSE", "straße"], "strasse") == ("STRASSE", "straße", "Straßen")
        assert rank(["xssx", "x-ßx"], "SS") == ("x-ßx", "xssx")

    @pytest.mark.parametrize(
        ("candidates", "typed"),
        [([], ""), ([], "a"), (["b"], "a"), ([""], "a"), (["ab"], "ba"), (["a"], "aa"), (["ab"], "a b")],
    )
    def test_candidates_that_do_not_match_are_omitted(self, candidates, typed):
        """Candidates that do not match are omitted."""
        assert rank(candidates, typed) == ()

    def test_duplicates_are_removed(self):
        """Duplicates are removed, but values that differ in case are kept."""
        assert rank(["b", "a", "A", "b", "a"], "") == ("b", "a", "A")

    def test_candidates_can_be_any_iterable(self):
        """Candidates can be any iterable, which is read once."""
        assert rank(iter(["ab", "a", "ab"]), "") == ("ab", "a")
        assert rank(iter(["ab", "a", "ab"]), "a") == ("a", "ab")

    def test_long_values_are_ranked_quickly(self):
        """Ranking long values takes little time."""
        text = "ab" * 400

        assert (text,) == rank([text], "a" * 200)
        assert rank([text] * 100, "a" * 1_000_000) == ()


class TestRankingProperties:
    @given(CANDIDATES, TYPED)
    def test_ranking_keeps_exactly_the_matches(self, candidates, typed):
        """The ranking is a permutation of the matching candidates without duplicates."""
        expected = {text for text in candidates if matches(text, typed)}
        ranked = rank(candidates, typed)

        assert sorted(expected) == sorted(ranked)

    @given(CANDIDATES)
    def test_empty_text_matches_everything(self, candidates):
        """If nothing is typed, all candidates match, in the author's order."""
        assert tuple(dict.fromkeys(candidates)) == rank(candidates, "")

    @given(CANDIDATES, TYPED)
    def test_ranking_is_idempotent(self, candidates, typed):
        """Ranking is idempotent."""
        once = rank(candidates, typed)

        assert once == rank(once, typed)

    @given(CANDIDATES, TYPED, st.data())
    def test_other_candidates_do_not_affect_the_order(self, candidates, typed, data):
        """Removing candidates does not change the order of the others."""
        remaining = data.draw(st.sets(st.sampled_from(candidates))) if candidates else set()

        expected = tuple(text for text in rank(candidates, typed) if text in remaining)
        assert expected == rank([text for text in candidates if text in remaining], typed)

    @given(CANDIDATES, TYPED.filter(bool))
    def test_equal_matches_keep_their_order(self, candidates, typed):
        """Ranking is stable for exact matches and prefixes."""
        unique = list(dict.fromkeys(candidates))
        exact = [text for text in unique if text.casefold() == typed.casefold()]
        prefixed = [text for text in unique if is_prefix(text, typed) and text not in exact]

        assert exact + prefixed == list(rank(candidates, typed)[: len(exact + prefixed)])

    @given(
        st.lists(st.text("abA-", min_size=2, max_size=12), max_size=4),
        st.text("ab", min_size=2, max_size=3),
    )
    def test_loosest_matches_come_last(self, candidates, typed):
        """Matches with gaps come last, tighter ones first, and equally tight ones in the author's order."""
        gaps = [t for t in dict.fromkeys(candidates) if matches(t, typed) and not is_inside(t, typed)]
        expected = sorted(gaps, key=lambda text: span(text, typed))

        assert expected == list(rank(candidates, typed))[-len(gaps) or MAX_VALUES :]

    @given(CANDIDATES, TYPED.filter(bool))
    def test_prefixes_come_first(self, candidates, typed):
        """Every prefix match comes before all other matches."""
        prefixes = [is_prefix(text, typed) for text in rank(candidates, typed)]

        assert sorted(prefixes, reverse=True) == prefixes

    @given(CANDIDATES, TYPED)
    def test_case_does_not_matter(self, candidates, typed):
        """The case of the typed text does not matter."""
        assert rank(candidates, typed) == rank(candidates, typed.casefold())

    @given(st.lists(st.text("abAB-", max_size=7), max_size=12), st.text("abAB-", max_size=3))
    def test_capitals_do_not_matter(self, candidates, typed):
        """Swapping the case of the typed text does not change the result."""
        assert rank(candidates, typed) == rank(candidates, typed.swapcase())

    @given(st.text(max_size=8), st.text(max_size=3), st.text(max_size=8))
    def test_every_word_is_matched(self, before, typed, after):
        """In any script, a candidate with a word that starts with the typed text matches."""
        text = f"{before}-{typed}{after}"

        assert (text,) == rank([text], typed)


class TestCompletion:
    @given(st.integers(0, 3 * MAX_VALUES), st.sampled_from(["", "1", "12", "x"]))
    def test_number_of_values_is_limited(self, count, typed):
        """At most `MAX_VALUES` values are returned, with the total and whether there are more."""
        candidates = [str(number) for number in range(count)]
        ranked = rank(candidates, typed)

        completion = complete(candidates, typed)

        assert Completion(ranked[:MAX_VALUES], len(ranked), len(ranked) > MAX_VALUES) == completion

    def test_best_matches_are_returned(self):
        """The limit is applied after ranking."""
        candidates = [f"x{number}" for number in range(MAX_VALUES)]

        assert Completion(("x", *candidates[:-1]), MAX_VALUES + 1, has_more=True) == complete(
            [*candidates, "x"], "x"
        )

    def test_exactly_as_many_values_as_the_limit(self):
        """Exactly `MAX_VALUES` candidates are all returned; one more candidate sets `has_more`."""
        assert not complete(map(str, range(MAX_VALUES)), "").has_more
        assert complete(map(str, range(MAX_VALUES + 1)), "").has_more

    def test_no_completer(self):
        """An argument without a completer has an empty completion."""
        assert complete([], "x") == Completion() == Completion(values=(), total=0, has_more=False)


def values(source, typed="", arguments=None):
    return Completer(source).complete(typed, arguments).values


class TestFixedValues:
    @pytest.mark.parametrize(
        ("annotation", "expected"),
        [
            (Literal["python", "rust", "Go"], ("python", "rust", "Go")),
            (Tone, ("#f80", "#08f")),
            (bool, ("yes", "no")),
        ],
        ids=["Literal", "Enum", "bool"],
    )
    def test_values_of_types(self, annotation, expected):
        """The values that a type's reader accepts are offered."""
        assert expected == values(reader_for(annotation).values)

    @pytest.mark.parametrize(
        ("source", "expected"),
        [
            (["b", "a", "b"], ("b", "a")),
            (("b", "a"), ("b", "a")),
            ({"b": 1, "a": 2}, ("b", "a")),
            (iter("ba"), ("b", "a")),
            ((str(number) for number in range(3)), ("0", "1", "2")),
            (range(3), ("0", "1", "2")),
            ([1, 2.5, True, Path("a")], ("1", "2.5", "True", "a")),
            ([None, "a"], ("a",)),
            ([Loud("a")], ("a",)),
            ([Tone.COLD, Level.HIGH, Word.NO, Pair.LEFT], ("#08f", "HIGH", "no", "LEFT")),
            (Tone, ("#f80", "#08f")),
            (Pair, ("LEFT", "RIGHT")),
            ([], ()),
        ],
        ids=stable_repr,
    )
    def test_values_are_converted_to_text(self, source, expected):
        """Values are shown with `str`, and members of an enumeration as its reader accepts them."""
        assert expected == values(source)

    def test_offered_enumeration_values_can_be_parsed(self):
        """The values that are offered for an enumeration can be read back."""
        for kind in (Tone, Level, Word, Pair):
            assert list(kind) == [reader_for(kind).read(text) for text in values(kind)]

    @pytest.mark.parametrize("kind", [set, frozenset])
    def test_sets_are_sorted(self, kind):
        """Sets are sorted, because their order differs between processes."""
        assert tuple(sorted(BRANCHES)) == values(kind(BRANCHES))

    def test_candidates_are_read_once(self):
        """Candidates are read once, so a completer can reuse an iterator, and later changes are ignored."""
        source = ["a"]
        completer = Completer(source)
        from_iterator = Completer(iter(source))
        source.append("b")

        assert [each.complete("").values for each in (completer, from_iterator, from_iterator)] == [
            ("a",)
        ] * 3

    def test_fixed_values_are_ranked(self):
        """Fixed values are ranked like in `complete`."""
        assert complete(BRANCHES, "note") == Completer(BRANCHES).complete("note", {"x": "y"})

    def test_completers_with_equal_candidates_are_equal(self):
        """Completers with equal candidates are equal."""
        assert Completer(["a"]) == Completer(("a",)) != Completer(["b"])
        assert hash(Completer(["a"])) == hash(Completer(("a",)))


class TestLists:
    """In a list, the last item is completed, and each suggestion is the text of the whole list."""

    @pytest.mark.parametrize(
        ("typed", "expected"),
        [
            ("", ("red", "green", "grey")),
            ("gr", ("green", "grey")),
            ("red,", ("red, green", "red, grey")),
            ("red, ", ("red, green", "red, grey")),
            ("red, gr", ("red, green", "red, grey")),
            ("red,gr", ("red,green", "red,grey")),
            ("Red, green, ", ("Red, green, grey",)),
            ("red\n", ("red\ngreen", "red\ngrey")),
            ("red\ngree", ("red\ngreen",)),
            ("blue, gr", ("blue, green", "blue, grey")),
            ('["red", "gr', ()),
        ],
    )
    def test_last_item_is_completed(self, typed, expected):
        """Only the last item is completed, without values already chosen, and never inside JSON."""
        completion = Completer(["red", "green", "grey"], is_list=True).complete(typed)

        assert (expected, len(expected)) == (completion.values, completion.total)

    def test_value_with_a_comma(self):
        """A value with a comma is offered only if items are separated by newlines."""
        completer = Completer(["a, b", "c"], is_list=True)

        assert completer.complete("").values == ("c",)
        assert completer.complete("c\na").values == ("c\na, b",)

    @pytest.mark.parametrize("is_async", [False, True], ids=["def", "async def"])
    def test_function_receives_the_last_item(self, is_async):
        """A function receives only the last item, so that it works for single values and lists."""

        def find(typed):
            return [f"{typed}1", f"{typed}2"]

        async def find_later(typed):
            return find(typed)

        completer = Completer(find_later if is_async else find, is_list=True)

        assert completer.complete("a1, a").values == ("a1, a2",)

    @given(st.lists(st.sampled_from(["red", "green"]), max_size=3), st.sampled_from([", ", ",", "\n"]))
    def test_suggestion_can_be_parsed(self, items, separator):
        """A suggestion parses as the items that were typed plus one."""
        typed = separator.join([*items, ""])
        read = reader_for(list[Literal["red", "green", "grey"]]).read

        for value in Completer(["red", "green", "grey"], is_list=True).complete(typed).values:
            assert read(value)[:-1] == items


@pytest.mark.parametrize(
    ("annotation", "typed", "expected"),
    [
        (list[Literal["red", "green"]], "red, ", ("red, green",)),
        (set[Word], "yes, n", ("yes, no",)),
        (tuple[Literal["red", "green"], ...] | None, "gr", ("green",)),
        (Sequence[bool], "yes, ", ("yes, no",)),
        (Annotated[list[str], Arg(complete=["api", "web"])], "api, ", ("api, web",)),
        (Annotated[list[str], Arg(complete=lambda typed: [f"{typed}!"])], "a, b", ("a, b!",)),
        (Annotated[str, Arg(complete=["api", "web"])], "api, ", ()),
        (list[list[bool]], "", ()),
    ],
    ids=stable_repr,
)
def test_list_parameter_is_completed(annotation, typed, expected):
    """A list parameter is completed from its type or from the author's completer."""

    def ask(colors) -> str:
        return ""

    ask.__annotations__["colors"] = annotation

    assert Client(prompt(ask)).complete("ask", "colors", typed).values == expected


CALLS = []


def takes_nothing():
    return [*BRANCHES, CALLS.append(())]


def takes_typed(typed):
    CALLS.append((typed,))
    return BRANCHES


def takes_both(typed, arguments):
    CALLS.append((typed, arguments))
    return BRANCHES


def takes_both_by_position(typed, arguments, /, limit=10, *, host="here", **more):
    return takes_both(typed, arguments)


def with_a_default(typed, arguments="none"):
    return takes_typed(typed)


def generator(typed):
    CALLS.append((typed,))
    yield from BRANCHES


async def coroutine(typed):
    CALLS.append((typed,))
    await asyncio.sleep(0)
    return BRANCHES


async def coroutine_of_both(typed, arguments):
    CALLS.append((typed, arguments))
    return BRANCHES


async def async_generator(typed):
    CALLS.append((typed,))
    for branch in BRANCHES:
        await asyncio.sleep(0)
        yield branch


@functools.cache
def cached(typed):
    CALLS.append((typed,))
    return BRANCHES


@functools.wraps(takes_typed)
def wrapped(*args):
    return takes_typed(*args)


@functools.wraps(coroutine)
def hidden(*args):
    return coroutine(*args)


@functools.wraps(coroutine)
def run_to_completion(typed):
    return takes_typed(typed)


class Repository:
    def _branches(self, typed):
        return takes_typed(typed)

    def __call__(self, typed, arguments):  # noqa: D102
        return takes_both(typed, arguments)


class AsyncRepository:
    async def __call__(self, typed):  # noqa: D102
        return takes_typed(typed)


TYPED_ONLY, TYPED_AND_ARGUMENTS = ("note",), ("note", {"repo": "x"})

#: By kind: a function, whether it is asynchronous, and the arguments that it receives.
FUNCTIONS = {
    "()": (takes_nothing, False, ()),
    "(typed)": (takes_typed, False, TYPED_ONLY),
    "(typed, arguments)": (takes_both, False, TYPED_AND_ARGUMENTS),
    "by position": (takes_both_by_position, False, TYPED_AND_ARGUMENTS),
    "default": (with_a_default, False, TYPED_ONLY),
    "lambda": (lambda t: [*takes_typed(t)], False, TYPED_ONLY),
    "lambda with a default": (lambda t="x": takes_typed(t), False, ("x",)),
    "generator": (generator, False, TYPED_ONLY),
    "async def": (coroutine, True, TYPED_ONLY),
    "async def of both": (coroutine_of_both, True, TYPED_AND_ARGUMENTS),
    "async generator": (async_generator, True, TYPED_ONLY),
    "cached": (cached, False, TYPED_ONLY),
    "wrapped": (wrapped, False, TYPED_ONLY),
    "wrapped async def": (hidden, True, TYPED_ONLY),
    "async def run to its end": (run_to_completion, True, TYPED_ONLY),
    "method": (Repository()._branches, False, TYPED_ONLY),
    "object": (Repository(), False, TYPED_AND_ARGUMENTS),
    "async object": (AsyncRepository(), True, TYPED_ONLY),
    "partial": (functools.partial(takes_both, "first"), False, ("first", "note")),
    "partial async def": (functools.partial(coroutine_of_both, arguments={}), True, ("note", {})),
    "partial async generator": (functools.partial(async_generator, "note"), True, TYPED_ONLY),
}


@pytest.fixture(params=["sync", "async"])
def complete_either_way(request):
    """A function that completes with `complete` or with `complete_async`."""

    def complete(source, typed, arguments=None):
        completer = Completer(source)
        if request.param == "sync":
            return completer.complete(typed, arguments)
        return asyncio.run(completer.complete_async(typed, arguments))

    return complete


class TestFunctions:
    @pytest.mark.parametrize("name", FUNCTIONS)
    def test_function_receives_only_its_parameters(self, complete_either_way, name):
        """A function receives only the arguments that it takes, and its results are ranked."""
        function, is_async, expected = FUNCTIONS[name]
        cached.cache_clear()
        CALLS.clear()

        assert complete(BRANCHES, "note") == complete_either_way(function, "note", {"repo": "x"})
        assert [expected] == CALLS
        assert is_async == Completer(function).is_async

    def test_fixed_values_are_not_asynchronous(self):
        """Fixed values are not asynchronous."""
        assert not Completer(["a"]).is_async

    def test_function_receives_an_empty_mapping_without_arguments(self, complete_either_way):
        """Without chosen arguments, a function receives an empty mapping."""
        assert complete_either_way(lambda _, arguments: [arguments.get("repo", "none")], "").values == (
            "none",
        )

    def test_results_can_depend_on_chosen_arguments(self, complete_either_way):
        """A function can base its results on the chosen arguments."""
        branches = {"a": ["main"], "b": ["trunk"]}

        completion = complete_either_way(lambda _, arguments: branches[arguments["repo"]], "", {"repo": "b"})

        assert Completion(("trunk",), 1) == completion

    def test_function_can_filter_its_results(self, complete_either_way):
        """A function can filter its results itself."""
        assert Completion(("main",), 1) == complete_either_way(
            lambda t: [b for b in ["main", "x"] if t in b], "ma"
        )

    def test_results_that_do_not_match_are_dropped(self, complete_either_way):
        """Results of a function that do not match are dropped, because clients filter the same way."""
        assert Completion(("Robert",), 1) == complete_either_way(lambda _: ["Robert", "Bob"], "rob")

    def test_function_is_called_every_time(self, complete_either_way):
        """A function is called every time, because its results can change."""
        offers = [["a"], ["b"]]

        assert [complete_either_way(offers.pop, "").values for _ in range(2)] == [("b",), ("a",)]

    @pytest.mark.parametrize(
        ("result", "expected"),
        [
            (None, ()),
            ([], ()),
            (["b", None, 1], ("b", "1")),
            (Tone, ("#f80", "#08f")),
            ({"b", "a", "c"}, ("a", "b", "c")),
            ({"b": 1, "a": 2}, ("b", "a")),
            (map(str, [2, 1]), ("2", "1")),
        ],
        ids=stable_repr,
    )
    def test_results_are_converted_like_fixed_values(self, result, expected):
        """Results are converted like fixed values, and None means no values."""
        assert expected == values(lambda: result)


RETURN = r"return \['a', 'b'\], and use `async def` if it awaits"


class TestMistakes:
    @pytest.mark.parametrize(
        "source", ["main", b"main", bytearray(b"main"), 5, None, object()], ids=stable_repr
    )
    def test_source_without_values_is_rejected(self, source):
        """A source that is not a collection of values is rejected; a string would be read as its letters."""
        message = (
            rf"^complete= got {type(source).__name__}, not a list of values: "
            r"write \['a', 'b'\], or pass a function without calling it$"
        )
        with pytest.raises(TypeError, match=message):
            Completer(source)

    @pytest.mark.parametrize("called", [lambda: coroutine("a"), lambda: async_generator("a")])
    def test_called_function_is_rejected(self, called):
        """
        Passing a coroutine or generator where a function is expected is rejected, without a warning from
        Python.
        """
        with pytest.raises(TypeError, match=r"pass a function without calling it$"):
            Completer(called())
        gc.collect()

    @pytest.mark.parametrize(
        "function",
        [
            lambda typed, arguments, context: [],
            lambda typed, *, arguments: [],
            lambda *args: [],
            lambda typed, *args: [],
            functools.partial(lambda a, b, c, d: [], 1),
            map,
        ],
        ids=["three", "by keyword", "*args", "more", "partial", "in C"],
    )
    def test_unsupported_signature_is_rejected(self, function):
        """A function with an unsupported signature is rejected when the completer is created."""
        message = (
            r"^complete function '.+' must have the signature \(\), \(typed\) or \(typed, arguments\): "
            r"give defaults to its other parameters, or wrap it in a lambda$"
        )
        with pytest.raises(TypeError, match=message):
            Completer(function)

    def test_error_names_the_function(self):
        """The error names the function."""

        def branches(repository, remote, typed):
            return []

        with pytest.raises(TypeError, match=r"^complete function 'branches' must have the signature"):
            Completer(branches)
        with pytest.raises(TypeError, match=r"^complete function 'partial' must have the signature"):
            Completer(functools.partial(branches))

    @pytest.mark.parametrize("result", ["main", "", b"main", 5, True, object()], ids=stable_repr)
    def test_results_without_values_are_rejected(self, complete_either_way, result):
        """The error names the returned type and shows what to return."""

        def branches(typed):
            return result

        kind = type(result).__name__
        message = rf"^complete function 'branches' returned {kind}, not a list of values: {RETURN}$"
        with pytest.raises(TypeError, match=message):
            complete_either_way(branches, "")

    def test_function_that_returns_a_coroutine_is_rejected(self, complete_either_way):
        """A function that returns a coroutine is rejected when called, without a warning from Python."""
        with pytest.raises(TypeError, match=f"returned coroutine, not a list of values: {RETURN}$"):
            complete_either_way(lambda: coroutine(""), "")
        with pytest.raises(TypeError, match=f"returned async_generator, not a list of values: {RETURN}$"):
            complete_either_way(lambda: async_generator(""), "")
        gc.collect()

    @pytest.mark.parametrize(
        "error", [KeyError("repo"), OSError("no network"), KeyboardInterrupt()], ids=stable_repr
    )
    def test_exception_of_a_function_is_propagated(self, complete_either_way, error):
        """Exceptions from a function are propagated."""

        def branches(typed):
            raise error

        def branches_until_error(typed):
            yield "main"
            raise error

        for function in (branches, branches_until_error):
            with pytest.raises(type(error)) as caught:
                complete_either_way(function, "")
            assert error is caught.value

    def test_exception_of_an_asynchronous_function_is_propagated(self, complete_either_way):
        """Exceptions from an asynchronous function are propagated, before and after its first value."""

        async def branches(typed):
            raise KeyError(typed)

        async def branches_until_error(typed):
            yield "main"
            raise KeyError(typed)

        for function in (branches, branches_until_error):
            with pytest.raises(KeyError, match=r"^'x'$"):
                complete_either_way(function, "x")

    def test_asynchronous_function_inside_a_running_loop(self):
        """Inside a running event loop, the error says to await `complete_async`."""

        async def main():
            Completer(coroutine).complete("a")

        message = (
            r"^complete function 'coroutine' is asynchronous, and an event loop is already running: "
            r"await \.complete_async\(\.\.\.\)$"
        )
        with pytest.raises(RuntimeError, match=message):
            asyncio.run(main())

    def test_plain_function_inside_a_running_loop(self):
        """A plain function can be called inside a running event loop."""

        async def main():
            return Completer(takes_nothing).complete("main")

        assert complete(BRANCHES, "main") == asyncio.run(main())


def test_annotations_are_not_evaluated():
    """Annotations are not evaluated, because their names can exist for type checkers only."""

    def branches(typed: "Nowhere", arguments: "Nothing") -> "Never":  # noqa: F821 (that is the point)
        return [typed, *arguments]

    assert values(branches, "", {"a": "1", "b": "2"})[1:] == ("a", "b")


def test_asyncio_is_imported_lazily():
    """The first call of an asynchronous function imports asyncio, and nothing before it does."""
    script = """
    import sys
    from promptkit.catalog.completion import Completer

    async def later():
        return ["main"]

    print(Completer(lambda: ["main"]).complete("m").total, Completer(later).is_async)
    print("asyncio" in sys.modules)
    print(Completer(later).complete("m").total)
    print("asyncio" in sys.modules)
    """
    result = subprocess.run(
        [sys.executable, "-c", dedent(script)], capture_output=True, text=True, check=True
    )

    assert result.stdout.splitlines() == ["1 True", "False", "1", "True"]
