import asyncio
import copy
import pickle
from collections.abc import Mapping
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from promptkit import (
    Arg,
    ArgumentsError,
    Context,
    PromptkitError,
    UnknownPromptError,
    assistant,
    prompt,
    resource,
    user,
)
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.errors import UnknownResourceError
from promptkit.errors.diagnostics import Diagnostic, Location
from promptkit.errors.rules import Rule


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
WARNING = Diagnostic(Rule.MISSING_F_PREFIX, "it is sent", "write f", Location("b.py"))


def prompt_named(name):
    """Return a compiled prompt with the given name."""
    return structs.replace(review.compiled, name=name)


class TestCatalog:
    def test_catalog_is_a_mapping_from_names_to_prompts(self):
        """A catalog is a mapping from names to prompts."""
        assert isinstance(CATALOG, Mapping)
        assert CATALOG["review"] is review.compiled
        assert len(CATALOG) == 3
        assert "plan" in CATALOG
        assert "plam" not in CATALOG
        assert CATALOG.get("plam") is None
        assert dict(CATALOG.items())["ask"] is ask.compiled

    def test_prompts_are_sorted(self):
        """Prompts are sorted by name."""
        assert list(CATALOG) == ["ask", "plan", "review"]
        assert [compiled.name for compiled in CATALOG.prompts] == ["ask", "plan", "review"]
        assert list(CATALOG.values()) == list(CATALOG.prompts)

    @given(st.permutations(["a", "b", "B", "a-b", "_", "a1", "a10", "a2"]))
    def test_input_order_does_not_matter(self, names):
        """The same prompts in any order produce an equal catalog."""
        catalog = Catalog(map(prompt_named, names))

        assert list(catalog) == sorted(names)
        assert catalog.prompts == Catalog(map(prompt_named, sorted(names))).prompts

    def test_catalog_is_immutable(self):
        """A catalog and its prompts are immutable."""
        with pytest.raises(AttributeError):
            CATALOG.prompts = ()
        with pytest.raises(AttributeError):
            CATALOG["review"].name = "other"
        with pytest.raises(TypeError, match="does not support item assignment"):
            CATALOG["other"] = review.compiled

    def test_metadata_is_immutable(self):
        """The metadata of a prompt is immutable as well."""
        catalog = Catalog((prompt(tags=["work"])(review.__wrapped__).compiled,))

        with pytest.raises(TypeError):
            catalog["review"].meta["promptkit/tags"] = []

    def test_empty_catalog(self):
        """A catalog can be empty."""
        assert (len(Catalog()), list(Catalog()), Catalog().healthy) == (0, [], True)
        with pytest.raises(UnknownPromptError, match=r"^unknown prompt 'review'$"):
            Catalog()["review"]

    @pytest.mark.parametrize(
        ("name", "nearest"),
        [("reviw", "review"), ("REVIEW", "review"), ("zzz", None), ("", None)],
        ids=["typo", "case", "strange", "empty"],
    )
    def test_unknown_name_suggests_the_nearest(self, name, nearest):
        """An unknown name raises UnknownPromptError, which is a KeyError, with the nearest name."""
        with pytest.raises(UnknownPromptError) as caught:
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
    def test_only_errors_make_a_catalog_unhealthy(self, diagnostics, healthy):
        """Warnings do not make a catalog unhealthy."""
        assert Catalog((), diagnostics).healthy is healthy


class TestRender:
    def test_string_arguments(self):
        """A prompt is rendered by name, with arguments as strings."""
        assert CATALOG.render("review", {"diff": "+a", "depth": "3"}) == user("Review to depth 3: +a")
        assert CATALOG.render("plan", {"goal": "rest"}) == user("someone wants rest")
        assert CATALOG.render("ask") == user("What now?") + assistant("Wait.")

    def test_errors(self):
        """An unknown prompt and invalid arguments raise errors."""
        with pytest.raises(UnknownPromptError, match=r"did you mean 'ask'\?$"):
            CATALOG.render("aks")
        with pytest.raises(ArgumentsError, match="'depth' is 'x', not a whole number; 'diff' is missing"):
            CATALOG.render("review", {"depth": "x"})


