import datetime as dt
import enum
import inspect
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from promptkit import (
    Arg,
    ArgumentsError,
    CompileError,
    Context,
    EmbeddedResource,
    Resource,
    ResourceLink,
    Text,
    prompt,
    resource,
    user,
)
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.resources import CompiledResource
from promptkit.compiler.compilation import compile
from promptkit.declarations.resources import Resource as ResourceDeclaration
from promptkit.errors.rules import Rule
from promptkit.loader.loader import load
from promptkit.loader.recipes import Recipes
from promptkit.testing import Client

calls = []


class Level(enum.Enum):
    WARNING = "warn & more"


@resource("logs://recent{?timeframe}", title="Recent logs", mime_type="text/plain")
def logs(timeframe: str | None = None) -> str:
    """
    What happened lately.

    At length.
    """
    calls.append(timeframe)
    return f"logs of {timeframe}"


@resource("chart:{name}")
def chart(name: str) -> bytes:
    """Draw."""
    return b"%PDF-1.7\n" + name.encode()


def make_resource(template, **parameters):
    """Return a resource with this template, whose function takes these parameters."""

    def function(**_): ...

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    function.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in parameters])
    return resource(template)(function)


#: The variables of the examples in RFC 6570, section 3.2.
VARIABLES = {
    "count": ["one", "two", "three"],
    "dom": ["example", "com"],
    "dub": "me/too",
    "hello": "Hello World!",
    "half": "50%",
    "var": "value",
    "who": "fred",
    "base": "http://example.com/home/",
    "path": "/foo/bar",
    "list": ["red", "green", "blue"],
    "keys": {"semi": ";", "dot": ".", "comma": ","},
    "v": "6",
    "x": "1024",
    "y": "768",
    "empty": "",
    "undef": None,
}

#: The examples in sections 3.2.2 to 3.2.9. The RFC leaves the order of keys open; here they are sorted.
EXAMPLES = [
    ("{var}", "value"),
    ("{hello}", "Hello%20World%21"),
    ("{half}", "50%25"),
    ("O{empty}X", "OX"),
    ("O{undef}X", "OX"),
    ("{x,hello,y}", "1024,Hello%20World%21,768"),
    ("?{x,undef}", "?1024"),
    ("{var:3}", "val"),
    ("{list}", "red,green,blue"),
    ("{list*}", "red,green,blue"),
    ("{keys}", "comma,%2C,dot,.,semi,%3B"),
    ("{keys*}", "comma=%2C,dot=.,semi=%3B"),
    ("{+hello}", "Hello%20World!"),
    ("{+half}", "50%25"),
    ("{+path}/here", "/foo/bar/here"),
    ("{+x,hello,y}", "1024,Hello%20World!,768"),
    ("{#var}", "#value"),
    ("{#path,x}/here", "#/foo/bar,1024/here"),
    ("X{.var}", "X.value"),
    ("X{.list*}", "X.red.green.blue"),
    ("{/var,x}/here", "/value/1024/here"),
    ("{/list*}", "/red/green/blue"),
    ("{;x,y,empty}", ";x=1024;y=768;empty"),
    ("{;v,empty,who}", ";v=6;empty;who=fred"),
    ("{?x,y,empty}", "?x=1024&y=768&empty="),
    ("{?x,y,undef}", "?x=1024&y=768"),
    ("{?list*}", "?list=red&list=green&list=blue"),
    ("{?keys*}", "?comma=%2C&dot=.&semi=%3B"),
    ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
    ("{&x,y,empty}", "&x=1024&y=768&empty="),
]


