import inspect
import shlex
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

import promptkit
from promptkit.declarations.name_hints import _HINTS, undefined_name_hint
from promptkit.loader.loader import load

FUNCTION = "write a function with @prompt that returns an f-string"
NO_SYSTEM = "write 'from promptkit import system', and call system(...)"
PIP = f"{shlex.quote(sys.executable)} -m pip install"
SEARCHED = (
    "there is no '{}' next to the recipe, in the project's root ROOT, or installed for "
    f"{sys.executable}: put a module of your own into one of these folders; "
    f"for a third-party package, check its name, and install it with {PIP}"
)


@pytest.fixture
def diagnose_recipe(recipes, tmp_path, monkeypatch):
    """A function that writes a recipe next to a few other files and returns its diagnostic."""
    folder = recipes(folder="project/recipes", helpers="x = 1", _shared="x = 1")
    (folder / "text.md").write_text("x")
    monkeypatch.chdir(tmp_path)

    def diagnose(source):
        recipes(folder="project/recipes", broken=source)
        (diagnostic,) = [
            candidate for candidate in load(folder).diagnostics if "'broken'" in candidate.message
        ]
        return diagnostic

    return diagnose


class TestNames:
    @pytest.mark.parametrize(
        ("source", "hint"),
        [
            ("from promptkit import promt", "did you mean 'prompt'?"),
            ("from promptkit import Assistant", "did you mean 'assistant'?"),
            ("from promptkit.fragments import codeblock", "did you mean 'code_block'?"),
            ("from promptkit import code_block", "write 'from promptkit.fragments import code_block'"),
            ("from promptkit import codeblock", "did you mean 'code_block' from promptkit.fragments?"),
            ("from promptkit.fragments import prompt", "write 'from promptkit import prompt'"),
            ("from promptkit.language.messages import user", "write 'from promptkit import user'"),
            ("from promptkit import ArgumentError", "did you mean 'ArgumentsError'?"),
            ("from promptkit.fragment import code_block", "did you mean 'promptkit.fragments'?"),
            ("import promptkit\n\n@promptkit.promt\ndef p(): ...", "did you mean 'prompt'?"),
            ("from pathlib import Pth", "did you mean 'Path'?"),
            ("from attrs import forzen", "did you mean 'frozen'?"),
            ("from ._shard import x", "did you mean '_shared'?"),
            ("from .helpers import nothing", "correct the line; the other recipes are still served"),
            ("import json\njson.dmps({})", "did you mean 'dumps'?"),
            ("promtp", "did you mean 'prompt'? import it: from promptkit import prompt"),
            ("@prompt\ndef p(): ...", "import it: from promptkit import prompt"),
            ("x = systm('a')", "did you mean 'system'? import it: from promptkit import system"),
            (
                "import json\nx = str | json",
                "a module is not a type: write one of its classes, for example datetime.datetime",
            ),
            ("x = str | 'Later'", "put the whole annotation in quotes"),
            ("bullets(['a'])", "import it: from promptkit.fragments import bullets"),
            ("x = Literal['a']", "import it: from typing import Literal"),
            ("os.getcwd()", "import it: import os"),
            ("'x'.uper()", "did you mean 'upper'?"),
            ("x = 1\n{}[x]", "correct the line; the other recipes are still served"),
            ("x = nothing_of_this_name", "define it, or correct the name"),
            ("from promptkit.language.content import usr", "did you mean 'user' from promptkit?"),
            ("from promptkit import SystemMessage", NO_SYSTEM),
            (
                "from promptkit import tool",
                "write @prompt: promptkit serve --tools also offers prompts as tools",
            ),
            ("import promptkit\npromptkit.System('a')", NO_SYSTEM),
            ("from promptkit import HumanMessage", "write 'from promptkit import user', and call user(...)"),
            (
                "from promptkit import PromptTemplate",
                "write a function with @prompt that returns an f-string",
            ),
            ("from promptkit import Field", "write Arg('...') in Annotated"),
            ("from promptkit import TextContent", "did you mean 'Text'?"),
            ("from promptkit import Audio\nAudio.from_file('a')", "write .from_path(...)"),
        ],
    )
    def test_nearest_name_is_suggested(self, source, hint, diagnose_recipe):
        """The hint suggests the public name that was misspelt or not imported."""
        diagnostic = diagnose_recipe(source)

        assert diagnostic.hint == hint
        assert "Did you mean" not in diagnostic.message


