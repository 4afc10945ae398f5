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
from promptkit.declarations.resources import Resource as Made
from promptkit.errors.rules import Rule
from promptkit.loader.loader import load
from promptkit.loader.recipes import Recipes

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


def taking(template, **parameters):
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
    def test_templates_expand_as_rfc_6570_has_it(self, template, expanded):
        """The examples of RFC 6570 expand as the RFC specifies."""
        from uritemplate import variables

        used = {name: VARIABLES[name] for name in variables(template)}

        assert taking(f"x:{template}", **used).uri(**used) == f"x:{expanded}"

    def test_arguments_go_by_position_and_by_name(self):
        """`uri` takes arguments by position and by name, like the function."""
        assert logs.uri("1h") == logs.uri(timeframe="1h") == "logs://recent?timeframe=1h"

    @pytest.mark.parametrize("given", [(), (None,)], ids=["left out", "None"])
    def test_what_is_not_given_stays_out(self, given):
        """An omitted or None argument does not appear in the URI."""
        assert logs.uri(*given) == "logs://recent"

    @pytest.mark.parametrize(
        ("value", "spelt"),
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
    def test_values_are_spelt_as_uris_spell_them(self, value, spelt):
        """Values are formatted as is usual in URIs, not with Python's str()."""
        assert taking("x:{value}", value=value).uri(value) == f"x:{spelt}"

    @pytest.mark.parametrize(
        ("value", "spelt"),
        [({"b"}, "b"), (frozenset({1}), "1"), ([None, "a"], "a")],
        ids=["set", "frozenset", "None inside"],
    )
    def test_collections_leave_no_python_behind(self, value, spelt):
        """A set expands like a list, and None within a list is omitted, as RFC 6570 specifies."""
        assert taking("x:{value}", value=value).uri(value) == f"x:{spelt}"

    @pytest.mark.parametrize(
        ("args", "kwargs"), [(("1h", "2h"), {}), ((), {"frame": "1h"})], ids=["too many", "unknown"]
    )
    def test_a_wrong_call_is_a_type_error(self, args, kwargs):
        """`uri` raises a TypeError for any arguments that the function would not accept."""
        with pytest.raises(TypeError):
            logs.uri(*args, **kwargs)

    def test_a_required_argument_may_not_be_left_out(self):
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
        made = taking("x:doc{?value}", value=value)

        assert made.link(value).uri == made.uri(value)

    @pytest.mark.skipif(sys.version_info < (3, 14), reason="annotations are evaluated late since Python 3.14")
    def test_a_return_type_for_type_checkers_alone(self, recipes):
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

        (made,) = load(recipes(one=source)).resources

        assert made.uri() == "x:a"


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
        ("value", "said"),
        [
            (3, "an int (3)"),
            (None, "None"),
            (["a"], "a list (['a'])"),
            (bytearray(b"a"), "a bytearray"),
        ],
        ids=["int", "None", "list", "bytearray"],
    )
    def test_anything_else_is_refused(self, value, said):
        """Any other result raises a TypeError with the resource, its location and a fix."""

        @resource("x:a")
        def document():
            return value

        with pytest.raises(TypeError) as caught:
            document.embed()

        assert str(caught.value).startswith(f"resource 'document' ({document.location}) returned {said}")
        assert ": return str or bytes" in str(caught.value)

    @pytest.mark.parametrize(
        ("value", "hint"),
        [
            (None, "str or bytes, '' for an empty document; raise PromptError if it does not exist"),
            (Text("a"), "str or bytes, such as its .text"),
        ],
    )
    def test_what_is_nearly_one_has_a_hint(self, value, hint):
        """Returning None or a `Text` raises an error with a specific hint."""
        with pytest.raises(TypeError) as caught:
            resource("x:a")(lambda: value).embed()

        assert str(caught.value).endswith(f": return {hint}")

    def test_what_the_function_raises_arrives(self):
        """An exception from the author's function reaches the caller unchanged."""

        @resource("x:a")
        def document() -> str:
            raise LookupError("gone")

        with pytest.raises(LookupError, match=r"^gone$"):
            document.embed()

    def test_a_prompt_can_hold_it(self):
        """An embedded resource is a part of a prompt like any other content."""

        @prompt
        def explain(timeframe: str):
            return user("Explain:", logs.embed(timeframe))

        assert explain.render_wire({"timeframe": "1h"}) == user("Explain:", logs.embed("1h"))


