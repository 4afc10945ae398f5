import json
from typing import Annotated, Literal

import pytest

from promptkit import Arg, ArgumentsError, prompt
from promptkit.compiler.compilation import compile
from promptkit.errors.rules import Rule
from promptkit.loader.loader import load
from promptkit.loader.recipes import Recipes
from tests.mistakes import FOUND, SIX_MISTAKES


def test_all_errors_are_reported_in_one_pass(recipes, tmp_path, monkeypatch):
    """Six mistakes in three files are six diagnostics, each with file, line and hint."""
    folder = recipes(**SIX_MISTAKES)
    monkeypatch.chdir(tmp_path)

    diagnostics = compile(load(folder)).diagnostics

    assert "\n".join(map(str, diagnostics)) == FOUND


def test_valid_prompts_are_served(recipes):
    """Errors in one prompt do not stop others; of two prompts with the same name, the first is served."""
    catalog = compile(load(recipes(**SIX_MISTAKES)))

    assert list(catalog) == ["plan"]
    assert "first" in str(catalog.render("plan"))
    assert not catalog.healthy


def test_equal_input_gives_an_equal_catalog(recipes):
    """Compiling twice gives the same diagnostics and prompts in the same order."""
    folder = recipes(**SIX_MISTAKES)

    first, second = compile(load(folder)), compile(load(folder))

    assert first.diagnostics == second.diagnostics
    assert list(first) == list(second)


def test_default_of_elicit():
    """The option `elicit` applies to prompts that do not set it."""
    prompts = [prompt(name="unset")(lambda: "x"), prompt(name="asks", elicit=True)(lambda: "x")]

    catalog = compile(prompts, elicit=False)
    assert {item.name: item.elicit for item in catalog.prompts} == {"unset": False, "asks": True}
    assert compile(prompts)["unset"].elicit is None


def test_two_files_cannot_share_a_name(recipes, tmp_path, monkeypatch):
    """A duplicate name in another file is an error at the second definition that names the first."""
    source = "from promptkit import prompt\n\n@prompt\ndef plan() -> str:\n    return ''\n"
    folder = recipes(a=source, b=source)
    monkeypatch.chdir(tmp_path)

    (diagnostic,) = compile(load(folder)).diagnostics

    assert (
        str(diagnostic.location),
        diagnostic.message,
    ) == ("recipes/b.py:3", "prompt 'plan': it is already defined at recipes/a.py:3")


def test_an_invalid_prompt_reserves_its_name(recipes):
    """An invalid prompt reserves its name, so that fixing it does not produce a new error."""
    folder = recipes(
        a="from promptkit import prompt\n\n@prompt\ndef plan(a) -> str:\n    return a\n",
        b="from promptkit import prompt\n\n@prompt\ndef plan() -> str:\n    return ''\n",
    )

    catalog = compile(load(folder))

    rules = [diagnostic.rule for diagnostic in catalog.diagnostics]
    assert rules == [Rule.MISSING_ANNOTATION, Rule.DUPLICATE_NAME]
    assert list(catalog) == []


def test_no_prompts_is_an_error(recipes):
    """A catalog without prompts is an error."""
    catalog = compile(load(recipes(nothing="")))

    assert [diagnostic.rule for diagnostic in catalog.diagnostics] == [Rule.NO_PROMPTS]
    assert not catalog.healthy


@pytest.mark.parametrize("future", ["", "from __future__ import annotations\n"], ids=["plain", "future"])
@pytest.mark.parametrize(
    ("parameters", "rule", "message"),
    [
        ("a", Rule.MISSING_ANNOTATION, "parameter 'a' has no annotation"),
        ("*a: str", Rule.VARIADIC_PARAMETER, "parameter '*a' has no fixed name"),
        ("**a: str", Rule.VARIADIC_PARAMETER, "parameter '**a' has no fixed name"),
        ("a: str, /", Rule.POSITIONAL_ONLY, "parameter 'a' is positional-only"),
        ("a: object", Rule.UNSUPPORTED_TYPE, "no client can fill parameter 'a' of type object"),
        ("a: int | type", Rule.UNSUPPORTED_TYPE, "no client can fill parameter 'a' of type int | type"),
        (
            "a: int = None",
            Rule.INVALID_DEFAULT,
            "parameter 'a' has the default None, which is not of type int",
        ),
        (
            "a: Literal['x'] = 'y'",
            Rule.INVALID_DEFAULT,
            "parameter 'a' has the default 'y', which is not of type Literal['x']",
        ),
        (
            "a: 'Nowhere'",
            Rule.UNRESOLVED_ANNOTATION,
            "the annotation of parameter 'a' cannot be resolved: name 'Nowhere' is not defined",
        ),
    ],
)
def test_an_invalid_parameter_is_reported(recipes, future, parameters, rule, message):
    """Each kind of invalid parameter has its own code, with string annotations and without."""
    folder = recipes(
        at_fault=f"{future}from typing import Literal\nfrom promptkit import prompt\n\n"
        f"@prompt\ndef p({parameters}) -> str:\n    return ''\n",
    )

    (diagnostic,) = compile(load(folder)).diagnostics

    assert (rule, f"prompt 'p': {message}") == (diagnostic.rule, diagnostic.message)
    line = 4 + bool(future)
    assert diagnostic.location.line in (line, line + 1)  # the decorator's line or the next one