class TestUri:
    @pytest.mark.parametrize(("template", "expanded"), EXAMPLES, ids=[template for template, _ in EXAMPLES])
    def test_templates_expand_as_in_rfc_6570(self, template, expanded):
        """The examples of RFC 6570 expand as the RFC specifies."""
        from uritemplate import variables

        used = {name: VARIABLES[name] for name in variables(template)}

        assert make_resource(f"x:{template}", **used).uri(**used) == f"x:{expanded}"

    def test_arguments_go_by_position_and_by_name(self):
        """`uri` takes arguments by position and by name, like the function."""
        assert logs.uri("1h") == logs.uri(timeframe="1h") == "logs://recent?timeframe=1h"

    @pytest.mark.parametrize("arguments", [(), (None,)], ids=["left out", "None"])
    def test_omitted_arguments_are_not_in_the_uri(self, arguments):
        """An omitted or None argument does not appear in the URI."""
        assert logs.uri(*arguments) == "logs://recent"

    @pytest.mark.parametrize(
        ("value", "expanded"),
        [
            (5, "5"),
            (0, "0"),
            (1.5, "1.5"),
            (True, "true"),
            (False, "false"),
            (Level.WARNING, "warn%20%26%20more"),
            (dt.date(2026, 1, 31), "2026-01-31"),
            (dt.time(12, 30), "12%3A30%3A00"),
            (dt.datetime(2026, 1, 31, tzinfo=dt.UTC), "2026-01-31T00%3A00%3A00%2B00%3A00"),
            (Path("a/b"), "a%2Fb"),
            ([1, True], "1,true"),
            ((1, 2), "1,2"),
            ([], ""),
            ({"a": 1}, "a,1"),
            ("ü", "%C3%BC"),
        ],
        ids=str,
    )
    def test_values_are_formatted_as_in_uris(self, value, expanded):
        """Values are formatted as is usual in URIs, not with Python's str()."""
        assert make_resource("x:{value}", value=value).uri(value) == f"x:{expanded}"

    @pytest.mark.parametrize(
        ("value", "expanded"),
        [({"b"}, "b"), (frozenset({1}), "1"), ([None, "a"], "a")],
        ids=["set", "frozenset", "None inside"],
    )
    def test_collections_expand_without_python_syntax(self, value, expanded):
        """A set expands like a list, and None within a list is omitted, as RFC 6570 specifies."""
        assert make_resource("x:{value}", value=value).uri(value) == f"x:{expanded}"

    @pytest.mark.parametrize(
        ("args", "kwargs"), [(("1h", "2h"), {}), ((), {"frame": "1h"})], ids=["too many", "unknown"]
    )
    def test_a_wrong_call_is_a_type_error(self, args, kwargs):
        """`uri` raises a TypeError for any arguments that the function would not accept."""
        with pytest.raises(TypeError):
            logs.uri(*args, **kwargs)

    def test_a_missing_required_argument_is_a_type_error(self):
        """`uri` raises a TypeError if a required argument is missing."""
        with pytest.raises(TypeError, match=r"^missing a required argument: 'name'$"):
            chart.uri()

    @settings(deadline=None)
    @given(
        st.text(st.characters(exclude_categories=["Cs"]))
        | st.integers()
        | st.booleans()
        | st.lists(st.text("aé &"))
    )
    def test_any_value_gives_a_uri(self, value):
        """Every value expands to a URI that is valid in content."""
        document = make_resource("x:doc{?value}", value=value)

        assert document.link(value).uri == document.uri(value)

    @pytest.mark.skipif(sys.version_info < (3, 14), reason="annotations are evaluated late since Python 3.14")
    def test_a_return_type_imported_for_type_checkers_only(self, recipes):
        """A resource has a URI if its return type is imported for type checkers only."""
        source = """
        from typing import TYPE_CHECKING
        from promptkit import resource
        if TYPE_CHECKING:
            from decimal import Decimal
        @resource("x:a")
        def one() -> Decimal:
            return "x"
        """

        (loaded,) = load(recipes(one=source)).resources

        assert loaded.uri() == "x:a"


class TestEmbed:
    def test_text_is_embedded_with_its_uri(self):
        """`embed` calls the function and returns its text as an embedded resource."""
        assert logs.embed("1h") == EmbeddedResource(
            "logs://recent?timeframe=1h", text="logs of 1h", mime_type="text/plain"
        )

    def test_bytes_are_embedded_with_their_type(self):
        """The type of embedded bytes is detected if none is declared."""
        assert chart.embed("a") == EmbeddedResource(
            "chart:a", blob=b"%PDF-1.7\na", mime_type="application/pdf"
        )

    @pytest.mark.parametrize(
        ("value", "value_text"),
        [
            (3, "an int (3)"),
            (None, "None"),
            (["a"], "a list (['a'])"),
            (bytearray(b"a"), "a bytearray"),
        ],
        ids=["int", "None", "list", "bytearray"],
    )
    def test_other_results_are_rejected(self, value, value_text):
        """Any other result raises a TypeError with the resource, its location and a fix."""

        @resource("x:a")
        def document():
            return value

        with pytest.raises(TypeError) as caught:
            document.embed()

        assert str(caught.value).startswith(
            f"resource 'document' ({document.location}) returned {value_text}"
        )
        assert ": return str or bytes" in str(caught.value)

    @pytest.mark.parametrize(
        ("value", "hint"),
        [
            (
                None,
                "str or bytes ('' for an empty document), or raise PromptError if it does not exist",
            ),
            (Text("a"), "str or bytes, such as its .text"),
        ],
    )
    def test_a_near_miss_has_a_specific_hint(self, value, hint):
        """Returning None or a `Text` raises an error with a specific hint."""
        with pytest.raises(TypeError) as caught:
            resource("x:a")(lambda: value).embed()

        assert str(caught.value).endswith(f": return {hint}")

    def test_the_functions_exception_reaches_the_caller(self):
        """An exception from the author's function reaches the caller unchanged."""

        @resource("x:a")
        def document() -> str:
            raise LookupError("gone")

        with pytest.raises(LookupError, match=r"^gone$"):
            document.embed()

    def test_a_prompt_can_contain_an_embedded_resource(self):
        """An embedded resource is a part of a prompt like any other content."""

        @prompt
        def explain(timeframe: str):
            return user("Explain:", logs.embed(timeframe))

        assert explain.render_wire({"timeframe": "1h"}) == user("Explain:", logs.embed("1h"))