PUBLIC = {
    name: module
    for module in ("testing", "exports", "workspace", "errors", "fragments", "")
    for name in import_module(f"promptkit.{module}".rstrip(".")).__all__
    if name[0] != "_"
}


def _swap_letters(name):
    return name[:2] + name[3] + name[2] + name[4:]


#: Public names that are still unique when case is ignored, and that swapping two letters changes.
_FOLDED = Counter(name.casefold() for name in PUBLIC)
SWAPPED = [
    name for name in PUBLIC if len(name) > 4 and _swap_letters(name) != name and _FOLDED[name.casefold()] == 1
]


class TestPublicNames:
    @pytest.mark.parametrize("name", PUBLIC)
    def test_missing_import_is_suggested(self, name):
        """The hint is the import statement to write, even if similar names exist."""
        line = f"from {f'promptkit.{PUBLIC[name]}'.rstrip('.')} import {name}"

        assert undefined_name_hint(name, ["name", "text"]) == f"import it: {line}"

    @pytest.mark.parametrize("name", SWAPPED)
    def test_misspelt_name_is_corrected(self, name):
        """For a name with two letters swapped, promptkit's name is suggested before Python's."""
        misspelt = _swap_letters(name)
        line = f"from {f'promptkit.{PUBLIC[name]}'.rstrip('.')} import {name}"

        assert undefined_name_hint(misspelt, ["name", "text"]) == f"did you mean {name!r}? import it: {line}"

    @pytest.mark.parametrize(
        "name", ["summary", "question", "text", "content_of_it", "items", "diff", "rest"]
    )
    def test_unrelated_name_is_not_suggested(self, name):
        """A Python name that shares only a few letters with an unknown name is not suggested."""
        assert undefined_name_hint(name, []) in (
            None,
            "did you mean 'Text'? import it: from promptkit import Text",
        )

    @pytest.mark.parametrize(
        ("name", "suggestion"),
        [("pritn", "print"), ("lenn", "len"), ("ValueEror", "ValueError"), ("lsit", "list")],
    )
    def test_misspelt_builtin_is_corrected(self, name, suggestion):
        """A misspelt built-in name gets a suggestion."""
        assert undefined_name_hint(name, []) == f"did you mean {suggestion!r}?"

    def test_name_of_the_file_needs_no_import(self):
        """A name that the file defines is suggested without an import."""
        assert undefined_name_hint("systme", ["system"]) == "did you mean 'system'?"


