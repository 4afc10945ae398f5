"""`fit` keeps text within a budget: its laws, and which parts are kept, dropped and cut."""

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit import Text, Workflow, prompt, user
from promptkit.errors import BudgetError, ResultError
from promptkit.fragments import blocks, bullets, fill, fit, optional, section
from promptkit.fragments.budget import estimate_tokens, fit_reports
from promptkit.testing import Client, ProtocolError

#: Functions for which the size of two joined texts never exceeds the sum of their sizes.
SUBADDITIVE = {
    "characters": len,
    "tokens": estimate_tokens,
    "words": lambda text: len(text.split()),
    "constant": lambda _: 7,
    "overhead": lambda text: len(text) + 9,
    "distinct characters": lambda text: len(set(text)),
    "at most 20": lambda text: min(len(text), 20),
    "odd is larger": lambda text: 10 if len(text) % 2 else 1,
    "root": lambda text: len(text) ** 0.5,
}

#: Functions without this property.
OTHER = {
    "square": lambda text: len(text) ** 2,
    "longer is smaller": lambda text: 100 - len(text),
    "hash": lambda text: sum(map(ord, text)) * 7919 % 50,
    "gaps count": lambda text: len(text) + 30 * text.count("\n\n"),
    "negative": lambda text: -len(text),
}

EVERY_COUNT = pytest.mark.parametrize(
    "count", [*SUBADDITIVE.values(), *OTHER.values()], ids=[*SUBADDITIVE, *OTHER]
)
SUBADDITIVE_COUNTS = pytest.mark.parametrize("count", SUBADDITIVE.values(), ids=SUBADDITIVE)

#: 59 characters.
WORDS = " ".join(["one", "two", "six", "ten"] * 3 + ["one", "two", "six"])

BUDGETS = st.integers(0, 150)


@attrs.frozen
class Part:
    """
    A part to pass to `fit`, required if it has no priority.

    Its text consists of white space and of a character that no other part has, so that a result shows how
    much of each part it contains.
    """

    character: str
    shape: str
    priority: float | None
    trim: str | None

    @property
    def text(self):
        """The text."""
        return self.shape.replace("x", self.character)

    def argument(self):
        """Return the argument of `fit`."""
        if self.priority is None:
            return self.text
        return optional(self.text, priority=self.priority, trim=self.trim)


@st.composite
def part_lists(draw):
    """Generate the parts of a call."""
    shapes = st.lists(st.text("xxx \n", max_size=9), max_size=9).map("".join)
    priorities = st.none() | st.sampled_from([0, 0.25, 0.5, 1]) | st.floats(0, 1)
    trims = st.sampled_from([None, "start", "end", "middle"])
    drawn = draw(st.lists(st.tuples(shapes, priorities, trims), max_size=7))
    return [Part(chr(0x4E00 + n), f"x{shape}", *options) for n, (shape, *options) in enumerate(drawn)]


def fit_text(parts, budget, count):
    """Return the fitted text, or the error."""
    try:
        return fit(*(part.argument() for part in parts), tokens=budget, count=count).text
    except BudgetError as error:
        return error


def amounts(parts, budget, count):
    """
    Return how many characters of each part are in the fitted text; None if the required parts exceed the
    budget.
    """
    text = fit_text(parts, budget, count)
    return None if isinstance(text, BudgetError) else [text.count(part.character) for part in parts]


