import inspect
import types
from enum import Enum
from typing import Annotated, Literal, NewType, Optional

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from promptkit.declarations.prompts import prompt
from promptkit.declarations.signature import Parameter, Signature, read_signature, read_summary
from promptkit.errors.diagnostics import Location, Report
from promptkit.errors.rules import Rule
from promptkit.language.annotations import NO_DEFAULT, Arg
from promptkit.language.context import Context
from promptkit.loader.loader import load

HERE = Location("recipe.py", 7)


def read(function, **names):
    """Return the signature of a function that must have no errors."""
    report = Report("prompt 'f'", HERE)
    signature = read_signature(function, names, report)
    assert report.diagnostics == []
    return signature


def read_with_diagnostics(function, **names):
    """Return the names of the accepted parameters and the diagnostics."""
    report = Report("prompt 'f'", HERE)
    signature = read_signature(function, names, report)
    return [parameter.name for parameter in signature.parameters], report.diagnostics


def read_parameter(annotation=str, doc=None):
    """Return the parameter of a function with this annotation and docstring."""

    def function(a): ...

    function.__annotations__ = {"a": annotation}
    function.__doc__ = doc
    return read(function).parameters[0]


class TestParameters:
    def test_parameters_keep_the_order_of_the_signature(self):
        """Parameters keep the order of the signature, including keyword-only ones."""

        def function(z: str, a: int = 3, *, m: bool, b: float = 0.5): ...

        assert read(function).parameters == (
            Parameter("z", str),
            Parameter("a", int, 3),
            Parameter("m", bool),
            Parameter("b", float, 0.5),
        )

    @pytest.mark.parametrize("default", [None, "", 0, False])
    def test_any_default_makes_a_parameter_optional(self, default):
        """Any default makes a parameter optional, even None or an empty value."""

        def function(a: str | int | None = default, b: str = "b"): ...

        assert read(function).parameters[0].default is default
        assert not read(function).parameters[0].required

    def test_a_parameter_without_a_default_is_required(self):
        """A parameter without a default is required, even if its type allows None."""

        def function(a: str, b: str | None): ...

        assert [parameter.required for parameter in read(function).parameters] == [True, True]
        assert read(function).parameters[0].default is NO_DEFAULT

    def test_a_function_can_have_no_parameters(self):
        """A function without parameters has an empty signature; its return annotation is ignored."""

        def function() -> "Undefined":  # noqa: F821 (never evaluated)
            ...

        assert read(function) == Signature()


class TestArg:
    @pytest.mark.parametrize(
        ("annotation", "arg"),
        [
            (str, Arg()),
            (Annotated[str, Arg("code")], Arg("code")),
            (Annotated[str, "code"], Arg("code")),
            (Annotated[str, Arg("code", title="Code", examples=["x"], secret=True)],) * 2,
            (Annotated[str, Arg(title="Code"), "code"], Arg("code", title="Code")),
            (Annotated[str, "code", Arg(title="Code")], Arg("code", title="Code")),
            (Annotated[Annotated[str, Arg("code")], "other"], Arg("other")),
            (Annotated[str, object(), 3], Arg()),
        ],
        ids=["none", "Arg", "string", "all", "Arg, string", "string, Arg", "nested", "foreign"],
    )
    def test_annotated_describes_a_parameter(self, annotation, arg):
        """`Annotated` can contain an Arg and a string in any order; other metadata is ignored."""
        expected = arg if isinstance(arg, Arg) else annotation.__metadata__[0]

        assert read_parameter(annotation).arg == expected
        assert read_parameter(annotation).annotation is str

    def test_constraints_stay_on_the_type(self):
        """The annotation keeps the constraints for msgspec when the Arg is removed."""
        positive = msgspec.Meta(gt=0)

        assert (
            read_parameter(Annotated[int, Arg("how many"), positive]).annotation == Annotated[int, positive]
        )

    def test_annotated_can_be_inside_optional(self):
        """``Annotated[str, ...] | None`` is equivalent to ``Annotated[str | None, ...]``."""
        parameter = read_parameter(Optional[Annotated[str, Arg("code")]])  # noqa: UP045 (Annotated has no | before 3.14)

        assert (parameter.annotation, parameter.arg) == (str | None, Arg("code"))

    def test_an_arg_is_a_value(self):
        """Args with equal fields are equal and hashable, because examples become a tuple."""
        assert Arg("a", examples=[1, 2]) == Arg("a", examples=(1, 2))
        assert Arg("a").examples == ()
        assert hash(Arg("a", examples=["x"])) == hash(Arg("a", examples=["x"]))

    def test_the_contract_with_authors(self):
        """`Arg` takes the description first and everything else by name."""
        parameters = inspect.signature(Arg).parameters.values()

        assert [str(p.replace(annotation=p.empty)) for p in parameters] == [
            "description=None",
            "title=None",
            "examples=()",
            "complete=None",
            "secret=False",
            "env=None",
        ]
        assert [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY] == ["description"]

    def test_a_string_of_examples_is_not_split_into_letters(self):
        """A plain string as examples is one example or an error, and is never split into letters."""
        try:
            examples = Arg(examples="gpt").examples
        except TypeError:
            return

        assert examples == ("gpt",)


