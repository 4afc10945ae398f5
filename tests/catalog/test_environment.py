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
from promptkit.server.elicitation import askable
from tests.wire import Client


@dataclass
class Point:
    x: int
    y: int


def made(annotation, *default):
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
    def test_it_is_read_as_what_a_client_sends(self, annotation, variable, value, monkeypatch):
        """A variable's text is converted like an argument from a client."""
        monkeypatch.setenv("VALUE", variable)

        assert made(Annotated[annotation, Arg(env="VALUE")]).compiled.arguments.read({}) == {"value": value}

    def test_what_a_client_sends_comes_first(self, monkeypatch):
        """A client's argument comes first, then the environment, then the function's default."""
        team = made(TEXT, "own")
        monkeypatch.setenv("VALUE", "environment")
        found = [team.render_wire({"value": "sent"}).text, team.render_wire().text]
        monkeypatch.delenv("VALUE")
        found.append(team.render_wire().text)

        assert found == ["'sent'", "'environment'", "'own'"]

    def test_it_is_looked_up_for_each_request(self, monkeypatch):
        """The variable is read for each request."""
        team = made(TEXT)
        compiled = team.compiled
        monkeypatch.setenv("VALUE", "one")
        first = compiled.render().text
        monkeypatch.setenv("VALUE", "two")

        assert (first, compiled.render().text) == ("'one'", "'two'")

    @pytest.mark.parametrize("empty", [None, ""], ids=["unset", "empty"])
    def test_what_is_nowhere_is_missing(self, empty, monkeypatch):
        """If there is no value, the error names the variable; an empty variable counts only for text."""
        monkeypatch.delenv("VALUE", raising=False)
        if empty is not None:
            monkeypatch.setenv("VALUE", empty)

        with pytest.raises(ArgumentsError) as refused:
            made(NUMBER).render_wire()

        assert str(refused.value) == (
            "prompt 'env': 'value' is missing, and the environment variable VALUE is not set"
        )

    @pytest.mark.parametrize(
        ("annotation", "arg", "variable", "fault"),
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
    def test_what_does_not_fit_names_the_variable(self, annotation, arg, variable, fault, monkeypatch):
        """An error in a variable's value names the variable."""
        monkeypatch.setenv("VALUE", variable)

        with pytest.raises(ArgumentsError) as refused:
            made(Annotated[annotation, Arg(env="VALUE", **arg)]).render_wire()

        assert str(refused.value) == f"prompt 'env': {fault}"

    def test_one_fault_is_told_of_one_argument(self, monkeypatch):
        """If the client sends an invalid value, the error is about that value, not about the environment."""
        monkeypatch.setenv("VALUE", "many")

        with pytest.raises(ArgumentsError) as refused:
            made(NUMBER).render_wire({"value": "few"})

        assert str(refused.value) == "prompt 'env': 'value' is 'few', not a whole number"

    def test_a_person_is_asked_for_it(self, monkeypatch):
        """Elicitation asks for an argument without a value, but not for one with an invalid variable."""

        @prompt(elicit=True)
        def asks(value: NUMBER) -> str:
            return str(value)

        def asked():
            with pytest.raises(ArgumentsError) as refused:
                asks.render_wire()
            return askable(asks.compiled, refused.value)

        monkeypatch.delenv("VALUE", raising=False)
        assert asked() == asks.compiled.arguments.ordered
        monkeypatch.setenv("VALUE", "many")
        assert asked() == ()


class TestDirectCalls:
    @pytest.mark.parametrize(
        "call",
        [lambda p: p(), lambda p: p.render().text, lambda p: p.render_wire().text],
        ids=["call", "render", "render_wire"],
    )
    def test_they_do_the_same(self, call, monkeypatch):
        """Direct calls and `render` use the variable like a request from a client."""
        monkeypatch.setenv("VALUE", "5")

        assert call(made(NUMBER)) == "5"
        assert call(made(NUMBER, 3)) == "5"
        monkeypatch.delenv("VALUE")
        assert call(made(NUMBER, 3)) == "3"
        with pytest.raises(ArgumentsError, match="the environment variable VALUE is not set"):
            call(made(NUMBER))

    def test_what_is_given_comes_first(self, monkeypatch):
        """A given value, positional or by name, needs no variable."""
        monkeypatch.delenv("VALUE", raising=False)

        assert (made(NUMBER)(1), made(NUMBER).render(value=2).text) == ("1", "2")


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
    def test_it_names_the_variable_and_never_its_value(self, annotation, default, description, monkeypatch):
        """The argument is listed as optional with the variable's name, whatever the variable's value."""
        catalog = compile(Recipes(prompts=(made(annotation, *default),)))
        lists = []
        for value in ("7", "8"):
            monkeypatch.setenv("VALUE", value)
            lists.append(Client(catalog).ask("prompts/list")["result"])
        (listed,) = lists[0]["prompts"]

        assert lists[0] == lists[1]
        assert listed["arguments"] == [{"name": "value", "description": description, "required": False}]

    @pytest.mark.parametrize(
        ("declared", "need"),
        [
            ("Annotated[str, Arg(env='TEAM')]", "default from $TEAM"),
            ("Annotated[str, Arg(env='TEAM')] = 'core'", "default from $TEAM, else core"),
            ("Annotated[str, Arg(env='TEAM', secret=True)] = 'core'", "default from $TEAM, else <secret>"),
        ],
        ids=["variable", "own", "secret"],
    )
    def test_the_command(self, declared, need, recipes, capsys, monkeypatch):
        """`promptkit list` names the variable."""
        monkeypatch.setenv("TEAM", "swordfish")
        head = "from typing import Annotated\nfrom promptkit import Arg, prompt\n@prompt\n"
        folder = recipes(greet=f"{head}def greet(team: {declared}): return team\n")

        assert main(["list", str(folder)]) == 0
        assert f"team: str, {need}" in (shown := capsys.readouterr().out)
        assert "swordfish" not in shown
        assert main(["list", str(folder), "--json"]) == 0
        assert "swordfish" not in (shown := capsys.readouterr().out)
        assert ("core" in shown) == need.endswith("core")

    def test_its_schema(self):
        """The schema has no default: a form that sent it would override the environment."""
        schema = made(TEXT, "core").compiled.schema

        assert "required" not in schema
        assert schema["properties"]["value"] == {
            "description": "The team (default from $VALUE, else core)",
            "type": "string",
        }

    def test_the_schema_of_a_time_zone(self):
        """The description of a datetime with a timezone says where a time without an offset is."""
        from datetime import datetime

        schema = made(Annotated[datetime, Arg("When", timezone="Europe/Berlin")]).compiled.schema

        assert schema["properties"]["value"]["description"] == (
            "When (a date and time, as in 2026-01-31T12:00:00Z; in Europe/Berlin unless it has an offset)"
        )


class TestSecrets:
    @pytest.mark.parametrize("annotation", [str, str | None, list[str]], ids=str)
    def test_the_variables_value_is_hidden(self, annotation, monkeypatch):
        """The value of a secret's variable is redacted, whether or not a client sends another value."""
        monkeypatch.setenv("VALUE", "swordfish")
        arguments = made(Annotated[annotation, Arg(env="VALUE", secret=True)]).compiled.arguments

        for sent in ({}, {"value": "another"}):
            for redactor in (Redactor.of(arguments, sent), Redactor.of_values(arguments, sent)):
                assert redactor.redacted("a swordfish") == f"a {HIDDEN}"

    def test_an_error_does_not_hold_it(self, monkeypatch):
        """The value of a secret's variable is redacted when an author's exception quotes it."""
        monkeypatch.setenv("VALUE", "swordfish")

        @prompt
        def login(key: Annotated[str, Arg(env="VALUE", secret=True)]) -> str:
            raise ValueError(key)

        client = Client(compile(Recipes(prompts=(login,))))

        assert "swordfish" not in json.dumps(client.get("login"))


class TestRefused:
    @pytest.mark.parametrize("name", ["", "TEAM=core", "$TEAM", "A\0B"], ids=repr)
    def test_what_no_variable_is_called(self, name):
        """A prompt with an invalid variable name is not served."""
        (diagnostic,) = made(Annotated[str, Arg(env=name)]).compile()[1]

        assert diagnostic.rule.value == "PK321"
        assert diagnostic.hint == "give its name alone, without $ and value, as in env='TEAM'"

    def test_a_variable_of_a_uri(self):
        """A URI's variable cannot come from the environment, because a URI identifies one document."""

        @resource("logs://recent{?team}")
        def logs(team: Annotated[str, Arg(env="TEAM")] = "core") -> str:
            return team

        (diagnostic,) = logs.compile()[1]

        assert (diagnostic.rule.value, diagnostic.hint) == (
            "PK321",
            "leave env= out, or read it in the function",
        )

    def test_a_name_is_text(self):
        """A name that is not a string raises TypeError."""
        with pytest.raises(TypeError):
            Arg(env=3)