class TestCompiledPrompt:
    def test_attributes(self):
        """A compiled prompt has everything that listing and rendering need."""
        compiled = plan.compiled

        assert isinstance(compiled, CompiledPrompt)
        assert (compiled.name, compiled.title, compiled.description) == ("plan", "Planning", "Plan.")
        assert [argument.name for argument in compiled.arguments.ordered] == ["goal"]
        assert (compiled.context, compiled.timeout, compiled.cache) == ("context", 5, 60)
        assert compiled.meta == {"promptkit/tags": ["work"]}
        assert compiled.location == plan.location

    def test_binding_converts_arguments_and_adds_the_context(self):
        """Arguments from a client become the function's keyword arguments, with the context added."""
        context = Context("Zed")

        assert review.compiled.bind({"diff": "+a", "depth": "3"}) == {"diff": "+a", "depth": 3}
        assert plan.compiled.bind({"goal": "rest"}) == {"goal": "rest", "context": Context()}
        assert plan.compiled.bind({"goal": "rest"}, context) == {"goal": "rest", "context": context}
        assert review.compiled.bind({"diff": "+a"}, context) == {"diff": "+a"}

    def test_sync_and_async_rendering(self):
        """Both `render` and `render_async` take arguments and a context, for every kind of function."""
        context = Context("Zed")

        async def render_all():
            return [
                await plan.compiled.render_async({"goal": "rest"}, context),
                await review.compiled.render_async({"diff": "+a"}),
            ]

        assert asyncio.run(render_all()) == [user("Zed wants rest"), user("Review to depth 1: +a")]
        assert plan.compiled.render({"goal": "rest"}, context) == user("Zed wants rest")

    def test_equal_prompts_compile_to_equal_values(self):
        """Equal prompts compile to equal values."""
        assert prompt(review.__wrapped__).compiled == review.compiled
        assert prompt_named("other") != review.compiled


@resource("notes://today")
def today() -> str:
    """Today's notes."""
    return "today"


@resource("notes://{day}")
def notes(day: str) -> str:
    """A day's notes."""
    return f"of {day}"


@resource("notes://{+path}")
def files(path: str) -> str:
    """A file of notes."""
    return f"at {path}"


@resource("logs://recent{?level,service,lines}")
def logs(
    level: Literal["info", "error"] = "info",
    service: Annotated[str, Arg(complete=lambda typed, chosen: [f"{chosen.get('level')}-web", "db"])] = "",
    lines: int = 10,
) -> str:
    """Logs."""
    return f"{lines} lines, {level}"


COMPILED = tuple(document.compile()[0] for document in (today, notes, logs))
DOCUMENTS = Catalog((), (), COMPILED)