@pytest.mark.parametrize(
    ("name", "suggested"),
    [
        ("my prompt", "my-prompt"),
        ("a" * 65, "a" * 64),
        ("", "prompt"),
        ("レビュー", "prompt"),
        ("a/b", "a-b"),
    ],
)
def test_an_invalid_name_is_reported_with_a_valid_one(name, suggested):
    """A name that some clients cannot show is rejected, with one that all clients can show as the hint."""

    @prompt(name=name)
    def review() -> str:
        return ""

    (diagnostic,) = compile(Recipes(prompts=(review,))).diagnostics

    assert (Rule.BAD_NAME, f"call it {suggested!r}") == (diagnostic.rule, diagnostic.hint)


@pytest.mark.parametrize(
    "options",
    [{"meta": {"a": object()}}, {"description": "\ud800"}, {"title": "\ud800"}],
    ids=["object", "description", "title"],
)
def test_a_prompt_that_cannot_be_encoded_is_reported(options):
    """A prompt that cannot be encoded is reported and does not break the list of prompts."""

    @prompt(**options)
    def review() -> str:
        return ""

    catalog = compile(Recipes(prompts=(review,)))

    assert [diagnostic.rule for diagnostic in catalog.diagnostics] == [Rule.BAD_METADATA]
    assert not catalog


class Failing:
    def __iter__(self):
        return iter([1 / 0])


@pytest.mark.parametrize(
    ("complete", "message", "hint"),
    [
        (3, "cannot be completed: ", ""),
        (lambda a, b, c: [], "cannot be completed: ", ""),
        (
            Failing(),
            "cannot be completed: ZeroDivisionError: division by zero",
            "pass complete= a list of values",
        ),
    ],
    ids=["number", "function of three", "values that fail"],
)
def test_an_invalid_source_of_completions_is_reported(complete, message, hint):
    """An invalid source of completions is reported when compiling."""

    @prompt
    def review(diff: Annotated[str, Arg(complete=complete)]) -> str:
        return diff

    (diagnostic,) = compile(Recipes(prompts=(review,))).diagnostics

    assert diagnostic.rule is Rule.BAD_COMPLETION
    assert message in diagnostic.message
    assert hint in diagnostic.hint


def test_completion_comes_from_the_type_or_from_the_author():
    """Choices are completed from their type, unless the author gives a completer."""

    @prompt
    def review(
        language: Literal["python", "rust", "go"],
        strict: bool,  # noqa: FBT001 (people write it)
        file: Annotated[str, Arg(complete=lambda typed, chosen: [f"a.{chosen.get('language')}", "b"])],
        diff: str,
        tone: Annotated[Literal["plain", "warm"], Arg(complete=["warm"])] = "plain",
    ) -> str:
        return ""

    catalog = compile(Recipes(prompts=(review,)))

    assert catalog.complete("review", "language", "").values == ("python", "rust", "go")
    assert catalog.complete("review", "language", "R").values == ("rust",)
    assert catalog.complete("review", "strict", "y").values == ("yes",)
    assert catalog.complete("review", "file", "a", {"language": "go"}).values == ("a.go",)
    assert catalog.complete("review", "tone", "").values == ("warm",)
    assert catalog.complete("review", "diff", "x").values == ()
    with pytest.raises(ArgumentsError, match="did you mean 'file'"):
        catalog.complete("review", "fil", "")


def test_resources_are_checked(recipes):
    """A resource whose template does not match its parameters is reported."""
    folder = recipes(
        logs="""
            from promptkit import resource

            @resource("logs://recent{?timeframe}")
            def logs(period: str) -> str:
                return period
        """,
    )

    diagnostics = compile(load(folder)).diagnostics

    assert [diagnostic.message for diagnostic in diagnostics] == [
        "resource 'logs': parameter 'period: str' is not in the template 'logs://recent{?timeframe}'",
        "resource 'logs': the template's variable 'timeframe' is not a parameter of the function",
    ]


def test_a_diagnostic_serializes_to_json(recipes):
    """A diagnostic serializes to JSON with a separate field for each part."""
    folder = recipes(bare="from promptkit import prompt\n\n@prompt\ndef p(a) -> str:\n    return a\n")

    (diagnostic,) = compile(load(folder)).diagnostics

    assert {
        "code": "PK301",
        "rule": "missing-annotation",
        "severity": "error",
        "message": "prompt 'p': parameter 'a' has no annotation",
        "hint": "write its type, for example 'a: str'",
        "file": str(folder / "bare.py"),
        "line": 4,
        "column": 7,
        "end_column": 8,
    } == json.loads(json.dumps(diagnostic.as_data()))


@pytest.mark.parametrize(
    "source",
    [
        (
            "class D(str):\n    def __eq__(self, other): raise SystemExit\n    __hash__ = None\n"
            "    def __repr__(self): raise SystemExit\n\n@prompt\ndef p(a: str = D()) -> str:\n    return a\n"
        ),
        (
            "class L(list):\n    def __iter__(self): raise BaseException\n\n@prompt\n"
            "def p(a: Annotated[str, Arg(complete=L())]) -> str:\n    return a\n"
        ),
        (
            "class A:\n    def __class_getitem__(cls, key): raise GeneratorExit\n\n@prompt\n"
            "def p(a: 'A[1]') -> str:\n    return a\n"
        ),
    ],
    ids=["default", "completer", "annotation"],
)
def test_exceptions_from_authors_objects_are_contained(recipes, source):
    """An exception from a default, annotation or completer does not stop other prompts."""
    head = "from typing import Annotated\nfrom promptkit import Arg, prompt\n\n"
    folder = recipes(odd=head + source, sound=f"{head}@prompt\ndef plan() -> str:\n    return ''\n")

    catalog = compile(load(folder))

    assert "plan" in catalog
    assert str(catalog.diagnostics)
