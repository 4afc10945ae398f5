"""Arguments whose default comes from an environment variable of the server."""

import json
from dataclasses import dataclass
from typing import Annotated

import pytest
from msgspec import Meta

from promptkit import Arg, ArgumentsError, prompt, resource
from promptkit.catalog.redaction import HIDDEN, Redactor
from promptkit.cli import main
from promptkit.compiler.compilation import compile
from promptkit.loader.recipes import Recipes
from promptkit.server.elicitation import askable_arguments
from tests.wire import Client


@dataclass
class Point:
    x: int
    y: int


def make_prompt(annotation, *default):
    """Build a prompt with one parameter, optionally with a default in the function."""

    def env(value=None) -> str:
        return repr(value)

    env.__annotations__["value"] = annotation
    env.__defaults__ = default
    return prompt(env)


TEXT = Annotated[str, Arg("The team", env="VALUE")]
NUMBER = Annotated[int, Arg(env="VALUE")]


class TestRequests:
    @pytest.mark.parametrize(
        ("annotation", "variable", "value"),
        [
            (str, "core", "core"),
            (int, "1_000", 1000),
            (bool, "yes", True),
            (list[int], "1, 2", [1, 2]),
            (int | None, "5", 5),
            (Point, '{"x": 1, "y": 2}', Point(1, 2)),
            (str, "", ""),
            (str, "a\udcffb", "a?b"),
        ],
        ids=str,
    )
    def test_variable_is_converted_like_an_argument(self, annotation, variable, value, monkeypatch):
        """A variable's text is converted like an argument from a client."""
        monkeypatch.setenv("VALUE", variable)

        assert make_prompt(Annotated[annotation, Arg(env="VALUE")]).compiled.arguments.read({}) == {
            "value": value
        }

    def test_argument_takes_precedence_over_the_variable(self, monkeypatch):
        """A client's argument comes first, then the environment, then the function's default."""
        team = make_prompt(TEXT, "own")
        monkeypatch.setenv("VALUE", "environment")
        renderings = [team.render_wire({"value": "sent"}).text, team.render_wire().text]
        monkeypatch.delenv("VALUE")
        renderings.append(team.render_wire().text)

        assert renderings == ["'sent'", "'environment'", "'own'"]

    def test_variable_is_read_for_each_request(self, monkeypatch):
        """The variable is read for each request."""
        team = make_prompt(TEXT)
        compiled = team.compiled
        monkeypatch.setenv("VALUE", "one")
        first = compiled.render().text
        monkeypatch.setenv("VALUE", "two")

        assert (first, compiled.render().text) == ("'one'", "'two'")

    @pytest.mark.parametrize("variable", [None, ""], ids=["unset", "empty"])
    def test_missing_value(self, variable, monkeypatch):
        """If there is no value, the error names the variable; an empty variable is a value only for text."""
        monkeypatch.delenv("VALUE", raising=False)
        if variable is not None:
            monkeypatch.setenv("VALUE", variable)

        with pytest.raises(ArgumentsError) as caught:
            make_prompt(NUMBER).render_wire()

        assert str(caught.value) == (
            "prompt 'env': 'value' is missing, and the environment variable VALUE is not set"
        )

    @pytest.mark.parametrize(
        ("annotation", "arg", "variable", "error"),
        [
            (int, {}, "many", "'value' is read from $VALUE and is 'many', not a whole number"),
            (
                Point,
                {},
                '{"x": "a"}',
                (
                    "'value.x' is read from $VALUE and is 'a', not a whole number; "
                    "'value.y' is read from $VALUE and is missing"
                ),
            ),
            (
                Annotated[int, Meta(ge=1)],
                {"secret": True},
                "0",
                "'value' is read from $VALUE and is not a whole number of at least 1",
            ),
        ],
        ids=["number", "record", "secret"],
    )
    def test_error_names_the_variable(self, annotation, arg, variable, error, monkeypatch):
        """An error in a variable's value names the variable."""
        monkeypatch.setenv("VALUE", variable)

        with pytest.raises(ArgumentsError) as caught:
            make_prompt(Annotated[annotation, Arg(env="VALUE", **arg)]).render_wire()

        assert str(caught.value) == f"prompt 'env': {error}"

    def test_invalid_argument_with_an_invalid_variable(self, monkeypatch):
        """If the client sends an invalid value, the error is about that value, not about the environment."""
        monkeypatch.setenv("VALUE", "many")

        with pytest.raises(ArgumentsError) as caught:
            make_prompt(NUMBER).render_wire({"value": "few"})

        assert str(caught.value) == "prompt 'env': 'value' is 'few', not a whole number"

    def test_elicitation(self, monkeypatch):
        """Elicitation asks for an argument without a value, but not for one with an invalid variable."""

        @prompt(elicit=True)
        def number_prompt(value: NUMBER) -> str:
            return str(value)

        def list_askable():
            with pytest.raises(ArgumentsError) as caught:
                number_prompt.render_wire()
            return askable_arguments(number_prompt.compiled, caught.value)

        monkeypatch.delenv("VALUE", raising=False)
        assert list_askable() == number_prompt.compiled.arguments.ordered
        monkeypatch.setenv("VALUE", "many")
        assert list_askable() == ()