class TestResources:
    def test_resources_are_sorted(self):
        """Resources are sorted by URI template; by default, a catalog has none."""
        assert Catalog().resources == CATALOG.resources == ()
        assert [compiled.uri_template for compiled in DOCUMENTS.resources] == [
            "logs://recent{?level,service,lines}",
            "notes://today",
            "notes://{day}",
        ]

    @given(st.permutations(COMPILED))
    def test_input_order_does_not_matter(self, resources):
        """The same resources in any order produce an equal catalog."""
        assert Catalog(resources=resources) == DOCUMENTS

    def test_resources_are_not_in_the_mapping(self):
        """Resources are not part of the mapping."""
        assert (list(DOCUMENTS), len(DOCUMENTS), "notes" in DOCUMENTS) == ([], 0, False)

    @pytest.mark.parametrize(
        ("uri", "name", "variables"),
        [
            ("notes://today", "today", {}),
            ("notes://monday", "notes", {"day": "monday"}),
            ("notes://tod%61y", "notes", {"day": "today"}),
            ("logs://recent", "logs", {}),
            ("logs://recent?lines=5&level=error", "logs", {"lines": "5", "level": "error"}),
        ],
    )
    def test_resource_of_a_uri(self, uri, name, variables):
        """An exact URI takes precedence over templates; variables are returned as strings."""
        matched, values = DOCUMENTS.resource(uri)

        assert (matched.name, values) == (name, variables)

    def test_first_of_several_matching_templates_is_used(self):
        """If several templates match, the first one in the listing is used."""
        catalog = Catalog(resources=(notes.compile()[0], files.compile()[0]))

        assert catalog.resource("notes://a")[0].name == "files"
        assert catalog.resources[0].name == "files"

    @pytest.mark.parametrize(
        ("uri", "nearest"),
        [
            ("notes://a/b", None),
            ("note://today", "notes://today"),
            ("logs://recent{?level,service,lines}", "logs://recent{?level,service,lines}"),
            ("", None),
            ("\ud800", None),
        ],
        ids=["equally near to two", "typo", "the template itself", "empty", "lone surrogate"],
    )
    def test_unknown_uri_suggests_the_nearest(self, uri, nearest):
        """An unknown URI raises UnknownResourceError, which is a KeyError, with the nearest URI."""
        with pytest.raises(UnknownResourceError) as caught:
            DOCUMENTS.resource(uri)

        assert (caught.value.uri, caught.value.nearest) == (uri, nearest)
        assert isinstance(caught.value, KeyError)
        assert isinstance(caught.value, PromptkitError)

    @pytest.mark.parametrize(
        ("error", "message"),
        [
            (UnknownResourceError("x:a"), "unknown resource 'x:a'"),
            (UnknownResourceError("x:a", "x:b"), "unknown resource 'x:a'; did you mean 'x:b'?"),
        ],
    )
    def test_error_survives_copying_and_pickling(self, error, message):
        """The error's message and attributes survive copying and pickling."""
        copied = pickle.loads(pickle.dumps(copy.copy(error)))  # noqa: S301 (our own pickle)

        assert str(error) == str(copied) == message
        assert (copied.uri, copied.nearest) == (error.uri, error.nearest)

    def test_resource_is_read_by_uri(self):
        """A resource is read by URI, with the variables converted to their types."""
        assert DOCUMENTS.read("notes://today") == today.embed()
        assert DOCUMENTS.read("notes://monday") == notes.embed("monday")
        assert DOCUMENTS.read("logs://recent?lines=5&level=ERROR").text == "5 lines, error"

    def test_errors(self):
        """An unknown URI and invalid variables raise errors."""
        with pytest.raises(UnknownResourceError):
            DOCUMENTS.read("other://today")
        with pytest.raises(ArgumentsError, match="'lines' is 'x', not a whole number"):
            DOCUMENTS.read("logs://recent?lines=x")

    def test_template_is_found_by_its_exact_text(self):
        """A template is found by its exact text, not by a URI that it matches."""
        assert DOCUMENTS.template("notes://{day}").name == "notes"
        assert DOCUMENTS.template("notes://today").name == "today"
        with pytest.raises(UnknownResourceError, match=r"did you mean 'notes://today'\?$"):
            DOCUMENTS.template("notes://toda")

    @pytest.mark.parametrize(
        ("variable", "typed", "chosen", "values"),
        [
            ("level", "", None, ("info", "error")),
            ("level", "E", None, ("error",)),
            ("service", "", {"level": "info"}, ("info-web", "db")),
            ("lines", "1", None, ()),
        ],
    )
    def test_variables_are_completed(self, variable, typed, chosen, values):
        """A resource's variables are completed like a prompt's arguments."""
        template = logs.uri_template

        assert DOCUMENTS.complete(template, variable, typed, chosen).values == values

    def test_resource_without_variables_has_no_completions(self):
        """A resource without variables offers no completions; unknown variables and templates are errors."""
        assert DOCUMENTS.complete("notes://today", "day", "").values == ()
        with pytest.raises(ArgumentsError, match="did you mean 'day'"):
            DOCUMENTS.complete("notes://{day}", "dya", "")
        with pytest.raises(UnknownResourceError):
            DOCUMENTS.complete("notes://{other}/x", "day", "")


def test_errors_are_in_the_order_of_the_signature():
    """Errors follow the order of the signature, not the order in which the client sends the arguments."""

    @prompt
    def many(*, a: list[int], b: list[int], c: list[int], d: list[int], e: list[int], f: list[int]) -> str:
        """Take many lists."""
        return ""

    with pytest.raises(ArgumentsError) as caught:
        many.compiled.arguments.check_values(dict.fromkeys("fedcba", "1," * 200), 100)

    assert [error.argument for error in caught.value.errors] == list("abcdef")