class TestLink:
    def test_it_says_what_the_author_said(self):
        """A link has the name, title, description and type of the declaration."""
        assert logs.link() == ResourceLink(
            "logs://recent",
            name="logs",
            title="Recent logs",
            description="What happened lately.",
            mime_type="text/plain",
        )

    def test_links_of_one_template_are_told_apart(self):
        """A link's name and title contain the values in its URI; a missing title stays missing."""
        made = logs.link("1h")

        assert (made.name, made.title) == ("logs: 1h", "Recent logs: 1h")
        assert str(made).startswith("[Recent logs: 1h](logs://recent?timeframe=1h) (logs: 1h, text/plain)")
        assert (chart.link("a b").name, chart.link("a b").title) == ("chart: a b", None)

    @pytest.mark.parametrize(
        ("value", "shown"),
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
    def test_values_are_written_for_people(self, value, shown):
        """Values in link names are unescaped, on one line and truncated."""
        assert taking("x:doc{?value}", value=value).link(value).name == f"function{shown}"

    def test_several_values_stand_in_the_order_of_the_parameters(self):
        """A link's name has the non-empty values in parameter order; a `:n` prefix shortens only the URI."""
        made = taking("x:{c:1}/{a}{?b}", a="", b="", c="")

        assert made.link("one", None, "three").name == "function: one, three"
        assert made.link(c="three", b="two", a="one").name == "function: one, two, three"

    def test_one_document_is_called_what_it_is_called(self):
        """A link to a resource without variables has the resource's name and title."""
        made = resource("x:a", title="The page")(lambda: "")

        assert (made.link().name, made.link().title) == (made.name, "The page")

    def test_the_function_is_not_called(self):
        """`link` does not call the function."""
        calls.clear()

        logs.link("1h")

        assert calls == []


class TestDeclaration:
    def test_calling_it_calls_the_function(self):
        """A declared resource can be called like the author's function."""
        assert logs("1h") == "logs of 1h"
        assert logs(timeframe="2h") == "logs of 2h"
        assert isinstance(logs, Resource)
        assert Resource is Made

    def test_it_looks_like_the_function(self):
        """A resource has the name, docstring, module and signature of its function."""
        function = logs.__wrapped__

        assert logs.__doc__ == function.__doc__
        assert inspect.signature(logs) == inspect.signature(function)
        assert (logs.__name__, logs.__qualname__, logs.__module__) == ("logs", "logs", function.__module__)

    def test_what_is_left_out_comes_from_the_function(self):
        """By default, name and description come from the function; title and type stay None."""
        assert (chart.name, chart.description, chart.title, chart.mime_type) == ("chart", "Draw.", None, None)

    def test_options_count_before_the_function(self):
        """Options override the function's name and docstring."""
        made = resource("x:a", name="other", description="Else.")(chart.__wrapped__)

        assert (made.name, made.description) == ("other", "Else.")

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
        ]
        assert [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY] == ["uri_template"]

    def test_its_repr_says_where_it_is(self):
        """The repr contains the template, file and line."""
        assert repr(logs) == f"<resource 'logs://recent{{?timeframe}}' at {logs.location}>"
        assert logs.location.file == __file__

    @pytest.mark.parametrize("value", [3, "logs", len, Level], ids=["int", "str", "builtin", "class"])
    def test_it_takes_a_plain_function(self, value):
        """`@resource` rejects anything but a function written in Python."""
        with pytest.raises(
            TypeError, match=r"^@resource takes a plain function that returns str or bytes, not (?:an?|the) "
        ):
            resource("x:a")(value)

    def test_an_asynchronous_function_is_refused(self):
        """An async function is rejected, because embedding is synchronous."""

        async def later() -> str:
            return ""

        async def ever() -> str:
            yield ""

        for function in (later, ever):
            with pytest.raises(TypeError, match=r"^@resource takes a plain function"):
                resource("x:a")(function)

    def test_a_decorator_without_its_template(self):
        """`@resource` without a template raises an error that names the missing argument."""
        with pytest.raises(TypeError, match="template"):

            @resource
            def document() -> str:
                return ""