class TestDirectCalls:
    @pytest.mark.parametrize(
        "call",
        [lambda p: p(), lambda p: p.render().text, lambda p: p.render_wire().text],
        ids=["call", "render", "render_wire"],
    )
    def test_direct_calls_use_the_variable(self, call, monkeypatch):
        """Direct calls and `render` use the variable like a request from a client."""
        monkeypatch.setenv("VALUE", "5")

        assert call(make_prompt(NUMBER)) == "5"
        assert call(make_prompt(NUMBER, 3)) == "5"
        monkeypatch.delenv("VALUE")
        assert call(make_prompt(NUMBER, 3)) == "3"
        with pytest.raises(ArgumentsError, match="the environment variable VALUE is not set"):
            call(make_prompt(NUMBER))

    def test_given_value_takes_precedence(self, monkeypatch):
        """If a value is given, by position or by name, the variable is not needed."""
        monkeypatch.delenv("VALUE", raising=False)

        assert (make_prompt(NUMBER)(1), make_prompt(NUMBER).render(value=2).text) == ("1", "2")


class TestListing:
    @pytest.mark.parametrize(
        ("annotation", "default", "description"),
        [
            (TEXT, [], "The team (default from $VALUE)"),
            (TEXT, ["core"], "The team (default from $VALUE, else core)"),
            (NUMBER, [3], "a whole number; default from $VALUE, else 3"),
            (Annotated[str, Arg("Key", env="VALUE", secret=True)], ["x"], "Key (default from $VALUE)"),
        ],
        ids=str,
    )
    def test_listing_names_the_variable_without_its_value(
        self, annotation, default, description, monkeypatch
    ):
        """The argument is listed as optional with the variable's name, whatever the variable's value."""
        catalog = compile(Recipes(prompts=(make_prompt(annotation, *default),)))
        lists = []
        for value in ("7", "8"):
            monkeypatch.setenv("VALUE", value)
            lists.append(Client(catalog).ask("prompts/list")["result"])
        (listed,) = lists[0]["prompts"]

        assert lists[0] == lists[1]
        assert listed["arguments"] == [{"name": "value", "description": description, "required": False}]

    @pytest.mark.parametrize(
        ("declared", "expected"),
        [
            ("Annotated[str, Arg(env='TEAM')]", "default from $TEAM"),
            ("Annotated[str, Arg(env='TEAM')] = 'core'", "default from $TEAM, else core"),
            ("Annotated[str, Arg(env='TEAM', secret=True)] = 'core'", "default from $TEAM, else <secret>"),
        ],
        ids=["variable", "own", "secret"],
    )
    def test_list_command(self, declared, expected, recipes, capsys, monkeypatch):
        """`promptkit list` names the variable."""
        monkeypatch.setenv("TEAM", "swordfish")
        head = "from typing import Annotated\nfrom promptkit import Arg, prompt\n@prompt\n"
        folder = recipes(greet=f"{head}def greet(team: {declared}): return team\n")

        assert main(["list", str(folder)]) == 0
        assert f"team: str, {expected}" in (output := capsys.readouterr().out)
        assert "swordfish" not in output
        assert main(["list", str(folder), "--json"]) == 0
        assert "swordfish" not in (output := capsys.readouterr().out)
        assert ("core" in output) == expected.endswith("core")

    def test_schema_has_no_default(self):
        """The schema has no default, because a form that sent it would override the environment."""
        schema = make_prompt(TEXT, "core").compiled.schema

        assert "required" not in schema
        assert schema["properties"]["value"] == {
            "description": "The team (default from $VALUE, else core)",
            "type": "string",
        }


class TestSecrets:
    @pytest.mark.parametrize("annotation", [str, str | None, list[str]], ids=str)
    def test_value_of_the_variable_is_redacted(self, annotation, monkeypatch):
        """The value of a secret's variable is redacted, whether or not a client sends another value."""
        monkeypatch.setenv("VALUE", "swordfish")
        arguments = make_prompt(Annotated[annotation, Arg(env="VALUE", secret=True)]).compiled.arguments

        for sent in ({}, {"value": "another"}):
            for redactor in (Redactor.of(arguments, sent), Redactor.of_values(arguments, sent)):
                assert redactor.redacted("a swordfish") == f"a {HIDDEN}"

    def test_secret_is_redacted_in_errors(self, monkeypatch):
        """The value of a secret's variable is redacted when an author's exception quotes it."""
        monkeypatch.setenv("VALUE", "swordfish")

        @prompt
        def login(key: Annotated[str, Arg(env="VALUE", secret=True)]) -> str:
            raise ValueError(key)

        client = Client(compile(Recipes(prompts=(login,))))

        assert "swordfish" not in json.dumps(client.get("login"))


class TestRejected:
    @pytest.mark.parametrize("name", ["", "TEAM=core", "$TEAM", "A\0B"], ids=repr)
    def test_invalid_variable_name(self, name):
        """A prompt with an invalid variable name is not served."""
        (diagnostic,) = make_prompt(Annotated[str, Arg(env=name)]).compile()[1]

        assert diagnostic.rule.value == "PK321"
        assert diagnostic.hint == "give only its name, without '$' or a value, for example env='TEAM'"

    def test_variable_of_a_uri(self):
        """A URI's variable cannot come from the environment, because a URI identifies one document."""

        @resource("logs://recent{?team}")
        def logs(team: Annotated[str, Arg(env="TEAM")] = "core") -> str:
            return team

        (diagnostic,) = logs.compile()[1]

        assert (diagnostic.rule.value, diagnostic.hint) == (
            "PK321",
            "remove env=, or read the variable in the function",
        )

    def test_variable_name_must_be_a_string(self):
        """A name that is not a string raises TypeError."""
        with pytest.raises(TypeError):
            Arg(env=3)