class TestLaws:
    @EVERY_COUNT
    @given(parts=part_lists(), budget=BUDGETS)
    def test_the_budget_is_never_exceeded(self, parts, budget, count):
        """The text is within the budget; if the required parts are not, the error has the excess."""
        required = "\n\n".join(part.text for part in parts if part.priority is None)
        text = fit_text(parts, budget, count)

        if isinstance(text, BudgetError):
            assert (text.tokens, text.excess) == (budget, count(required) - budget)
            assert text.excess > 0
        else:
            assert count(text) <= budget

    @EVERY_COUNT
    @given(parts=part_lists(), budget=BUDGETS)
    def test_parts_are_kept_in_order(self, parts, budget, count):
        """
        Parts stay in order. Required parts are whole. Optional parts are whole, by descending priority, up to
        the first that does not fit: it can be cut, and the rest are omitted.
        """
        text = fit_text(parts, budget, count)
        if isinstance(text, BudgetError):
            return

        own = [character for character in text if any(character == part.character for part in parts)]
        assert own == sorted(own)
        assert all(part.text in text for part in parts if part.priority is None)
        ranked = sorted(
            (part for part in parts if part.priority is not None), key=lambda part: -part.priority
        )
        are_whole = [part.text in text for part in ranked]
        assert are_whole == sorted(are_whole, reverse=True)
        others = ranked[sum(are_whole) :]
        partial = [part for part in others if part.character in text]
        assert partial in ([], others[:1])
        assert all(part.trim for part in partial)

    @EVERY_COUNT
    @given(parts=part_lists(), more=st.integers(0, 9))
    def test_a_large_budget_keeps_everything(self, parts, more, count):
        """A budget for all parts gives the same text as `blocks`."""
        everything = blocks(*(part.text for part in parts)).text

        assert fit_text(parts, int(count(everything)) + 1 + more, count) == everything

    @SUBADDITIVE_COUNTS
    @given(parts=part_lists(), budget=BUDGETS, more=BUDGETS)
    def test_a_larger_budget_removes_nothing(self, parts, budget, more, count):
        """A larger budget never removes anything, not even a character."""
        before, after = amounts(parts, budget, count), amounts(parts, budget + more, count)

        if before is not None:
            assert after is not None
            assert all(more >= less for less, more in zip(before, after, strict=True))

    @SUBADDITIVE_COUNTS
    @given(data=st.data(), parts=part_lists().filter(len), budget=BUDGETS)
    def test_a_higher_priority_removes_nothing_of_the_part(self, data, parts, budget, count):
        """A higher priority of a part never removes anything of it."""
        number = data.draw(st.integers(0, len(parts) - 1))
        part = parts[number]
        if part.priority is None:
            return
        raised = [*parts]
        raised[number] = attrs.evolve(part, priority=data.draw(st.floats(part.priority, 1)))

        before, after = amounts(parts, budget, count), amounts(raised, budget, count)
        assert (before is None) == (after is None)
        assert before is None or after[number] >= before[number]

    @EVERY_COUNT
    @given(parts=part_lists(), budget=BUDGETS)
    def test_the_number_of_counts_is_limited(self, parts, budget, count):
        """The counter is called at most twice per part, and 20 times more if a part can be cut."""
        calls = []
        fit_text(parts, budget, lambda text: calls.append(text) or count(text))

        limit = max(2 * len(parts), 1) + 20 * any(part.trim and part.priority is not None for part in parts)
        assert len(calls) <= limit

    @given(
        shape=st.text("x \n", max_size=300),
        budget=st.integers(40, 200),
        trim=st.sampled_from(["start", "end", "middle"]),
    )
    def test_cut_text_uses_the_budget(self, shape, budget, trim):
        """A cut at a word or line loses at most a quarter of the text that fits."""
        part = Part("x", f"x{shape}", 0.5, trim)
        text = fit_text([part], budget, len)

        notice = len("[... 100 characters cut ...]\n\n")
        assert len(part.text) <= budget or len(text) >= (budget - notice) * 3 // 4 - 2


class TestFit:
    def test_parts_of_low_priority_are_dropped(self):
        """The parts of the highest priority that fit are kept, in the written order."""
        parts = [
            "task",
            optional("history", priority=0.3),
            optional("first", priority=0.9),
            optional("second", priority=0.8),
        ]

        assert fit(*parts, tokens=100, count=len).text == "task\n\nhistory\n\nfirst\n\nsecond"
        assert fit(*parts, tokens=27, count=len).text == "task\n\nfirst\n\nsecond"
        assert fit(*parts, tokens=10, count=len).text == "task"
        assert fit(*parts, tokens=4, count=len).text == "task"

    def test_fit_stops_at_the_first_part_that_does_not_fit(self):
        """A part that would fit is dropped if a more important one does not fit."""
        parts = [optional("a" * 20, priority=1), optional("b", priority=0)]

        assert fit(*parts, tokens=10, count=len) == Text("")

    def test_equal_priorities_are_kept_in_written_order(self):
        """Of parts with the same priority, the last ones are dropped."""
        parts = [optional(letter) for letter in "abcd"]

        assert fit(*parts, tokens=4, count=len).text == "a\n\nb"

    @pytest.mark.parametrize(
        ("trim", "expected"),
        [
            ("end", "one two six ten one two\n[... 36 characters cut ...]"),
            ("start", "[... 36 characters cut ...]\ntwo six ten one two six"),
            ("middle", "one two six\n[... 37 characters cut ...]\none two six"),
        ],
    )
    def test_the_part_that_does_not_fit_is_cut(self, trim, expected):
        """The first part that does not fit is cut at a word, on the given side; later ones are dropped."""
        parts = [
            "task",
            optional(WORDS, trim=trim),
            optional("b", priority=0.1, trim="end"),
        ]

        assert fit(*parts, tokens=58, count=len).text == f"task\n\n{expected}"

    @pytest.mark.parametrize("text", ["one two", "\n" * 90 + "one"])
    def test_a_part_is_dropped_if_nothing_is_left(self, text):
        """A part is dropped if only the notice, or blank text, would be left of it."""
        tokens = 12 if text == "one two" else 50

        assert fit("task", optional(text, trim="end"), tokens=tokens, count=len).text == "task"

    def test_blank_parts_are_omitted(self):
        """Blank parts are omitted, whether they are required or optional."""
        assert fit("a", None, *[False], optional(None), optional(" \n"), "", tokens=1, count=len) == Text("a")
        assert fit(tokens=0) == Text("")

    def test_the_default_counts_four_characters_as_a_token(self):
        """By default, four characters are a token."""
        assert fit("a" * 8, optional("b"), tokens=2).text == "a" * 8
        with pytest.raises(BudgetError):
            fit("a" * 9, tokens=2)

    def test_fragments_are_parts(self):
        """Fragments are parts, and the result has no annotations."""
        text = fit(section("A", bullets(["b"])), optional(Text("c", priority=1)), tokens=100)

        assert text == Text("## A\n\n- b\n\nc")
        assert not text.annotated
        assert user(text) == Workflow(user("## A\n\n- b\n\nc").messages)


