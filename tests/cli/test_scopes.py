"""Scopes on the command line: what a server of one client shows, and what authors are told."""

import json
import os
import subprocess
import sys
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from promptkit.cli import main
from promptkit.cli.differences.changes import Kind, changes_between
from promptkit.cli.differences.sides import side_of
from promptkit.compiler.compilation import compile
from tests.http_server import http_server
from tests.posting import PLAIN, body_of, repeat
from tests.scoped_recipes import RECIPES
from tests.wire import line, modern

ALL = ["greet", "people", "rotate"]

HIDDEN = (
    "promptkit: hidden because they need scopes: people, rotate, handbook, notes; serve with --scopes "
    "'admin team' to show all of them, or with --scopes '' to silence this"
)


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A project with recipes, in which servers keep what they start from."""
    for name in ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "recipes").mkdir()
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "recipes" / "some.py").write_text(RECIPES)
    for file in (tmp_path / "recipes").iterdir():
        os.utime(file, ns=(0, 0))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def serve(place, *options):
    """Serve, ask for the prompts and get one; return the names, the reply, and what is said on stderr."""
    asked = modern(1, "prompts/list"), modern(2, "prompts/get", {"name": "rotate"})
    ran = subprocess.run(
        [sys.executable, "-m", "promptkit", "serve", *options],
        input=b"".join(map(line, asked)),
        capture_output=True,
        check=True,
        timeout=30,
        cwd=place,
    )
    replies = {reply["id"]: reply for reply in map(json.loads, ran.stdout.splitlines())}
    return [one["name"] for one in replies[1]["result"]["prompts"]], replies[2], ran.stderr.decode()


class TestServing:
    def test_scopes_of_the_process(self, place):
        """
        Without any, what needs some is hidden, and one line says so. It is not in what is kept for the next
        start, which is kept for each set of scopes.
        """
        for _ in range(2):
            names, reply, said = serve(place)
            assert (names, said.strip()) == (["greet"], HIDDEN)
            assert reply["error"]["message"] == "unknown prompt 'rotate'"
            names, reply, said = serve(place, "--scopes", "team admin")
            assert (names, said) == (ALL, "")
            assert reply["result"]["messages"][0]["content"]["text"] == "Rotate ."
        assert serve(place, "--scopes", "team")[::2] == (["greet"], "")
        assert serve(place, "--scopes", "")[::2] == (["greet"], "")

    def test_in_the_configuration(self, place):
        """
        As every option of serve.
        """
        (place / "pyproject.toml").write_text('[tool.promptkit.serve]\nscopes = "team admin"\n')

        assert serve(place)[0] == ALL

    @pytest.mark.parametrize(
        ("options", "seen", "said"),
        [((), ["greet"], HIDDEN), (("--scopes", "team admin"), ALL, "")],
        ids=["none", "all"],
    )
    def test_over_http_without_tokens(self, place, capfd, options, seen, said):
        """
        There, too, all callers have those of the process.
        """
        with http_server(place / "recipes", *options) as url:
            message = modern(1, "prompts/list")
            fields = {**PLAIN, **repeat(message), "host": urlsplit(url).netloc}
            connection = HTTPConnection(urlsplit(url).netloc, timeout=20)
            connection.request("POST", "/mcp", body_of(message), fields)
            with connection.getresponse() as reply:
                listed = json.load(reply)["result"]["prompts"]
            connection.close()

        assert [one["name"] for one in listed] == seen
        assert (HIDDEN in capfd.readouterr().err) is bool(said)

    @pytest.mark.parametrize("scopes", ['a"b', "é", "a\\b"])
    def test_what_is_no_scope(self, place, scopes, capsys):
        """
        It is refused at once.
        """
        with pytest.raises(SystemExit, match="2"):
            main(["serve", "--scopes", scopes])
        assert "is not a scope: a scope has ASCII" in capsys.readouterr().err

    def test_not_beside_tokens(self, place, capfd):
        """
        Where tokens are asked for, they say who may do what.
        """
        assert main(["serve", "--http", "0", "--token-file", "tokens", "--scopes", "a"]) == 2
        assert "--scopes is for servers without tokens" in capfd.readouterr().err


class TestAuthors:
    def test_list(self, place, capsys):
        """
        Everything is shown, and what it needs.
        """
        main(["list"])
        assert "prompt rotate (needs admin team): Rotate a key." in capsys.readouterr().out
        main(["list", "--json"])
        listed = json.loads(capsys.readouterr().out)
        assert [one.get("scopes") for one in listed["prompts"]] == [None, ["admin"], ["admin", "team"]]
        assert listed["resources"][0]["scopes"] == ["admin"]

    @pytest.mark.parametrize(
        ("before", "after", "found"),
        [
            ("[]", "['a']", [(Kind.SCOPES_NEEDED, "callers need more scopes: a")]),
            ("['a', 'b']", "[]", [(Kind.SCOPES_DROPPED, "callers no longer need: a b")]),
            (
                "['a', 'b']",
                "['b', 'c']",
                [
                    (Kind.SCOPES_NEEDED, "callers need more scopes: c"),
                    (Kind.SCOPES_DROPPED, "callers no longer need: a"),
                ],
            ),
            ("['a', 'b']", "['b', 'a']", []),
        ],
    )
    @pytest.mark.parametrize("kind", ["prompt", "resource"])
    def test_diff(self, recipes, before, after, found, kind):
        """
        A scope that is needed now breaks callers; one that is no longer needed does not.
        """
        source = "from promptkit import prompt, resource\n@{}\ndef one():\n    return 'It.'\n"
        head = "prompt(scopes={})" if kind == "prompt" else "resource('docs://one', scopes={})"
        sides = [
            side_of(compile(str(recipes(**{name: source.format(head.format(scopes))}) / f"{name}.py")), {})
            for name, scopes in (("before", before), ("after", after))
        ]

        changes = changes_between(*sides)
        assert [(one.kind, one.message) for one in changes] == found
        assert [one.kind.breaking for one in changes] == [kind is Kind.SCOPES_NEEDED for kind, _ in found]