class TestLink:
    def test_a_link_has_the_declared_metadata(self):
        """A link has the name, title, description and type of the declaration."""
        assert logs.link() == ResourceLink(
            "logs://recent",
            name="logs",
            title="Recent logs",
            description="What happened lately.",
            mime_type="text/plain",
        )

    def test_link_names_contain_the_values(self):
        """A link's name and title contain the values in its URI; a missing title stays missing."""
        link = logs.link("1h")

        assert (link.name, link.title) == ("logs: 1h", "Recent logs: 1h")
        assert str(link).startswith("[Recent logs: 1h](logs://recent?timeframe=1h) (logs: 1h, text/plain)")
        assert (chart.link("a b").name, chart.link("a b").title) == ("chart: a b", None)

    @pytest.mark.parametrize(
        ("value", "suffix"),
        [
            ("src/a b.py", ": src/a b.py"),
            ("休暇", ": 休暇"),
            ("50%", ": 50%"),
            ("a\n  b", ": a b"),
            ("x" * 201, f": {'x' * 200}..."),
            (5, ": 5"),
            (False, ": false"),
            (Level.WARNING, ": warn & more"),
            (dt.date(2026, 1, 31), ": 2026-01-31"),
            (["a", "b"], ": a,b"),
            ("", ""),
            (" ", ""),
            ([], ""),
            (None, ""),
        ],
        ids=str,
    )
    def test_values_in_link_names_are_readable(self, value, suffix):
        """Values in link names are unescaped, on one line and truncated."""
        assert make_resource("x:doc{?value}", value=value).link(value).name == f"function{suffix}"

    def test_values_in_link_names_have_the_order_of_the_parameters(self):
        """A link's name has the non-empty values in parameter order; a `:n` prefix shortens only the URI."""
        document = make_resource("x:{c:1}/{a}{?b}", a="", b="", c="")

        assert document.link("one", None, "three").name == "function: one, three"
        assert document.link(c="three", b="two", a="one").name == "function: one, two, three"

    def test_a_link_without_variables_has_the_name_of_the_resource(self):
        """A link to a resource without variables has the resource's name and title."""
        page = resource("x:a", title="The page")(lambda: "")

        assert (page.link().name, page.link().title) == (page.name, "The page")

    def test_link_does_not_call_the_function(self):
        """`link` does not call the function."""
        calls.clear()

        logs.link("1h")

        assert calls == []


class TestDeclaration:
    def test_a_direct_call_calls_the_function(self):
        """A declared resource can be called like the author's function."""
        assert logs("1h") == "logs of 1h"
        assert logs(timeframe="2h") == "logs of 2h"
        assert isinstance(logs, Resource)
        assert Resource is ResourceDeclaration

    def test_a_resource_looks_like_its_function(self):
        """A resource has the name, docstring, module and signature of its function."""
        function = logs.__wrapped__

        assert logs.__doc__ == function.__doc__
        assert inspect.signature(logs) == inspect.signature(function)
        assert (logs.__name__, logs.__qualname__, logs.__module__) == ("logs", "logs", function.__module__)

    def test_defaults_come_from_the_function(self):
        """By default, name and description come from the function; title and type stay None."""
        assert (chart.name, chart.description, chart.title, chart.mime_type) == ("chart", "Draw.", None, None)

    def test_options_override_the_function(self):
        """Options override the function's name and docstring."""
        document = resource("x:a", name="other", description="Else.")(chart.__wrapped__)

        assert (document.name, document.description) == ("other", "Else.")

    def test_the_contract_with_authors(self):
        """`@resource` takes the template first and everything else by name."""
        parameters = inspect.signature(resource).parameters.values()

        assert [str(p.replace(annotation=p.empty)) for p in parameters] == [
            "uri_template",
            "name=None",
            "title=None",
            "description=None",
            "mime_type=None",
            "scopes=()",
            "watch=None",
            "icons=()",
            "size=None",
            "**annotations",
        ]
        assert [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD] == ["uri_template"]

    def test_the_repr_contains_the_location(self):
        """The repr contains the template, file and line."""
        assert repr(logs) == f"<resource 'logs://recent{{?timeframe}}' at {logs.location}>"
        assert logs.location.file == __file__

    @pytest.mark.parametrize("value", [3, "logs", len, Level], ids=["int", "str", "builtin", "class"])
    def test_resource_takes_a_plain_function(self, value):
        """`@resource` rejects anything but a function written in Python."""
        with pytest.raises(
            TypeError, match=r"^@resource takes a plain function that returns str or bytes, not (?:an?|the) "
        ):
            resource("x:a")(value)

    def test_an_async_function_is_rejected(self):
        """An async function is rejected, because embedding is synchronous."""

        async def coroutine() -> str:
            return ""

        async def generator() -> str:
            yield ""

        for function in (coroutine, generator):
            with pytest.raises(TypeError, match=r"^@resource takes a plain function"):
                resource("x:a")(function)

    def test_a_decorator_without_a_template_is_rejected(self):
        """`@resource` without a template raises an error that names the missing argument."""
        with pytest.raises(TypeError, match="template"):

            @resource
            def document() -> str:
                return ""