GOOGLE = """Review a change.

    More about it, which clients
    do not need.

    Args:
        diff: The change, as
            git shows it.
        depth (int, optional): How deep to look: 1 is a glance.

    Returns:
        What to send.
    """
NUMPY = """
    Review a change.

    More about it.

    Parameters
    ----------
    diff : str
        The change, as
        git shows it.
    depth : int, optional
        How deep to look: 1 is a glance.

    Returns
    -------
    str
        What to send.
    """
SPHINX = """Review a change.

    More about it.

    :param diff: The change, as
        git shows it.
    :param int depth: How deep to look: 1 is a glance.
    :returns: What to send.
    """
EPYTEXT = """Review a change.

    @param diff: The change, as
        git shows it.
    @param depth: How deep to look: 1 is a glance.
    """


class TestDocstring:
    @pytest.mark.parametrize(
        "doc", [GOOGLE, NUMPY, SPHINX, EPYTEXT], ids=["Google", "NumPy", "Sphinx", "Epytext"]
    )
    def test_every_style_describes_the_parameters(self, doc):
        """Parameter descriptions are read from every docstring style, each joined to one line."""

        def function(diff: str, depth: int = 1, other: str = ""): ...

        function.__doc__ = doc

        signature = read(function)

        assert signature.summary == "Review a change."
        assert [parameter.arg.description for parameter in signature.parameters] == [
            "The change, as git shows it.",
            "How deep to look: 1 is a glance.",
            None,
        ]

    def test_annotated_overrides_the_docstring(self):
        """`Annotated` takes precedence over the docstring, which fills the gaps."""
        doc = "Args:\n    a: from the docstring"

        assert read_parameter(Annotated[str, "from Annotated"], f"Do.\n\n{doc}").arg == Arg("from Annotated")
        assert read_parameter(Annotated[str, Arg(title="A")], f"Do.\n\n{doc}").arg == Arg(
            "from the docstring", title="A"
        )

    @pytest.mark.parametrize(
        ("doc", "summary"),
        [
            (None, None),
            ("", None),
            ("  \n ", None),
            ("Review.", "Review."),
            ("Review\n    a change.", "Review a change."),
            ("\n    Review.\n\n    More.\n    ", "Review."),
            ("Review.\n\nArgs:\n    a: b", "Review."),
            ("Review.\n:param a: b", "Review."),
            ("Args:\n    a: b", None),
            (":param a: b", None),
            ("Args and parameters: what to know", "Args and parameters: what to know"),
            ("Review the following:", "Review the following:"),
            ("Review the following:\n\n    A change.", "Review the following:"),
            (":term:`Review` a change.", ":term:`Review` a change."),
            ("Review.\n\n    :return: b", "Review."),
        ],
        ids=[
            "none",
            "empty",
            "blank",
            "one line",
            "two lines",
            "quotes apart",
            "Google",
            "Sphinx, no blank line",
            "only Google",
            "only Sphinx",
            "prose",
            "colon",
            "colon and more",
            "Sphinx role",
            "return only",
        ],
    )
    def test_the_summary_is_the_first_paragraph(self, doc, summary):
        """The summary is the first paragraph, joined to one line, and never a section."""
        assert read_summary(doc) == summary

    @pytest.mark.parametrize(
        "section",
        ["Returns:\n    What to send.", ":return: What to send.", "Raises:\n    ValueError: never"],
        ids=["Google", "Sphinx", "raises"],
    )
    def test_other_sections_are_not_in_the_summary(self, section):
        """Sections on results and exceptions are not part of the summary."""
        assert read_summary(f"Review.\n{section}") == "Review."
        assert read_summary(section) is None

    @settings(deadline=None)
    @given(
        st.lists(
            st.sampled_from(
                [
                    "Args:",
                    "Parameters",
                    "----------",
                    "    a: b",
                    "a : str",
                    ":param a: b",
                    ":param",
                    "",
                    "  :",
                    "(",
                    "a",
                ]
            )
            | st.text(max_size=8),
            max_size=8,
        ).map("\n".join)
    )
    @example("  :\n  :\nArgs:")
    def test_any_docstring_can_be_read(self, doc):
        """No docstring can make reading the signature fail."""
        assert isinstance(read_parameter(str, doc).arg.description, str | None)