class TestDiagnostics:
    def test_a_sound_one_has_none(self):
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
                "begin it with a scheme, as in 'logs://recent{?timeframe}'",
            ),
            (
                "{scheme}:a",
                {"scheme": ""},
                Rule.BAD_TEMPLATE,
                "the template '{scheme}:a' has no scheme",
                "begin it with a scheme, as in 'logs://recent{?timeframe}'",
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
                "add '{?b}' to the template, so that the URI names the document",
            ),
        ],
        ids=["no scheme", "variable scheme", "no parameter", "no variable"],
    )
    def test_a_fault_has_a_hint(self, template, parameters, rule, message, hint):
        """A mismatch between template and function is reported with a hint on how to fix it."""
        (found,) = taking(template, **parameters).uri_errors

        assert found.rule is rule
        assert found.message == f"resource 'function': {message}"
        assert found.hint == hint

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
    def test_what_is_no_template_is_reported(self, template, parameters):
        """An invalid template is reported at compile time."""
        found = taking(template, **parameters).uri_errors

        assert Rule.BAD_TEMPLATE in [diagnostic.rule for diagnostic in found]

    def test_a_malformed_one_is_not_told_to_have_a_scheme(self):
        """A malformed template with a scheme does not get the hint to add one."""
        (found,) = taking("x:a b").uri_errors

        assert not found.hint.startswith("begin it with a scheme")

    @settings(deadline=None)
    @given(st.text("x:/{}?&,*+é%2a A", max_size=8).map(lambda text: f"x:{text}"))
    @example("x:é")
    @example("x:%zz")
    @example("x:{:}")
    def test_a_template_without_faults_gives_a_uri(self, template):
        """Every template is either reported or expands to a URI that is valid in content."""
        values = dict.fromkeys(filter(str.isidentifier, re.findall(r"\w+", template)), "a b")
        values = {name: value for name, value in values.items() if name in template.partition("{")[2]}
        made = taking(template, **values)

        assert made.uri_errors or made.link(**values).uri

    def test_all_are_found_at_once(self):
        """Every unmatched variable and every unmatched parameter is reported in one pass."""
        made = taking("{a}{b}", c="", d="")

        assert [diagnostic.rule.name for diagnostic in made.uri_errors] == ["BAD_TEMPLATE"] + [
            "TEMPLATE_MISMATCH"
        ] * 4
        assert {diagnostic.location for diagnostic in made.uri_errors} == {made.location}

    @pytest.mark.parametrize(
        "use", [Resource.uri, Resource.embed, Resource.link], ids=lambda use: use.__name__
    )
    def test_a_faulty_one_cannot_be_used(self, use):
        """Every use of an invalid resource raises its diagnostics."""
        made = taking("x:{a}")

        with pytest.raises(CompileError) as caught:
            use(made)

        assert caught.value.diagnostics == made.uri_errors

    def test_it_can_still_be_called(self):
        """The function of an invalid resource can still be called."""

        @resource("x:{a}")
        def document() -> str:
            return "fine"

        assert document() == "fine"