class TestDiagnostics:
    def test_valid_resources_have_no_diagnostics(self):
        """Valid resources have no diagnostics."""
        assert logs.uri_errors == chart.uri_errors == ()

    @pytest.mark.parametrize(
        ("template", "parameters", "rule", "message", "hint"),
        [
            (
                "recent",
                {},
                Rule.BAD_TEMPLATE,
                "the template 'recent' has no scheme",
                "start it with a scheme, for example 'logs://recent{?timeframe}'",
            ),
            (
                "{scheme}:a",
                {"scheme": ""},
                Rule.BAD_TEMPLATE,
                "the template '{scheme}:a' has no scheme",
                "start it with a scheme, for example 'logs://recent{?timeframe}'",
            ),
            (
                "x:{a}",
                {},
                Rule.TEMPLATE_MISMATCH,
                "the template's variable 'a' is not a parameter of the function",
                "add a parameter 'a', or remove it from the template",
            ),
            (
                "x:a",
                {"b": ""},
                Rule.TEMPLATE_MISMATCH,
                "parameter 'b' is not in the template 'x:a'",
                "add '{?b}' to the template, so that the URI identifies the document",
            ),
        ],
        ids=["no scheme", "variable scheme", "no parameter", "no variable"],
    )
    def test_a_mismatch_has_a_hint(self, template, parameters, rule, message, hint):
        """A mismatch between template and function is reported with a hint on how to fix it."""
        (diagnostic,) = make_resource(template, **parameters).uri_errors

        assert diagnostic.rule is rule
        assert diagnostic.message == f"resource 'function': {message}"
        assert diagnostic.hint == hint

    @pytest.mark.parametrize(
        ("template", "parameters"),
        [
            ("x:{a", {"a": ""}),
            ("x:a}", {}),
            ("x:{}", {}),
            ("x:{a b}", {"a": ""}),
            ("x:{!a}", {"a": ""}),
            ("x:{a:0}", {"a": ""}),
            ("x:a b", {}),
            ("1x:a", {}),
            ("x:", {}),
        ],
        ids=[
            "open",
            "closed",
            "empty",
            "space in it",
            "reserved operator",
            "prefix of nothing",
            "space",
            "no scheme",
            "nothing",
        ],
    )
    def test_an_invalid_template_is_reported(self, template, parameters):
        """An invalid template is reported at compile time."""
        diagnostics = make_resource(template, **parameters).uri_errors

        assert Rule.BAD_TEMPLATE in [diagnostic.rule for diagnostic in diagnostics]

    @pytest.mark.parametrize(
        ("template", "escaped"),
        [
            ("x:a b", "x:a%20b"),
            ("notes://café/{name}", "notes://caf%C3%A9/{name}"),
            ('x:"{name}"', "x:%22{name}%22"),
        ],
    )
    def test_characters_to_escape(self, template, escaped):
        """The hint for characters that a URI cannot contain is the escaped template, which is valid."""
        parameters = {"name": ""} if "{" in template else {}
        (diagnostic,) = make_resource(template, **parameters).uri_errors

        assert diagnostic.hint == f"escape characters that a URI cannot contain: {escaped!r}"
        assert make_resource(escaped, **parameters).uri_errors == ()

    def test_a_malformed_template_has_no_hint_to_add_a_scheme(self):
        """A malformed template with a scheme does not get the hint to add one."""
        (diagnostic,) = make_resource("x:a b").uri_errors

        assert not diagnostic.hint.startswith("start it with a scheme")

    @settings(deadline=None)
    @given(st.text("x:/{}?&,*+é%2a A", max_size=8).map(lambda text: f"x:{text}"))
    @example("x:é")
    @example("x:%zz")
    @example("x:{:}")
    def test_a_valid_template_expands_to_a_uri(self, template):
        """Every template is either reported or expands to a URI that is valid in content."""
        values = dict.fromkeys(filter(str.isidentifier, re.findall(r"\w+", template)), "a b")
        values = {name: value for name, value in values.items() if name in template.partition("{")[2]}
        document = make_resource(template, **values)

        assert document.uri_errors or document.link(**values).uri

    def test_all_mismatches_are_reported_together(self):
        """Every unmatched variable and every unmatched parameter is reported in one pass."""
        document = make_resource("{a}{b}", c="", d="")

        assert [diagnostic.rule.name for diagnostic in document.uri_errors] == ["BAD_TEMPLATE"] + [
            "TEMPLATE_MISMATCH"
        ] * 4
        assert {diagnostic.location for diagnostic in document.uri_errors} == {document.location}

    @pytest.mark.parametrize(
        "use", [Resource.uri, Resource.embed, Resource.link], ids=lambda use: use.__name__
    )
    def test_an_invalid_resource_cannot_be_used(self, use):
        """Every use of an invalid resource raises its diagnostics."""
        document = make_resource("x:{a}")

        with pytest.raises(CompileError) as caught:
            use(document)

        assert caught.value.diagnostics == document.uri_errors

    def test_an_invalid_resource_can_still_be_called(self):
        """The function of an invalid resource can still be called."""

        @resource("x:{a}")
        def document() -> str:
            return "fine"

        assert document() == "fine"