class TestContext:
    def test_a_context_is_not_a_parameter(self):
        """The Context is recognised by its type, and is not one of the parameters."""

        def function(a: str, request: Context, b: int = 1): ...

        signature = read(function)

        assert signature.context == "request"
        assert [parameter.name for parameter in signature.parameters] == ["a", "b"]

    @pytest.mark.parametrize(
        "annotation",
        ["Context", Annotated[Context, "the caller"], Context | None],
        ids=["string", "Annotated", "optional"],
    )
    def test_a_context_is_recognised_in_every_annotation(self, annotation):
        """A Context is recognised as a string annotation, in Annotated and as optional."""

        def function(context=None): ...

        function.__annotations__ = {"context": annotation}

        assert read(function, Context=Context) == Signature(context="context")


class TestDiagnostics:
    def test_every_parameter_is_checked(self):
        """All invalid parameters are reported in one pass, and valid ones are kept."""

        def function(a, b: str, *args: str, c: "Missing", d: int, **kwargs: str): ...  # noqa: F821

        accepted, diagnostics = read_with_diagnostics(function)

        assert accepted == ["b", "d"]
        assert sorted(diagnostic.rule.name for diagnostic in diagnostics) == [
            "MISSING_ANNOTATION",
            "UNRESOLVED_ANNOTATION",
            "VARIADIC_PARAMETER",
            "VARIADIC_PARAMETER",
        ]

    @pytest.mark.parametrize(
        ("source", "rule", "message", "hint"),
        [
            (
                "def f(a): ...",
                Rule.MISSING_ANNOTATION,
                "parameter 'a' has no annotation",
                "write its type, for example 'a: str'",
            ),
            (
                "def f(self): ...",
                Rule.MISSING_ANNOTATION,
                "parameter 'self' has no annotation",
                "move the function out of its class, or decorate a bound method: prompt(instance.method)",
            ),
            (
                "def f(*a: str): ...",
                Rule.VARIADIC_PARAMETER,
                "parameter '*a' has no fixed name",
                "name each parameter; clients fill them one by one",
            ),
            (
                "def f(**a): ...",
                Rule.VARIADIC_PARAMETER,
                "parameter '**a' has no fixed name",
                "name each parameter; clients fill them one by one",
            ),
            (
                "def f(a: str, /): ...",
                Rule.POSITIONAL_ONLY,
                "parameter 'a' is positional-only",
                "remove the '/' from the signature; clients fill parameters by name",
            ),
            (
                "def f(a: 'Missing'): ...",
                Rule.UNRESOLVED_ANNOTATION,
                "the annotation of parameter 'a' cannot be resolved: name 'Missing' is not defined",
                "define or import the name in the recipe, outside `if TYPE_CHECKING:`",
            ),
            (
                "def f(a: 'list['): ...",
                Rule.UNRESOLVED_ANNOTATION,
                "the annotation of parameter 'a' cannot be resolved: ",
                "define or import the name in the recipe, outside `if TYPE_CHECKING:`",
            ),
            (
                "def f(a: '1 / 0'): ...",
                Rule.UNRESOLVED_ANNOTATION,
                "the annotation of parameter 'a' cannot be resolved: division by zero",
                "define or import the name in the recipe, outside `if TYPE_CHECKING:`",
            ),
        ],
        ids=[
            "no annotation",
            "method",
            "*args",
            "**kwargs",
            "positional-only",
            "unknown name",
            "syntax",
            "raises",
        ],
    )
    def test_every_diagnostic_has_a_hint(self, source, rule, message, hint):
        """Each diagnostic names the parameter and has a hint."""
        names = {}
        exec(source, names)  # noqa: S102 (the source can have errors, such as a missing annotation)

        accepted, (diagnostic,) = read_with_diagnostics(names["f"])

        assert accepted == []
        assert diagnostic.rule is rule
        assert diagnostic.message.startswith(f"prompt 'f': {message}")
        assert diagnostic.hint == hint
        assert diagnostic.location == HERE


FUTURE = "from __future__ import annotations\n"

LOCAL = """
from enum import Enum
from typing import Annotated, Literal
from promptkit import Arg, Context, prompt

def make():
    class Tone(Enum):
        WARM = "warm"
        COLD = "cold"

    Language = Literal["python", "rust"]

    @prompt
    def bare(tone: Tone, language: Language = "rust", context: Context = Context()) -> str:
        return f"{tone.name} {language}"

    @prompt(title="Options")
    def options(tone: Annotated[Tone, Arg("How to sound")] = Tone.COLD) -> str:
        return tone.name

    return bare, options

BARE, OPTIONS = make()
"""


