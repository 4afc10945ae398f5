import datetime as dt
import enum
import inspect
import re
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from promptkit import CompileError, EmbeddedResource, Resource, ResourceLink, prompt, resource, user
from promptkit.diagnostics import Rule
from promptkit.resources import Resource as Made

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
    """A resource with that template, whose function takes these parameters."""

    def function(**_): ...

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    function.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in parameters])
    return resource(template)(function)


#: RFC 6570, section 3.2: the variables that its examples share.
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

#: Examples of sections 3.2.2 to 3.2.9. The RFC leaves the order of keys open; here they are sorted.
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
        """
        The RFC's own examples come out as the RFC says.
        """
        from uritemplate import variables

        used = {name: VARIABLES[name] for name in variables(template)}

        assert taking(f"x:{template}", **used).uri(**used) == f"x:{expanded}"

    def test_arguments_go_by_position_and_by_name(self):
        """
        As in a call of the function.
        """
        assert logs.uri("1h") == logs.uri(timeframe="1h") == "logs://recent?timeframe=1h"

    @pytest.mark.parametrize("given", [(), (None,)], ids=["left out", "None"])
    def test_what_is_not_given_stays_out(self, given):
        """
        None and a default leave no trace in the URI.
        """
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
        """
        Not as Python would print them.
        """
        assert taking("x:{value}", value=value).uri(value) == f"x:{spelt}"

    @pytest.mark.parametrize(
        ("value", "spelt"),
        [({"b"}, "b"), (frozenset({1}), "1"), ([None, "a"], "a")],
        ids=["set", "frozenset", "None inside"],
    )
    def test_collections_leave_no_python_behind(self, value, spelt):
        """
        A set is a list of its members, and None within a list is nothing, as RFC 6570 has it.
        """
        assert taking("x:{value}", value=value).uri(value) == f"x:{spelt}"

    @pytest.mark.parametrize(
        ("args", "kwargs"), [(("1h", "2h"), {}), ((), {"frame": "1h"})], ids=["too many", "unknown"]
    )
    def test_a_wrong_call_is_a_type_error(self, args, kwargs):
        """
        Whatever the function would refuse, its URI refuses.
        """
        with pytest.raises(TypeError):
            logs.uri(*args, **kwargs)

    def test_a_required_argument_may_not_be_left_out(self):
        """
        The document would have no name.
        """
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
        """
        Nothing that is put into a template makes what content refuses as a URI.
        """
        made = taking("x:doc{?value}", value=value)

        assert made.link(value).uri == made.uri(value)


class TestEmbed:
    def test_text_is_embedded_with_its_uri(self):
        """
        The function is called, and what it returns travels in the message.
        """
        assert logs.embed("1h") == EmbeddedResource(
            "logs://recent?timeframe=1h", text="logs of 1h", mime_type="text/plain"
        )

    def test_bytes_are_embedded_with_their_type(self):
        """
        Their type is read from them if none is declared.
        """
        assert chart.embed("a") == EmbeddedResource(
            "chart:a", blob=b"%PDF-1.7\na", mime_type="application/pdf"
        )

    @pytest.mark.parametrize(
        ("value", "said"),
        [
            (3, "an int (3)"),
            (None, "a NoneType (None)"),
            (["a"], "a list (['a'])"),
            (bytearray(b"a"), "a bytearray"),
        ],
        ids=["int", "None", "list", "bytearray"],
    )
    def test_anything_else_is_refused(self, value, said):
        """
        The error names resource, place and fix, and nothing is turned into text silently.
        """

        @resource("x:a")
        def document():
            return value

        with pytest.raises(TypeError) as caught:
            document.embed()

        assert str(caught.value).startswith(f"resource 'document' ({document.location}) returned {said}")
        assert str(caught.value).endswith(": return str or bytes")

    def test_what_the_function_raises_arrives(self):
        """
        The author's own exception is not changed.
        """

        @resource("x:a")
        def document() -> str:
            raise LookupError("gone")

        with pytest.raises(LookupError, match=r"^gone$"):
            document.embed()

    def test_a_prompt_can_hold_it(self):
        """
        It is content like any other, and the call is the same.
        """

        @prompt
        def explain(timeframe: str):
            return user("Explain:", logs.embed(timeframe))

        assert explain.render_wire({"timeframe": "1h"}) == user("Explain:", logs.embed("1h"))


class TestLink:
    def test_it_says_what_the_author_said(self):
        """
        Name, title, description and type are those of the declaration.
        """
        assert logs.link("1h") == ResourceLink(
            "logs://recent?timeframe=1h",
            name="logs",
            title="Recent logs",
            description="What happened lately.",
            mime_type="text/plain",
        )

    def test_the_function_is_not_called(self):
        """
        A link to what is expensive costs nothing.
        """
        calls.clear()

        logs.link("1h")

        assert calls == []