def test_tokens_are_estimated():
    """Four characters count as one token, rounded up."""
    assert [estimate_tokens(text) for text in ("", "a", "abcd", "abcde")] == [0, 1, 1, 2]


class TestErrors:
    def test_required_parts_exceed_the_budget(self):
        """The error has the budget and the excess; for a client, it is an error in its input."""

        @prompt
        def summarize(text: str, notes: str = ""):
            return user(fit("Summarize.", text, optional(notes), tokens=10))

        assert str(summarize.render("a" * 28).messages[0].content) == f"Summarize.\n\n{'a' * 28}"
        with pytest.raises(BudgetError) as caught:
            summarize.render("a" * 128, "b")
        assert (caught.value.tokens, caught.value.excess) == (10, 25)
        with (
            pytest.raises(ProtocolError, match="is 25 tokens longer than its budget of 10") as reply,
            Client(summarize) as client,
        ):
            client.get_prompt("summarize", {"text": "a" * 128})
        assert reply.value.code == -32602

    def test_without_arguments_the_text_is_the_authors(self):
        """If the prompt takes no arguments, its author caused the error, which stays on the server."""

        @prompt
        def summarize():
            return fit("a" * 100, tokens=10)

        with pytest.raises(ProtocolError) as reply, Client(summarize) as client:
            client.get_prompt("summarize")
        assert reply.value.code == -32603

    @pytest.mark.parametrize(
        ("call", "error"),
        [
            (lambda: fit("a", 3, tokens=1), "fit(...): part 2: expected text, not int"),
            (lambda: fit(user("a"), tokens=1), "fit(...): part 1: expected text, not Workflow"),
            (lambda: fit(["a"], tokens=1), "fit(...): part 1: expected text, not list"),
            (lambda: fit("a", tokens="1"), "'str' object cannot be interpreted as an integer"),
            (lambda: fit("a", tokens=1.5), "'float' object cannot be interpreted as an integer"),
            (
                lambda: fit("a", tokens=1, count=list),
                "fit(count) returned list: it must return a number of tokens",
            ),
            (lambda: optional(3), "optional(text): expected text, not int"),
            (lambda: optional("a", priority=None), "optional(priority=None): pass a number from 0 to 1"),
            (lambda: optional("a", priority="1"), "priority must be a number from 0 to 1, not str"),
            (
                lambda: section("a", optional("b")),
                "expected text, not OptionalPart; pass optional(...) to fit(...)",
            ),
            (lambda: fill("{{a}}", a=optional("b")), "not OptionalPart; pass optional(...) to fit(...)"),
            (lambda: user(optional("b")), "(optional('b', priority=0.5)): pass optional(...) to fit(...)"),
        ],
    )
    def test_values_of_other_types(self, call, error):
        """Values of other types are rejected, and so is `optional` anywhere except in `fit`."""
        with pytest.raises(TypeError) as caught:
            call()

        assert error in str(caught.value)

    @pytest.mark.parametrize(
        "options", [{"priority": 2}, {"priority": -0.1}, {"trim": "tail"}, {"trim": ""}], ids=repr
    )
    def test_invalid_options(self, options):
        """Priorities are from 0 to 1, and there are three ways to cut."""
        with pytest.raises(ValueError, match=r"priority is|optional\(trim="):
            optional("a", **options)

    def test_an_optional_part_in_an_f_string(self):
        """An optional part in an f-string is rejected when the prompt renders."""

        @prompt
        def show():
            return f"Look: {optional('a')}"

        with pytest.raises(ResultError):
            show.render()


class TestReports:
    @pytest.fixture
    def reports(self):
        """The reports of the calls in a test."""
        token = fit_reports.set([])
        yield fit_reports.get()
        fit_reports.reset(token)

    def test_dropped_and_cut_parts_are_reported(self, reports):
        """A report has the budget, the size, the dropped parts and the cut ones, with the characters left."""
        parts = ["task", optional("b", priority=0.1), None, optional(WORDS, trim="end")]
        text = fit(*parts, tokens=58, count=len).text

        (report,) = reports
        assert (report.budget, report.size) == (58, len(text))
        assert [(part.position, part.text, part.priority) for part in report.dropped] == [(2, "b", 0.1)]
        assert [(part.position, part.priority, part.cut_length) for part in report.cut] == [
            (4, 0.5, len("one two six ten one two"))
        ]

    def test_nothing_is_reported_if_everything_fits(self, reports):
        """If everything fits, there is no report."""
        fit("a", optional("b"), tokens=100)

        assert reports == []