class TestModules:
    @pytest.mark.parametrize(
        ("source", "hint"),
        [
            ("import no_such_module", SEARCHED.format("no_such_module")),
            ("import no_such.module", SEARCHED.format("no_such")),
        ],
    )
    def test_hint_names_the_searched_folders(self, source, hint, diagnose_recipe, tmp_path):
        """The hint names the searched folders."""
        assert diagnose_recipe(source).hint == hint.replace("ROOT", str(tmp_path / "project"))

    @pytest.mark.parametrize("name", ["library", "utils", "helpers2", "requets", "mine_and_mine_alone"])
    def test_unknown_package_is_not_in_the_install_command(self, name, diagnose_recipe):
        """
        An unknown package name never goes into the install command, because anyone could own that package.
        """
        hint = diagnose_recipe(f"import {name}").hint

        assert hint.endswith(" install") or " install " not in hint

    @pytest.mark.parametrize(
        ("module", "package"),
        [
            ("bs4", "beautifulsoup4"),
            ("docx", "python-docx"),
        ],
    )
    def test_known_package_is_in_the_install_command(self, module, package, diagnose_recipe, monkeypatch):
        """The install command names packages that differ from their module."""
        pytest.importorskip("pip")
        monkeypatch.setitem(sys.modules, module, None)

        assert diagnose_recipe(f"import {module}").hint == f"install it: {PIP} {package}"

    def test_python_path_with_spaces_is_quoted(self, diagnose_recipe, monkeypatch):
        """A Python path with spaces is quoted in the install command."""
        pytest.importorskip("pip")
        monkeypatch.setitem(sys.modules, "bs4", None)
        monkeypatch.setattr(sys, "executable", "/my tools/python")

        assert diagnose_recipe("import bs4").hint.endswith("'/my tools/python' -m pip install beautifulsoup4")

    def test_uv_is_used_without_pip(self, diagnose_recipe, monkeypatch):
        """Without pip, as in an environment made by uv, the hint uses `uv pip install`."""
        monkeypatch.setitem(sys.modules, "bs4", None)
        monkeypatch.setattr("promptkit.errors.distribution.find_spec", lambda _: None)

        assert diagnose_recipe("import bs4").hint == (
            f"install it: uv pip install --python {shlex.quote(sys.executable)} beautifulsoup4"
        )


class TestImportsFromAbove:
    def test_hint_names_the_folder_above(self, recipes, tmp_path):
        """The hint names the folder above as the target."""
        (tmp_path / "pyproject.toml").touch()
        folder = recipes(folder="prompts/support", answer="from .._voice import X")

        (diagnostic,) = load(folder).diagnostics

        assert diagnostic.hint.startswith("pass the folder ")
        assert diagnostic.hint.endswith(", or do not import from above it")


class TestFiles:
    @pytest.mark.parametrize(
        "source",
        ["open({!r})", "from pathlib import Path\nPath({!r}).read_text()", "import os\nos.listdir({!r})"],
    )
    def test_hint_for_a_relative_path(self, source, diagnose_recipe, tmp_path):
        """The hint for a relative path names the searched folder and shows a path from the recipe."""
        diagnostic = diagnose_recipe(source.format("text.md"))

        assert diagnostic.hint == (
            f"the file was looked up in {tmp_path}; if it belongs next to the recipe, in "
            f"{tmp_path / 'project/recipes'}, write Path(__file__).parent / 'text.md'"
        )


class TestOptions:
    @pytest.mark.parametrize(
        ("call", "hint"),
        [
            ("prompt(template='x')", "the text is what the function returns: return f'...{name}...'"),
            ("prompt(messages=[])", "the text is what the function returns: return f'...{name}...'"),
            ("prompt(arguments=[])", "arguments are the function's parameters: def name(topic: str)"),
            ("prompt(temperature=1)", "MCP prompts have no model settings; the client chooses them"),
            ("prompt(titel='x')", "did you mean 'title'?"),
            ("resource('a:b', mimetype='x')", "did you mean 'mime_type'?"),
            ("Arg('x', desc='y')", "did you mean 'description'?"),
            ("Arg('x', xyz='y')", "Arg takes description, title, examples, complete, secret"),
            ("Text('x', prio=1)", "did you mean 'priority'?"),
            ("code_block('x', lang='y')", "did you mean 'language'?"),
        ],
    )
    def test_unknown_option_gets_a_hint(self, call, hint, diagnose_recipe):
        """The hint names what to use instead of another framework's option, or the nearest option."""
        source = "from promptkit import *\nfrom promptkit.fragments import *\n"

        diagnostic = diagnose_recipe(f"{source}\n{call}")

        assert diagnostic.hint.startswith(hint)
        assert (Path(diagnostic.location.file).name, diagnostic.location.line) == ("broken.py", 4)