@pytest.mark.parametrize(
    "say", [user, lambda value: prompt(name="p")(lambda: value).render()], ids=["user", "prompt"]
)
def test_a_resource_in_place_of_its_content(say):
    """Passing a resource as content raises an error that suggests `embed` and `link`."""
    with pytest.raises(TypeError, match=r"\.embed\(\.\.\.\).*\.link\(\.\.\.\)"):
        say(logs)


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
    return shown(text, number, flag, day, tone, words, numbers, maybe)


def shown(*parts):
    """Return the repr of all values, which shows their types."""
    return repr(parts)


def made_of(annotation, template="x:d{?a}"):
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
    def test_it_holds_what_is_served(self):
        """A compiled resource has all data that listing and reading need."""
        made, diagnostics = logs.compile()

        assert isinstance(made, CompiledResource)
        assert diagnostics == ()
        assert (made.uri_template, made.name, made.title, made.description, made.mime_type) == (
            "logs://recent{?timeframe}",
            "logs",
            "Recent logs",
            "What happened lately.",
            "text/plain",
        )
        assert [(argument.name, argument.required) for argument in made.arguments.ordered] == [
            ("timeframe", False)
        ]
        assert made.location == logs.location
        assert made.is_template

    def test_it_is_a_value(self):
        """Compiling twice gives equal, immutable resources."""
        made, _ = logs.compile()

        assert made == logs.compile()[0]
        with pytest.raises(AttributeError):
            made.name = "other"

    def test_a_document_of_its_own_has_no_variables(self):
        """A template without variables matches only itself."""
        made, _ = resource("x:a")(lambda: "text").compile()

        assert not made.is_template
        assert (made.match("x:a"), made.match("x:b")) == ({}, None)
        assert read(made, "x:a") == EmbeddedResource("x:a", text="text")

    def test_what_is_said_of_a_parameter_is_kept(self):
        """Parameters have descriptions, defaults and completions, like those of a prompt."""

        @resource("x:{tone}{?day}")
        def document(
            tone: Annotated[Literal["plain", "warm"], Arg("How")],
            day: Annotated[str, Arg(complete=["a"])] = "",
        ) -> str:
            """
            Say it.

            Args:
                tone: Not heeded, as its annotation says more.
                day: When.
            """
            return tone + day

        made, _ = document.compile()
        tone, day = made.arguments.ordered

        assert (tone.description, tone.required) == ("How (one of plain, warm)", True)
        assert (day.description, day.required) == ("When.", False)
        assert made.arguments.completer("tone").complete("w").values == ("warm",)
        assert made.arguments.completer("day").complete("").values == ("a",)

    def test_a_parameter_without_annotation_is_text(self):
        """A parameter without annotation has the type of its default, or is text."""

        @resource("x:{a}{?b,c,d}")
        def document(a, b=None, c=3, d="d"):
            return repr((a, b, c, d))

        made, diagnostics = document.compile()

        assert diagnostics == ()
        assert read(made, "x:1").text == "('1', None, 3, 'd')"
        assert read(made, "x:1?d=4&c=5&b=6").text == "('1', '6', 5, '4')"

    def test_annotations_may_name_what_is_local(self):
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
        """A parameter of an unsupported type is reported as for a prompt, and the resource is not served."""

        @resource("x:{a}")
        def document(a):
            return a

        document.__wrapped__.__annotations__["a"] = annotation
        made, (found,) = document.compile()

        assert made is None
        assert found.rule is rule
        assert found.message.startswith("resource 'document': ")
        assert document.uri(1) == "x:1"

    def test_a_default_of_another_type_is_reported(self):
        """A default of the wrong type is reported."""

        @resource("x:{?a}")
        def document(a: int = "one") -> str:
            return str(a)

        assert [found.rule for found in document.compile()[1]] == [Rule.DEFAULT_MISFIT]

    def test_all_faults_are_found_at_once(self):
        """Errors in the template, its variables and the parameters are reported in one pass."""

        @resource("{scheme}:{?a}")
        def document(a: complex, context: Context) -> str:
            return ""

        made, found = document.compile()

        assert made is None
        assert [diagnostic.rule for diagnostic in found] == [
            Rule.BAD_TEMPLATE,
            Rule.TEMPLATE_MISMATCH,
            Rule.TEMPLATE_MISMATCH,
            Rule.UNSUPPORTED_TYPE,
        ]

    @pytest.mark.parametrize("option", ["name", "title", "description", "mime_type"])
    def test_what_could_not_be_listed_is_reported(self, option):
        """Metadata that cannot be encoded is reported, so that it cannot break the list."""
        made, (found,) = resource("x:a", **{option: "\ud800"})(lambda: "").compile()

        assert made is None
        assert found.rule is Rule.BAD_METADATA

    @pytest.mark.parametrize("option", ["name", "title", "description", "mime_type"])
    def test_options_are_text(self, option):
        """An option that is not text raises at the decorator."""
        with pytest.raises(TypeError, match=rf"^{option} takes a str, not int$"):
            resource("x:a", **{option: 3})(lambda: "")