class TestDeclaration:
    def test_calling_it_calls_the_function(self):
        """
        A declared resource is still the author's function.
        """
        assert logs("1h") == "logs of 1h"
        assert logs(timeframe="2h") == "logs of 2h"
        assert isinstance(logs, Resource)
        assert Resource is Made

    def test_it_looks_like_the_function(self):
        """
        Name, docstring, module and signature are the function's own.
        """
        function = logs.__wrapped__

        assert logs.__doc__ == function.__doc__
        assert inspect.signature(logs) == inspect.signature(function)
        assert (logs.__name__, logs.__qualname__, logs.__module__) == ("logs", "logs", function.__module__)

    def test_what_is_left_out_comes_from_the_function(self):
        """
        Its name and its docstring's summary; no title is made up.
        """
        assert (chart.name, chart.description, chart.title, chart.mime_type) == ("chart", "Draw.", None, None)

    def test_options_count_before_the_function(self):
        """
        As with prompts.
        """
        made = resource("x:a", name="other", description="Else.")(chart.__wrapped__)

        assert (made.name, made.description) == ("other", "Else.")

    def test_the_contract_with_authors(self):
        """
        The template comes first, all else by name.
        """
        parameters = inspect.signature(resource).parameters.values()

        assert [str(p.replace(annotation=p.empty)) for p in parameters] == [
            "uri_template",
            "name=None",
            "title=None",
            "description=None",
            "mime_type=None",
        ]
        assert [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY] == ["uri_template"]

    def test_its_repr_says_where_it_is(self):
        """
        The template, the file and the line.
        """
        assert repr(logs) == f"<resource 'logs://recent{{?timeframe}}' at {logs.location}>"
        assert logs.location.file == __file__

    @pytest.mark.parametrize("value", [3, "logs", len, Level], ids=["int", "str", "builtin", "class"])
    def test_it_takes_a_plain_function(self, value):
        """
        What is no function cannot be asked for its parameters.
        """
        with pytest.raises(
            TypeError, match=r"^@resource takes a plain function that returns str or bytes, not an? "
        ):
            resource("x:a")(value)

    def test_an_asynchronous_function_is_refused(self):
        """
        Embedding does not wait, so there is nothing that could be embedded.
        """

        async def later() -> str:
            return ""

        async def ever() -> str:
            yield ""

        for function in (later, ever):
            with pytest.raises(TypeError, match=r"^@resource takes a plain function"):
                resource("x:a")(function)

    def test_a_decorator_without_its_template(self):
        """
        The bare form of other decorators is told what is missing, at once.
        """
        with pytest.raises(TypeError, match="template"):

            @resource
            def document() -> str:
                return ""


class TestDiagnostics:
    def test_a_sound_one_has_none(self):
        """
        Nothing is reported of what is right.
        """
        assert logs.diagnostics == chart.diagnostics == ()

    @pytest.mark.parametrize(
        ("template", "parameters", "rule", "message", "remedy"),
        [
            (
                "recent",
                {},
                Rule.BAD_TEMPLATE,
                "the template 'recent' has no scheme",
                "begin it as a URI begins, as in 'logs://recent{?timeframe}'",
            ),
            (
                "{scheme}:a",
                {"scheme": ""},
                Rule.BAD_TEMPLATE,
                "the template '{scheme}:a' has no scheme",
                "begin it as a URI begins, as in 'logs://recent{?timeframe}'",
            ),
            (
                "x:{a}",
                {},
                Rule.TEMPLATE_MISMATCH,
                "the template's variable 'a' is no parameter of the function",
                "add a parameter 'a', or take it out of the template",
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
    def test_a_fault_has_a_remedy(self, template, parameters, rule, message, remedy):
        """
        Template and function have to agree, and the error says on which side to mend it.
        """
        (found,) = taking(template, **parameters).diagnostics

        assert found.rule is rule
        assert found.message == f"resource 'function': {message}"
        assert found.remedy == remedy

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
        """
        What could never make a URI is found when it is compiled, not when it is used.
        """
        found = taking(template, **parameters).diagnostics

        assert Rule.BAD_TEMPLATE in [diagnostic.rule for diagnostic in found]

    def test_a_malformed_one_is_not_told_to_have_a_scheme(self):
        """
        The remedy is for what is wrong.
        """
        (found,) = taking("x:a b").diagnostics

        assert not found.remedy.startswith("begin it as a URI begins")

    @settings(deadline=None)
    @given(st.text("x:/{}?&,*+é%2a A", max_size=8).map(lambda text: f"x:{text}"))
    @example("x:é")
    @example("x:%zz")
    @example("x:{:}")
    def test_a_template_without_faults_gives_a_uri(self, template):
        """
        Whatever the template: it is reported, or every use of it makes what content takes as a URI.
        """
        values = dict.fromkeys(filter(str.isidentifier, re.findall(r"\w+", template)), "a b")
        values = {name: value for name, value in values.items() if name in template.partition("{")[2]}
        made = taking(template, **values)

        assert made.diagnostics or made.link(**values).uri

    def test_all_are_found_at_once(self):
        """
        Each variable and each parameter that has no partner is one fault.
        """
        made = taking("{a}{b}", c="", d="")

        assert [diagnostic.rule.name for diagnostic in made.diagnostics] == ["BAD_TEMPLATE"] + [
            "TEMPLATE_MISMATCH"
        ] * 4
        assert {diagnostic.location for diagnostic in made.diagnostics} == {made.location}

    @pytest.mark.parametrize(
        "use", [Resource.uri, Resource.embed, Resource.link], ids=lambda use: use.__name__
    )
    def test_a_faulty_one_cannot_be_used(self, use):
        """
        Every use says what is wrong, before the function is called.
        """
        made = taking("x:{a}")

        with pytest.raises(CompileError) as caught:
            use(made)

        assert caught.value.diagnostics == made.diagnostics

    def test_it_can_still_be_called(self):
        """
        The function itself is fine.
        """

        @resource("x:{a}")
        def document() -> str:
            return "fine"

        assert document() == "fine"


@pytest.mark.parametrize(
    "say", [user, lambda value: prompt(name="p")(lambda: value).render()], ids=["user", "prompt"]
)
def test_a_resource_in_place_of_its_content(say):
    """
    Whoever forgets to embed or link it is told of both.
    """
    with pytest.raises(TypeError, match=r"\.embed\(\.\.\.\).*\.link\(\.\.\.\)"):
        say(logs)