@pytest.mark.parametrize(
    "render", [user, lambda value: prompt(name="p")(lambda: value).render()], ids=["user", "prompt"]
)
def test_a_resource_in_place_of_its_content(render):
    """Passing a resource as content raises an error that suggests `embed` and `link`."""
    with pytest.raises(TypeError, match=r"\.embed\(\.\.\.\).*\.link\(\.\.\.\)"):
        render(logs)


class Tone(enum.Enum):
    PLAIN = "plain"
    VERY_WARM = "very warm, and more"


@dataclass
class Point:
    x: int


@resource("values://all/{text}{?number,flag,day,tone,words,numbers,maybe}")
def values(
    *,
    text: str,
    number: int,
    flag: bool,
    day: dt.date,
    tone: Tone,
    words: list[str],
    numbers: list[int],
    maybe: int | None = None,
) -> str:
    """Return all of them."""
    return format_values(text, number, flag, day, tone, words, numbers, maybe)


def format_values(*parts):
    """Return the repr of all values, which shows their types."""
    return repr(parts)


def compile_resource(annotation, template="x:d{?a}"):
    """Return a compiled resource with one parameter of this type, whose function returns its repr."""

    @resource(template)
    def document(a):
        return repr(a)

    document.__wrapped__.__annotations__["a"] = annotation
    compiled, diagnostics = document.compile()
    assert diagnostics == ()
    return compiled


def read(compiled, uri):
    """Return what a client receives for this URI."""
    return Catalog(resources=(compiled,)).read(uri)


class TestCompile:
    def test_a_compiled_resource_has_the_served_metadata(self):
        """A compiled resource has all data that listing and reading need."""
        compiled, diagnostics = logs.compile()

        assert isinstance(compiled, CompiledResource)
        assert diagnostics == ()
        assert (
            compiled.uri_template,
            compiled.name,
            compiled.title,
            compiled.description,
            compiled.mime_type,
        ) == (
            "logs://recent{?timeframe}",
            "logs",
            "Recent logs",
            "What happened lately.",
            "text/plain",
        )
        assert [(argument.name, argument.required) for argument in compiled.arguments.ordered] == [
            ("timeframe", False)
        ]
        assert compiled.location == logs.location
        assert compiled.is_template

    def test_a_compiled_resource_is_a_value(self):
        """Compiling twice gives equal, immutable resources."""
        compiled, _ = logs.compile()

        assert compiled == logs.compile()[0]
        with pytest.raises(AttributeError):
            compiled.name = "other"

    def test_a_template_without_variables_matches_only_itself(self):
        """A template without variables matches only itself."""
        compiled, _ = resource("x:a")(lambda: "text").compile()

        assert not compiled.is_template
        assert (compiled.match("x:a"), compiled.match("x:b")) == ({}, None)
        assert read(compiled, "x:a") == EmbeddedResource("x:a", text="text")

    def test_parameters_keep_their_metadata(self):
        """Parameters have descriptions, defaults and completions, like those of a prompt."""

        @resource("x:{tone}{?day}")
        def document(
            tone: Annotated[Literal["plain", "warm"], Arg("How")],
            day: Annotated[str, Arg(complete=["a"])] = "",
        ) -> str:
            """
            Join both.

            Args:
                tone: Ignored, because the annotation has a description.
                day: When.
            """
            return tone + day

        compiled, _ = document.compile()
        tone, day = compiled.arguments.ordered

        assert (tone.description, tone.required) == ("How (one of plain, warm)", True)
        assert (day.description, day.required) == ("When.", False)
        assert compiled.arguments.completer("tone").complete("w").values == ("warm",)
        assert compiled.arguments.completer("day").complete("").values == ("a",)

    def test_a_parameter_without_annotation_is_text(self):
        """A parameter without annotation has the type of its default, or is text."""

        @resource("x:{a}{?b,c,d}")
        def document(a, b=None, c=3, d="d"):
            return repr((a, b, c, d))

        compiled, diagnostics = document.compile()

        assert diagnostics == ()
        assert read(compiled, "x:1").text == "('1', None, 3, 'd')"
        assert read(compiled, "x:1?d=4&c=5&b=6").text == "('1', '6', 5, '4')"

    def test_annotations_can_refer_to_local_names(self):
        """A string annotation can refer to a local name."""
        Local = Literal["yes"]  # noqa: N806 (a type)

        @resource("x:{a}")
        def document(a: "Local") -> str:
            return a

        assert Local
        assert document.compile()[1] == ()

    @pytest.mark.parametrize(
        ("annotation", "rule"),
        [(complex, Rule.UNSUPPORTED_TYPE), ("Nowhere", Rule.UNRESOLVED_ANNOTATION)],
        ids=["type", "name"],
    )
    def test_a_parameter_that_no_uri_can_fill_is_reported(self, annotation, rule):
        """A parameter of an unsupported type is reported, and the resource is not served."""

        @resource("x:{a}")
        def document(a):
            return a

        document.__wrapped__.__annotations__["a"] = annotation
        compiled, (diagnostic,) = document.compile()

        assert compiled is None
        assert diagnostic.rule is rule
        assert diagnostic.message.startswith("resource 'document': ")
        assert document.uri(1) == "x:1"

    def test_a_default_of_the_wrong_type_is_reported(self):
        """A default of the wrong type is reported."""

        @resource("x:{?a}")
        def document(a: int = "one") -> str:
            return str(a)

        assert [diagnostic.rule for diagnostic in document.compile()[1]] == [Rule.INVALID_DEFAULT]

    def test_all_errors_are_reported_together(self):
        """Errors in the template, its variables and the parameters are reported in one pass."""

        @resource("{scheme}:{?a}")
        def document(a: complex, context: Context) -> str:
            return ""

        compiled, diagnostics = document.compile()

        assert compiled is None
        assert [diagnostic.rule for diagnostic in diagnostics] == [
            Rule.BAD_TEMPLATE,
            Rule.TEMPLATE_MISMATCH,
            Rule.TEMPLATE_MISMATCH,
            Rule.UNSUPPORTED_TYPE,
        ]

    @pytest.mark.parametrize("option", ["name", "title", "description", "mime_type"])
    def test_metadata_that_cannot_be_encoded_is_reported(self, option):
        """Metadata that cannot be encoded is reported, so that it cannot break the list."""
        compiled, (diagnostic,) = resource("x:a", **{option: "\ud800"})(lambda: "").compile()

        assert compiled is None
        assert diagnostic.rule is Rule.BAD_METADATA

    @pytest.mark.parametrize("option", ["name", "title", "description", "mime_type"])
    def test_options_must_be_text(self, option):
        """An option that is not text raises at the decorator."""
        with pytest.raises(TypeError, match=rf"^{option} must be a str, not int$"):
            resource("x:a", **{option: 3})(lambda: "")