class TestHintTable:
    @pytest.mark.parametrize("kind", [kind for kind in _HINTS if kind.startswith("options of ")])
    def test_accepted_options_are_not_listed(self, kind):
        """An option that promptkit accepts is not listed as another framework's."""
        function = getattr(promptkit, kind.removeprefix("options of "))

        assert set(inspect.signature(function).parameters).isdisjoint(" ".join(_HINTS[kind]).split())

    def test_exported_names_are_not_listed(self):
        """A name that promptkit exports is not listed as another framework's."""
        assert set(promptkit.__all__).isdisjoint(" ".join(_HINTS["names"]).split())

    @pytest.mark.parametrize("kind", _HINTS)
    def test_words_are_unique(self, kind):
        """No word has two hints, because only one of them could be shown."""
        words = " ".join(_HINTS[kind]).split()

        assert sorted(set(words)) == sorted(words)


class TestCalls:
    @pytest.mark.parametrize(
        ("call", "hint"),
        [
            ("user('a', role='user')", "user takes no options"),
            ("Arg(choices=['a'])", "write the choices as the type: Annotated[Literal['a', 'b'], Arg(...)]"),
            ("Arg(required=True)", "write the default in the signature; an argument without one is required"),
            ("Arg(min=1)", "limit it with msgspec.Meta(ge=..., pattern=..., ...) in Annotated"),
            ("Image(path='a.png')", "write Image.from_path(...)"),
            ("EmbeddedResource(path='a.pdf')", "write EmbeddedResource.from_path(...)"),
            ("Text(content='a')", "did you mean 'text'?"),
            ("Message('user', text='a')", "did you mean 'content'?"),
        ],
    )
    def test_wrong_call_gets_a_hint(self, call, hint, diagnose_recipe):
        """The hint shows what to write instead of another framework's parameter."""
        assert diagnose_recipe(f"import promptkit\nfrom promptkit import *\n{call}").hint == hint


def test_unset_environment_variable_gets_a_hint(diagnose_recipe, monkeypatch):
    """The hint for an unset variable is to set it where the server starts, or to give a default."""
    monkeypatch.delenv("TEAM", raising=False)

    diagnostic = diagnose_recipe("import os\nos.environ['TEAM']")

    assert diagnostic.hint == "set TEAM where the server is started, or write os.environ.get('TEAM', '...')"
    assert diagnostic.location.line == 2


class TestLocation:
    @pytest.mark.parametrize(
        ("source", "line"),
        [
            ("from promptkit import Text\n\nText(3)", 3),
            ("from promptkit import prompt\n\n@prompt(timeout=-1)\ndef p(): ...", 3),
            ("import attrs\n\n@attrs.frozen\nclass A:\n    x: int = attrs.field(converter=int)\n\nA('x')", 7),
            ("import json\n\njson.loads('{')", 3),
            ("import importlib\n\nimportlib.import_module('no_such')", 3),
            ("from typeguard import typechecked\n\n@typechecked\ndef f(x: int): ...\n\nf('a')", 4),
        ],
        ids=["promptkit", "decorator", "attrs", "json", "importlib", "typeguard"],
    )
    def test_location_is_the_authors_line(self, source, line, diagnose_recipe):
        """The location is the author's line, not one in promptkit, its dependencies or Python."""
        diagnostic = diagnose_recipe(source)

        assert (Path(diagnostic.location.file).name, diagnostic.location.line) == ("broken.py", line)

    def test_error_in_an_imported_module_is_located(self, recipes, tmp_path, monkeypatch):
        """An error inside a module that a recipe imports is reported at its line in that module."""
        recipes(folder="project/parts", faulty="def fail():\n    1 / 0")
        monkeypatch.syspath_prepend(tmp_path / "project")

        folder = recipes(folder="project/recipes", broken="from parts.faulty import fail\n\nfail()")
        (diagnostic,) = load(folder).diagnostics

        assert (diagnostic.location.file, diagnostic.location.line) == (
            str(tmp_path / "project/parts/faulty.py"),
            2,
        )


def test_an_odd_exception_is_one_diagnostic(diagnose_recipe):
    """An exception whose own attributes raise is still reported as one diagnostic."""
    source = """
        class Odd(ImportError):
            name = property(lambda self: 1 / 0)

        raise Odd
    """

    assert diagnose_recipe(source).hint == "correct the line; the other recipes are still served"