class TestFutureAnnotations:
    @pytest.mark.parametrize("future", [FUTURE, ""], ids=["future", "plain"])
    def test_names_local_to_a_function_are_found(self, future, recipes):
        """Annotations can refer to local names, with and without `from __future__ import annotations`."""
        recipe = future + LOCAL

        bare, options = load(recipes(local=recipe)).prompts

        assert str(bare.render_wire({"tone": "WARM"})) == "[user]\nWARM rust"
        assert str(options.render_wire({"tone": "warm"})) == "[user]\nWARM"
        assert (
            options.compiled.arguments.ordered[0].description
            == "How to sound (one of warm, cold; default cold)"
        )

    @pytest.mark.parametrize("future", [FUTURE, ""], ids=["future", "plain"])
    def test_annotations_in_code_without_a_module_are_resolved(self, future):
        """Code compiled from text, as in a notebook, works the same way."""
        names = {"__name__": "cell"}
        code = compile(future + LOCAL, "<cell>", "exec", dont_inherit=True)
        exec(code, names)  # noqa: S102 (as a notebook does)

        assert str(names["BARE"].render_wire({"tone": "cold", "language": "Python"})) == "[user]\nCOLD python"
        with pytest.raises(TypeError, match=r"parameter 'tone' takes .*, not a str \('warm'\)"):
            names["BARE"]("warm")

    def test_a_module_that_was_never_imported_by_name(self):
        """Annotations are resolved in the function's own globals, not in `sys.modules`."""
        module = types.ModuleType("nowhere")
        source = FUTURE + "from typing import Literal as L\ndef f(a: L['x']): ...\n"
        exec(source, vars(module))  # noqa: S102 (a module without a file)

        assert read(module.f).parameters == (Parameter("a", Literal["x"]),)

    def test_a_local_name_takes_precedence_over_a_global_one(self, recipes):
        """A local name takes precedence over a global one, as in Python."""
        recipe = FUTURE + (
            "from typing import Literal\nfrom promptkit import prompt\n"
            "Choice = Literal['global']\n"
            "def make(Choice):\n    @prompt\n    def f(a: Choice) -> str:\n        return a\n    return f\n"
            "MADE = make(Literal['local'])\n"
        )

        (loaded,) = load(recipes(scopes=recipe)).prompts

        assert str(loaded.render_wire({"a": "local"})) == "[user]\nlocal"

    def test_a_name_imported_only_for_type_checking_is_reported(self, recipes):
        """A name imported only under `TYPE_CHECKING` is reported with a hint."""
        recipe = FUTURE + (
            "from typing import TYPE_CHECKING\nfrom promptkit import prompt\n"
            "if TYPE_CHECKING:\n    from enum import Enum\n"
            "@prompt\ndef f(a: Enum) -> str:\n    return ''\n"
        )

        (loaded,) = load(recipes(checking=recipe)).prompts
        _, (diagnostic,) = loaded.compile()

        assert diagnostic.rule is Rule.UNRESOLVED_ANNOTATION
        assert "outside of `if TYPE_CHECKING:`" in diagnostic.hint


def test_one_broken_annotation_does_not_hide_the_others():
    """Each annotation is resolved separately, so an invalid one does not affect the others."""

    class Tone(Enum):
        WARM = "warm"

    def function(a: "Missing", b: "Tone"): ...  # noqa: F821

    accepted, diagnostics = read_with_diagnostics(function, Tone=Tone)

    assert accepted == ["b"]
    assert len(diagnostics) == 1


def test_a_wrapped_function_is_read_through():
    """The types are read through decorators that use `functools.wraps`."""
    from functools import wraps

    Number = NewType("Number", int)

    def function(a: Number): ...

    @wraps(function)
    def wrapper(*args, **kwargs): ...

    assert read(wrapper).parameters == (Parameter("a", Number),)
    assert read(prompt(function)).parameters == (Parameter("a", Number),)


@pytest.mark.parametrize(
    ("annotation", "hint"),
    [
        ("Annotated[str, 'x']", "import it, outside of `if TYPE_CHECKING:`: from typing import Annotated"),
        ("datetime", "import it, outside of `if TYPE_CHECKING:`: from datetime import datetime"),
        ("Decimal", "import it, outside of `if TYPE_CHECKING:`: from decimal import Decimal"),
        ("Litral['a']", "did you mean 'Literal'?"),
        ("Strr", "did you mean 'str'?"),
        ("Ton", "did you mean 'Tone'?"),
        ("Nowhere", "define or import the name in the recipe, outside `if TYPE_CHECKING:`"),
    ],
)
def test_an_annotation_that_is_not_imported_has_a_hint(annotation, hint, collect_diagnostics):
    """The hint for an unknown name is an import statement or the most similar type."""
    source = f"""
        from __future__ import annotations
        from enum import Enum
        from promptkit import prompt

        class Tone(Enum):
            WARM = "warm"

        @prompt
        def subject(a: {annotation}) -> str:
            return "x"
    """

    (diagnostic,) = collect_diagnostics(subject=source)

    assert (diagnostic.rule, diagnostic.hint) == (Rule.UNRESOLVED_ANNOTATION, hint)