class TestCompiler:
    def test_resources_are_compiled_with_the_prompts(self):
        """The catalog contains the compiled resources."""
        catalog = compile(Recipes(resources=(logs, chart)))

        assert [compiled.uri_template for compiled in catalog.resources] == [
            "chart:{name}",
            "logs://recent{?timeframe}",
        ]
        assert catalog.diagnostics == ()
        assert catalog.read("chart:a") == chart.embed("a")

    def test_an_invalid_resource_is_reported_once(self):
        """An invalid resource is reported once in the catalog and is not served."""
        invalid = make_resource("x:{a}")

        catalog = compile(Recipes(resources=(invalid, logs)))

        assert catalog.diagnostics == invalid.uri_errors
        assert [compiled.name for compiled in catalog.resources] == ["logs"]

    def test_a_duplicate_template_is_an_error(self, recipes, tmp_path, monkeypatch):
        """A duplicate template is reported with both locations, and the first resource is served."""
        source = "from promptkit import resource\n\n@resource('x:a')\ndef {0}():\n    return '{0}'\n"
        folder = recipes(a=source.format("one"), b=source.format("two"))
        monkeypatch.chdir(tmp_path)

        catalog = compile(load(folder))

        (diagnostic,) = catalog.diagnostics
        assert str(diagnostic) == (
            "recipes/b.py:3: error PK403: resource 'two': 'x:a' is already defined at recipes/a.py:3\n"
            "    change the URI of one of them, or remove it"
        )
        assert catalog.read("x:a").text == "one"

    def test_a_duplicate_of_an_invalid_resource_is_reported(self, recipes):
        """
        A duplicate of an invalid resource is also reported, so that fixing the resource reveals no new error.
        """
        source = "from promptkit import resource\n\n@resource('x:a{?a}')\ndef "
        folder = recipes(a=source + "one(a: complex): ...\n", b=source + "two(a): ...\n")

        catalog = compile(load(folder))

        rules = [diagnostic.rule for diagnostic in catalog.diagnostics]
        assert rules == [Rule.UNSUPPORTED_TYPE, Rule.DUPLICATE_TEMPLATE]
        assert catalog.resources == ()

    def test_an_imported_resource_is_not_a_duplicate(self, recipes):
        """Importing a resource into another recipe file is not a duplicate."""
        folder = recipes(
            a="from promptkit import resource\n\n@resource('x:a')\ndef one():\n    return ''\n",
            b="from .a import one\n",
        )

        catalog = compile(load(folder))

        assert (len(catalog.resources), catalog.diagnostics) == (1, ())


TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
ARGUMENTS = st.fixed_dictionaries(
    {
        "text": TEXT,
        "number": st.integers(),
        "flag": st.booleans(),
        "day": st.dates(),
        "tone": st.sampled_from(Tone),
        "words": st.lists(TEXT, min_size=1),
        "numbers": st.lists(st.integers(), min_size=1),
        "maybe": st.none() | st.integers(),
    }
)
SAMPLE = {
    "text": "a",
    "number": 1,
    "flag": True,
    "day": dt.date(2026, 1, 31),
    "tone": Tone.VERY_WARM,
    "words": ["a, b"],
    "numbers": [5],
    "maybe": None,
}


class TestRead:
    @settings(deadline=None)
    @given(ARGUMENTS)
    @example(SAMPLE)
    @example({**SAMPLE, "words": [" [1]\n"], "numbers": [5, 6], "maybe": 0})
    def test_reading_a_uri_restores_its_values(self, arguments):
        """Reading a URI calls the function with the values that the URI was made from."""
        compiled, _ = values.compile()
        uri = values.uri(**arguments)
        expected = format_values(*(arguments[name] for name in inspect.signature(values).parameters))

        assert read(compiled, uri) == EmbeddedResource(uri, text=expected)

    @pytest.mark.parametrize(
        ("annotation", "template", "uri", "value"),
        [
            (list[int], "x:d{?a}", "x:d?a=1,2", [1, 2]),
            (list[int], "x:d{?a}", "x:d?a=1", [1]),
            (list[int], "x:d{?a}", "x:d?a=1%2C2", [1, 2]),
            (list[int], "x:d{?a}", "x:d?a=[1,2]", [1, 2]),
            (list[int], "x:d{?a}", "x:d?a=1&a=2", [1, 2]),
            (list[int], "x:d{?a*}", "x:d?a=1&a=2", [1, 2]),
            (list[str], "x:d{?a}", "x:d?a=b%2Cc", ["b,c"]),
            (list[str], "x:d{/a*}", "x:d/b/c", ["b", "c"]),
            (set[int], "x:{a}", "x:2,1", {1, 2}),
            (tuple[int, ...], "x:{a}", "x:1,2", (1, 2)),
            (list[int] | None, "x:d{?a}", "x:d?a=1,2", [1, 2]),
            (list[Tone], "x:d{?a}", "x:d?a=plain,VERY_WARM", [Tone.PLAIN, Tone.VERY_WARM]),
            (str, "x:{a}", "x:b,c", "b,c"),
            (str, "x:{a}", "x:5", "5"),
            (str, "x:d{?a}", "x:d?a=", ""),
            (str | None, "x:{a}", "x:b,c", "b,c"),
            (str, "x:{+a}", "x:b/c,d?e", "b/c,d?e"),
            (Path, "x:{+a}", "x:b/c", Path("b/c")),
            (int | str, "x:{a}", "x:5", 5),
            (dict[str, str], "x:d{?a*}", "x:d?b=1&c=2", {"b": "1", "c": "2"}),
            (dict[str, str], "x:d{?a}", "x:d?a=b,1,c,2", {"b": "1", "c": "2"}),
            (dict[str, int], "x:d{?a}", 'x:d?a={"b":1}', {"b": 1}),
            (Point, "x:{a}", "x:%7B%22x%22%3A1%7D", Point(1)),
            (list[Point], "x:{a}", "x:%7B%22x%22%3A1%7D,%7B%22x%22%3A2%7D", [Point(1), Point(2)]),
        ],
        ids=str,
    )
    def test_a_variable_is_parsed_according_to_its_type(self, annotation, template, uri, value):
        """The parameter's type determines whether commas separate values."""
        assert read(compile_resource(annotation, template), uri).text == repr(value)

    @pytest.mark.parametrize(
        ("uri", "errors"),
        [
            ("x:d?a=z,1", [("a", "[0]", "is 'z', not a whole number")]),
            ("x:d?a=z", [("a", "[0]", "is 'z', not a whole number")]),
            ("x:d", [("a", "", "is missing")]),
            ("x:d?a=", [("a", "", "is missing")]),
        ],
    )
    def test_invalid_variables_are_reported(self, uri, errors):
        """An invalid or missing variable raises ArgumentsError with the resource's name."""
        with pytest.raises(ArgumentsError) as caught:
            read(compile_resource(list[int]), uri)

        assert caught.value.prompt == "document"
        assert [(error.argument, error.path, error.reason) for error in caught.value.errors] == errors

    def test_all_invalid_variables_are_reported_together(self):
        """All invalid and missing variables are reported in one error."""
        compiled, _ = values.compile()

        with pytest.raises(ArgumentsError) as caught:
            read(compiled, "values://all/a?number=x&flag=y")

        assert [error.argument for error in caught.value.errors] == [
            "number",
            "flag",
            "day",
            "tone",
            "words",
            "numbers",
        ]

    def test_an_unknown_variable_is_reported(self):
        """An unknown variable is reported by name."""
        compiled, _ = logs.compile()

        with pytest.raises(ArgumentsError, match="'frame' is not an argument"):
            compiled.read("logs://recent", {"frame": "1h"})

    def test_binding_and_calling_are_two_steps(self):
        """`bind` and `content` together do what `read` does, so client errors can be distinguished."""
        compiled, _ = values.compile()
        uri = values.uri(**SAMPLE)

        arguments = compiled.bind(compiled.match(uri))

        assert arguments == {name: value for name, value in SAMPLE.items() if value is not None}
        assert compiled.content(uri, arguments) == compiled.read(uri, compiled.match(uri))

    @pytest.mark.parametrize(
        ("result", "mime_type", "expected"),
        [
            ("text", None, {"text": "text"}),
            ("text", "text/markdown", {"text": "text", "mime_type": "text/markdown"}),
            ("", None, {"text": ""}),
            (b"%PDF-1.7", None, {"blob": b"%PDF-1.7", "mime_type": "application/pdf"}),
            (b"%PDF-1.7", "text/plain", {"blob": b"%PDF-1.7", "mime_type": "text/plain"}),
            (b"\x01", None, {"blob": b"\x01", "mime_type": "application/octet-stream"}),
        ],
        ids=["text", "declared text", "no text", "bytes", "declared bytes", "unknown bytes"],
    )
    def test_the_type_is_declared_or_detected(self, result, mime_type, expected):
        """A declared type is used; otherwise, the type of bytes is detected and text has none."""
        compiled, _ = resource("x:a", mime_type=mime_type)(lambda: result).compile()

        assert read(compiled, "x:a") == EmbeddedResource("x:a", **expected)

    def test_the_result_has_the_requested_uri(self):
        """The result has the requested URI, with invalid characters escaped."""
        compiled = compile_resource(str, "x:{a}")

        assert read(compiled, "x:%61@b").uri == "x:%61@b"
        assert read(compiled, "x:é b").uri == "x:%C3%A9%20b"

    @pytest.mark.parametrize("value", [3, None, bytearray(b"a")], ids=["int", "None", "bytearray"])
    def test_an_unsupported_result_is_rejected(self, value):
        """An unsupported result raises the same error as with `embed`."""
        document = resource("x:a", name="document")(lambda: value)
        compiled, _ = document.compile()

        with pytest.raises(TypeError) as embedding:
            document.embed()
        with pytest.raises(TypeError) as reading:
            read(compiled, "x:a")

        assert str(reading.value) == str(embedding.value)

    def test_the_functions_exception_reaches_the_caller(self):
        """An exception from the author's function reaches the caller unchanged."""

        @resource("x:a")
        def document() -> str:
            raise LookupError("gone")

        with pytest.raises(LookupError, match=r"^gone$"):
            read(document.compile()[0], "x:a")

    def test_a_secret_is_not_shown(self):
        """The error about an invalid secret does not contain its value."""
        compiled = compile_resource(Annotated[int, Arg(secret=True)])

        with pytest.raises(ArgumentsError) as caught:
            read(compiled, "x:d?a=hunter2")

        assert "hunter2" not in repr(caught.value.errors)


