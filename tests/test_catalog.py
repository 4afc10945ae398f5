import asyncio
from collections.abc import Mapping

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit import ArgumentErrors, Context, PromptkitError, UnknownPrompt, assistant, prompt, user
from promptkit.catalog import Catalog, CompiledPrompt
from promptkit.diagnostics import Diagnostic, Location, Rule


@prompt
def review(diff: str, depth: int = 1) -> str:
    """Review."""
    return f"Review to depth {depth}: {diff}"


@prompt(title="Planning", timeout=5, cache=60, tags=["work"])
async def plan(goal: str, context: Context) -> str:
    """Plan."""
    return f"{context.client_name or 'someone'} wants {goal}"


@prompt
def ask():
    """Ask."""
    yield user("What now?")
    yield assistant("Wait.")


CATALOG = Catalog((review.compiled, plan.compiled, ask.compiled))

ERROR = Diagnostic(Rule.BAD_NAME, "bad", "change it", Location("a.py", 1))
WARNING = Diagnostic(Rule.NO_PROMPTS, "empty", "add one", Location("b.py"))


def called(name):
    """A compiled prompt of that name."""
    return attrs.evolve(review.compiled, name=name)


class TestCatalog:
    def test_it_is_a_mapping_from_names_to_prompts(self):
        """
        Everything that a mapping does, by name.
        """
        assert isinstance(CATALOG, Mapping)
        assert CATALOG["review"] is review.compiled
        assert len(CATALOG) == 3
        assert "plan" in CATALOG
        assert "plam" not in CATALOG
        assert CATALOG.get("plam") is None
        assert dict(CATALOG.items())["ask"] is ask.compiled

    def test_it_is_sorted(self):
        """
        Every client sees the prompts in one order, however they were found.
        """
        assert list(CATALOG) == ["ask", "plan", "review"]
        assert [compiled.name for compiled in CATALOG.prompts] == ["ask", "plan", "review"]
        assert list(CATALOG.values()) == list(CATALOG.prompts)

    @given(st.permutations(["a", "b", "B", "a-b", "_", "a1", "a10", "a2"]))
    def test_the_order_does_not_depend_on_the_input(self, names):
        """
        Any order of the same prompts makes an equal catalog.
        """
        made = Catalog(map(called, names))

        assert list(made) == sorted(names)
        assert made.prompts == Catalog(map(called, sorted(names))).prompts

    def test_it_is_immutable(self):
        """
        Neither its prompts nor theirs can be replaced while it is served.
        """
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            CATALOG.prompts = ()
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            CATALOG["review"].name = "other"
        with pytest.raises(TypeError, match="does not support item assignment"):
            CATALOG["other"] = review.compiled

    def test_nothing_below_it_can_be_changed_either(self):
        """
        What is sent with every listing is no dictionary that somebody could write to.
        """
        made = Catalog((prompt(tags=["work"])(review.__wrapped__).compiled,))

        with pytest.raises(TypeError):
            made["review"].meta["promptkit/tags"] = []

    def test_an_empty_one_has_nothing(self):
        """
        No prompts are a catalog too.
        """
        assert (len(Catalog()), list(Catalog()), Catalog().healthy) == (0, [], True)
        with pytest.raises(UnknownPrompt, match=r"^unknown prompt 'review'$"):
            Catalog()["review"]

    @pytest.mark.parametrize(
        ("name", "nearest"),
        [("reviw", "review"), ("REVIEW", "review"), ("zzz", None), ("", None)],
        ids=["typo", "case", "strange", "empty"],
    )
    def test_an_unknown_name_finds_its_neighbour(self, name, nearest):
        """
        Asking for what there is not says what was probably meant, as KeyError and as our own.
        """
        with pytest.raises(UnknownPrompt) as caught:
            CATALOG[name]

        assert (caught.value.name, caught.value.nearest) == (name, nearest)
        assert isinstance(caught.value, KeyError)
        assert isinstance(caught.value, PromptkitError)
        assert caught.value.__cause__ is None
        assert caught.value.__suppress_context__

    @pytest.mark.parametrize(
        ("diagnostics", "healthy"),
        [((), True), ((WARNING,), True), ((ERROR,), False), ((WARNING, ERROR), False)],
        ids=["none", "warning", "error", "both"],
    )
    def test_only_errors_make_it_ill(self, diagnostics, healthy):
        """
        A warning keeps nothing from being served.
        """
        assert Catalog((), diagnostics).healthy is healthy


class TestRender:
    def test_it_renders_for_what_a_client_sends(self):
        """
        By name, with arguments as text.
        """
        assert CATALOG.render("review", {"diff": "+a", "depth": "3"}) == user("Review to depth 3: +a")
        assert CATALOG.render("plan", {"goal": "rest"}) == user("someone wants rest")
        assert CATALOG.render("ask") == user("What now?") + assistant("Wait.")

    def test_it_reports_what_is_wrong(self):
        """
        An unknown prompt, and arguments that do not fit.
        """
        with pytest.raises(UnknownPrompt, match=r"did you mean 'ask'\?$"):
            CATALOG.render("aks")
        with pytest.raises(ArgumentErrors, match="'depth' is 'x', not a whole number; 'diff' is missing"):
            CATALOG.render("review", {"depth": "x"})


class TestCompiledPrompt:
    def test_it_holds_what_is_served(self):
        """
        All that listing and rendering need, and nothing of the wire.
        """
        made = plan.compiled

        assert isinstance(made, CompiledPrompt)
        assert (made.name, made.title, made.description) == ("plan", "Planning", "Plan.")
        assert [argument.name for argument in made.arguments.ordered] == ["goal"]
        assert (made.context, made.timeout, made.cache) == ("context", 5, 60)
        assert made.meta == {"promptkit/tags": ["work"]}
        assert made.location == plan.location

    def test_binding_reads_and_adds_the_context(self):
        """
        What a client sent becomes the function's keyword arguments.
        """
        zed = Context("Zed")

        assert review.compiled.bind({"diff": "+a", "depth": "3"}) == {"diff": "+a", "depth": 3}
        assert plan.compiled.bind({"goal": "rest"}) == {"goal": "rest", "context": Context()}
        assert plan.compiled.bind({"goal": "rest"}, zed) == {"goal": "rest", "context": zed}
        assert review.compiled.bind({"diff": "+a"}, zed) == {"diff": "+a"}

    def test_it_renders_with_and_without_await(self):
        """
        Both forms take arguments and context, for every kind of function.
        """
        zed = Context("Zed")

        async def awaited():
            return [
                await plan.compiled.render_async({"goal": "rest"}, zed),
                await review.compiled.render_async({"diff": "+a"}),
            ]

        assert asyncio.run(awaited()) == [user("Zed wants rest"), user("Review to depth 1: +a")]
        assert plan.compiled.render({"goal": "rest"}, zed) == user("Zed wants rest")

    def test_it_is_a_value(self):
        """
        Equal prompts compile to equal values.
        """
        assert prompt(review.__wrapped__).compiled == review.compiled
        assert called("other") != review.compiled