class TestCompiler:
    def test_resources_are_compiled_with_the_prompts(self):
        """The catalog contains the compiled resources."""
        catalog = compile(Recipes(resources=(logs, chart)))

        assert [made.uri_template for made in catalog.resources] == [
            "chart:{name}",
            "logs://recent{?timeframe}",
        ]
        assert catalog.diagnostics == ()
        assert catalog.read("chart:a") == chart.embed("a")

    def test_one_fault_is_told_once(self):
        """An invalid resource is reported once in the catalog and is not served."""
        bad = taking("x:{a}")

        catalog = compile(Recipes(resources=(bad, logs)))

        assert catalog.diagnostics == bad.uri_errors
        assert [made.name for made in catalog.resources] == ["logs"]

    def test_two_of_one_template_are_an_error(self, recipes, tmp_path, monkeypatch):
        """A duplicate template is reported with both locations, and the first resource is served."""
        source = "from promptkit import resource\n\n@resource('x:a')\ndef {0}():\n    return '{0}'\n"
        folder = recipes(a=source.format("one"), b=source.format("two"))
        monkeypatch.chdir(tmp_path)

        catalog = compile(load(folder))

        (found,) = catalog.diagnostics
        assert str(found) == (
            "recipes/b.py:3: error PK403: resource 'two': 'x:a' is already defined at recipes/a.py:3\n"
            "    change the URI of one of the two, or remove it"
        )
        assert catalog.read("x:a").text == "one"

    def test_a_template_is_taken_also_by_a_resource_at_fault(self, recipes):
        """A duplicate of an invalid resource is reported too, so fixing the first reveals no new error."""
        source = "from promptkit import resource\n\n@resource('x:a{?a}')\ndef "
        folder = recipes(a=source + "one(a: complex): ...\n", b=source + "two(a): ...\n")

        catalog = compile(load(folder))

        rules = [diagnostic.rule for diagnostic in catalog.diagnostics]
        assert rules == [Rule.UNSUPPORTED_TYPE, Rule.DUPLICATE_TEMPLATE]
        assert catalog.resources == ()

    def test_a_resource_that_two_recipes_hold_is_one(self, recipes):
        """Importing a resource into another recipe file is not a duplicate."""
        folder = recipes(
            a="from promptkit import resource\n\n@resource('x:a')\ndef one():\n    return ''\n",
            b="from .a import one\n",
        )

        catalog = compile(load(folder))

        assert (len(catalog.resources), catalog.diagnostics) == (1, ())


TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
DRAWN = st.fixed_dictionaries(
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
SOME = {
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
    @given(DRAWN)
    @example(SOME)
    @example({**SOME, "words": [" [1]\n"], "numbers": [5, 6], "maybe": 0})
    def test_a_uri_is_read_as_what_it_was_made_from(self, drawn):
        """Reading a URI calls the function with the values that the URI was made from."""
        compiled, _ = values.compile()
        uri = values.uri(**drawn)
        expected = shown(*(drawn[name] for name in inspect.signature(values).parameters))

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
    def test_a_variable_is_read_as_its_type_has_it(self, annotation, template, uri, value):
        """The parameter's type determines whether commas separate values."""
        assert read(made_of(annotation, template), uri).text == repr(value)

    @pytest.mark.parametrize(
        ("uri", "faults"),
        [
            ("x:d?a=z,1", [("a", "[0]", "is 'z', not a whole number")]),
            ("x:d?a=z", [("a", "[0]", "is 'z', not a whole number")]),
            ("x:d", [("a", "", "is missing")]),
            ("x:d?a=", [("a", "", "is missing")]),
        ],
    )
    def test_what_does_not_fit_is_told(self, uri, faults):
        """An invalid or missing variable raises ArgumentsError with the resource's name."""
        with pytest.raises(ArgumentsError) as caught:
            read(made_of(list[int]), uri)

        assert caught.value.prompt == "document"
        assert [(fault.argument, fault.path, fault.reason) for fault in caught.value.errors] == faults

    def test_all_faults_are_told_at_once(self):
        """All invalid and missing variables are reported in one error."""
        compiled, _ = values.compile()

        with pytest.raises(ArgumentsError) as caught:
            read(compiled, "values://all/a?number=x&flag=y")

        assert [fault.argument for fault in caught.value.errors] == [
            "number",
            "flag",
            "day",
            "tone",
            "words",
            "numbers",
        ]

    def test_an_unknown_variable_is_told(self):
        """An unknown variable is reported by name."""
        compiled, _ = logs.compile()

        with pytest.raises(ArgumentsError, match="'frame' is not an argument"):
            compiled.read("logs://recent", {"frame": "1h"})

    def test_binding_and_calling_are_two_steps(self):
        """`bind` and `content` together do what `read` does; in between, client errors can be told apart."""
        compiled, _ = values.compile()
        uri = values.uri(**SOME)

        bound = compiled.bind(compiled.match(uri))

        assert bound == {name: value for name, value in SOME.items() if value is not None}
        assert compiled.content(uri, bound) == compiled.read(uri, compiled.match(uri))

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
    def test_the_type_is_declared_or_read(self, result, mime_type, expected):
        """A declared type is used; otherwise, the type of bytes is detected and text has none."""
        compiled, _ = resource("x:a", mime_type=mime_type)(lambda: result).compile()

        assert read(compiled, "x:a") == EmbeddedResource("x:a", **expected)

    def test_the_uri_is_what_was_asked_for(self):
        """The result has the requested URI, with invalid characters escaped."""
        compiled = made_of(str, "x:{a}")

        assert read(compiled, "x:%61@b").uri == "x:%61@b"
        assert read(compiled, "x:é b").uri == "x:%C3%A9%20b"

    @pytest.mark.parametrize("value", [3, None, bytearray(b"a")], ids=["int", "None", "bytearray"])
    def test_what_is_no_document_is_refused(self, value):
        """An unsupported result raises the same error as embedding it."""
        made = resource("x:a", name="document")(lambda: value)
        compiled, _ = made.compile()

        with pytest.raises(TypeError) as embedding:
            made.embed()
        with pytest.raises(TypeError) as reading:
            read(compiled, "x:a")

        assert str(reading.value) == str(embedding.value)

    def test_what_the_function_raises_arrives(self):
        """An exception from the author's function reaches the caller unchanged."""

        @resource("x:a")
        def document() -> str:
            raise LookupError("gone")

        with pytest.raises(LookupError, match=r"^gone$"):
            read(document.compile()[0], "x:a")

    def test_a_secret_is_not_repeated(self):
        """The error about an invalid secret does not contain its value."""
        compiled = made_of(Annotated[int, Arg(secret=True)])

        with pytest.raises(ArgumentsError) as caught:
            read(compiled, "x:d?a=hunter2")

        assert "hunter2" not in repr(caught.value.errors)