class TestListedMetadata:
    """Icons, annotations and the size are listed if the revision defines them."""

    @staticmethod
    def listed(revision):
        """Return the listed entries of a resource and of a template."""

        @resource(
            "docs://handbook",
            icons=["https://example.com/book.svg"],
            size=1200,
            audience="user",
            priority=0.5,
            last_modified="2026-01-15T12:00:00Z",
        )
        def handbook() -> str:
            return "Text."

        @resource("docs://{page}", audience=["assistant"])
        def page(page: str) -> str:
            return page

        client = Client([handbook, page], revision=revision)
        (entry,), (template,) = client.list_resources(), client.list_resource_templates()
        return entry, template

    @pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
    def test_current_revisions(self, revision):
        """Current revisions list icons, annotations and the size."""
        entry, template = self.listed(revision)

        assert [icon.src for icon in entry.icons] == ["https://example.com/book.svg"]
        assert (entry.annotations.audience, entry.annotations.priority) == (("user",), 0.5)
        assert entry.annotations.last_modified == "2026-01-15T12:00:00Z"
        assert entry.size == 1200
        assert template.annotations.audience == ("assistant",)

    def test_oldest_revision(self):
        """The oldest revision has neither icons nor dates."""
        entry, _ = self.listed("2024-11-05")

        assert entry.icons == []
        assert (entry.annotations.priority, entry.annotations.last_modified, entry.size) == (0.5, None, 1200)

    @pytest.mark.parametrize(
        ("options", "error"),
        [
            ({"size": "12"}, TypeError),
            ({"size": True}, TypeError),
            ({"size": -1}, ValueError),
            ({"icons": "https://example.com/book.svg"}, TypeError),
            ({"priority": 2}, ValueError),
            ({"audience": "nobody"}, ValueError),
            ({"colour": "red"}, TypeError),
        ],
        ids=str,
    )
    def test_invalid_options(self, options, error):
        """An invalid option is an error at the declaration."""
        with pytest.raises(error):
            resource("docs://a", **options)

    def test_template_has_no_size(self):
        """A template serves many documents, which have no common size."""
        with pytest.raises(ValueError, match="size cannot be set for the template"):
            resource("docs://{page}", size=3)
