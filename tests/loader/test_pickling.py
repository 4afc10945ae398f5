"""Pickling: declarations are pickled by reference, and renderings by value."""

import copy
import json
import os
import pickle
import subprocess
import sys
from textwrap import dedent

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from promptkit import (
    Audio,
    EmbeddedResource,
    Icon,
    Image,
    Message,
    ResourceLink,
    Text,
    cache_point,
    prompt,
    resource,
    skill,
    system,
    user,
)
from promptkit.declarations.prompts import Prompt
from promptkit.errors import LoadError
from promptkit.language.messages import make_workflow
from promptkit.loader.loader import load
from promptkit.loader.packages import declared_at

PROTOCOLS = range(2, pickle.HIGHEST_PROTOCOL + 1)


def round_trip(value, protocol=None):
    """Pickle a value, unpickle it and return the result."""
    return pickle.loads(pickle.dumps(value, protocol))  # noqa: S301 (our own pickle)


@prompt
def own(name: str) -> str:
    """A prompt of this module."""
    return f"This module greets {name}."


@resource("docs://own/{name}")
def own_document(name: str) -> str:
    """A resource of this module."""
    return name


@skill
def own_skill() -> str:
    """A skill of this module."""
    return "Read it."


loop_prompts = [prompt(name=f"loop-{number}")(lambda: "x") for number in range(2)]

#: A declaration of this module, by how it is bound.
OWN = {
    "prompt": own,
    "resource": own_document,
    "skill": own_skill,
    "in a list": loop_prompts[1],
}

#: A folder of recipes with declarations of every kind, which is imported as a package.
FOLDER = {
    "greet": """
        from promptkit import prompt, resource, skill
        from ._hidden import hidden

        @prompt
        def greet(name: str) -> str:
            return f"The folder greets {name}."

        @resource("docs://greet")
        def document() -> str:
            return "x"

        @skill
        def greeting() -> str:
            '''How to greet.'''
            return "Say hello."

        @prompt(name="again")
        def twice() -> str:
            return "first"

        @prompt(name="once")
        def twice() -> str:
            return "second"

        class Group:
            @prompt
            def inner() -> str:
                return "x"

        prompt(name="unnamed")(lambda: "x")
    """,
    "_hidden": """
        from promptkit import prompt

        @prompt
        def hidden() -> str:
            return "x"
    """,
}


@pytest.fixture
def folder(recipes):
    """The folder of recipes, with another recipe in a subfolder."""
    recipes(
        "shelf/below", deep="from promptkit import prompt\n\n@prompt\ndef deep() -> str:\n    return 'x'\n"
    )
    return recipes("shelf", **FOLDER)


def declarations_by_name(loaded):
    """Return all declarations that were loaded, by name."""
    definitions = [definition for file in loaded.by_file for definition in file.definitions]
    return {
        definition.options.name if isinstance(definition, Prompt) else definition.uri_template: definition
        for definition in definitions
    }


class TestInOneProcess:
    @pytest.mark.parametrize("kind", OWN)
    @pytest.mark.parametrize("protocol", PROTOCOLS)
    def test_declaration_of_a_module_is_the_same_object(self, kind, protocol):
        """A declaration unpickles as the same object, like a function, however it is bound."""
        assert round_trip(OWN[kind], protocol) is OWN[kind]

    def test_declaration_of_a_folder_is_the_same_object(self, folder):
        """A declaration of a subfolder, helper or class unpickles as the same object, even without a name."""
        declared = declarations_by_name(load(str(folder)))

        assert set(declared) == {
            *("again", "deep", "greet", "hidden", "inner", "once", "unnamed"),
            *("docs://greet", "skill://greeting/SKILL.md"),
        }
        assert {name: round_trip(declaration) for name, declaration in declared.items()} == declared

    def test_declaration_is_found_after_another_load(self, recipes):
        """A declaration is still found after another folder was loaded, without loading anything again."""
        source = "from promptkit import prompt\n\n@prompt\ndef one() -> str:\n    return {!r}\n"
        first, second = (recipes(f"{name}/shelf", one=source.format(name)) for name in ("a", "b"))
        (of_first,) = load(str(first)).prompts
        (of_second,) = load(str(second)).prompts

        assert [round_trip(of_first).render().text, round_trip(of_second).render().text] == ["a", "b"]
        assert round_trip((of_first, of_second, of_first)) == (of_first, of_second, of_first)

    def test_copy_is_the_same_object(self):
        """Copying a declaration returns the same object, so that records that hold one can be copied."""
        assert copy.copy(own) is own
        assert copy.deepcopy({"prompt": own, "resource": own_document}) == {
            "prompt": own,
            "resource": own_document,
        }

    def test_markdown_prompt_is_the_same_object(self, tmp_path):
        """A Markdown prompt unpickles as the same object."""
        (tmp_path / "fix.prompt.md").write_text("Fix {{issue}}.")
        (declared,) = load(tmp_path).prompts

        assert round_trip(declared) is declared


class TestPicklingErrors:
    def catch_message(self, declared):
        """Return the message with which pickling fails."""
        with pytest.raises(pickle.PicklingError) as caught:
            pickle.dumps(declared)
        return str(caught.value)

    def test_local_prompt_cannot_be_pickled(self):
        """A prompt made in a function cannot be pickled, because no other process can find it."""

        @prompt
        def local() -> str:
            return "x"

        location = str(local.location)

        assert self.catch_message(local) == (
            f"<prompt 'local' at {location}> cannot be pickled: other processes cannot find it by name "
            f"in module {__name__!r}: define it at the top level of a module, under a name that is unique in "
            "the module"
        )

    def test_prompt_from_before_a_reload_cannot_be_pickled(self, folder, monkeypatch):
        """A prompt from before a reload cannot be pickled, because the module now holds another one."""
        monkeypatch.chdir(folder.parent)
        before = declarations_by_name(load("shelf"))["deep"]
        file = folder / "below" / "deep.py"
        file.write_text(file.read_text().replace("'x'", "'another'"))
        after = declarations_by_name(load("shelf"))["deep"]

        assert round_trip(after) is after is not before
        assert "cannot find it by name in module 'shelf.below.deep'" in self.catch_message(before)

    def test_markdown_prompt_from_before_a_reload_cannot_be_pickled(self, tmp_path):
        """A Markdown prompt cannot be pickled once its file was read again."""
        (tmp_path / "fix.prompt.md").write_text("Fix {{issue}}.")
        (before,) = load(tmp_path).prompts
        (after,) = load(tmp_path).prompts

        assert round_trip(after) is after is not before
        assert "its file has been reloaded since then" in self.catch_message(before)

    def test_second_prompt_of_a_name_cannot_be_pickled(self, recipes, tmp_path, monkeypatch):
        """The second of two prompts with the same name cannot be pickled by that name."""
        monkeypatch.chdir(tmp_path)
        same = "from promptkit import prompt\n\n@prompt\ndef same() -> str:\n    return 'x'\n"
        first, second = load(str(recipes("shelf", twice=same + same[30:]))).prompts

        assert round_trip(first) is first
        assert "under a name that is unique in the module" in self.catch_message(second)


class TestMissingDeclarations:
    """Unpickling where the recipes are missing or different."""

    @pytest.mark.parametrize(
        ("folder", "package", "inner"),
        [("/nowhere/recipes", "no_recipes", ".greet"), ("", "no_module", ""), (None, "shelf", ".gone")],
        ids=["no folder", "no module", "no file"],
    )
    def test_error_names_the_missing_module(self, folder, package, inner, recipes):
        """Python's own error names the missing module."""
        folder = str(recipes("shelf", other="")) if folder is None else folder

        with pytest.raises(ModuleNotFoundError, match=rf"No module named '{package}"):
            declared_at(folder, package, inner, Prompt, "greet")

    def test_error_for_a_missing_prompt_names_its_module(self, folder):
        """The error for a missing prompt names its module."""
        with pytest.raises(LoadError) as caught:
            declared_at(str(folder), "shelf", ".greet", Prompt, "greets")

        assert str(caught.value) == (
            f"cannot load {str(folder)!r}: module 'shelf.greet' has no prompt 'greets', which was pickled: "
            "give every process the same files at the same path"
        )

    def test_installed_package_is_found(self, recipes, tmp_path, monkeypatch):
        """An installed package is found wherever Python finds it."""
        source = "from promptkit import prompt\n\n@prompt\ndef one() -> str:\n    return 'found'\n"
        recipes("site/team_prompts", __init__="", one=source)
        monkeypatch.syspath_prepend(tmp_path / "site")

        declaration = declared_at("/elsewhere/team_prompts", "team_prompts", ".one", Prompt, "one")

        assert declaration.render().text == "found"


#: A program that has a spawned process render prompts of the program, a module and a folder, and prints the
#: results.
SPAWNING = """
import json, multiprocessing, os, sys
from concurrent.futures import ProcessPoolExecutor
from library import borrowed
from promptkit import PromptError, prompt
from promptkit.compiler.compilation import compile
from promptkit.loader.loader import load

@prompt
def main(name: str) -> str:
    return f"The program greets {name}."

@prompt
def refuses(name: str) -> str:
    raise PromptError(f"{name} is away")

def render(prompt):
    return os.getcwd(), prompt.render("Ada").text

def itself(prompt):
    return prompt

if __name__ == "__main__":
    recipes = {one.options.name: one for one in load("recipes").prompts}
    all = {"main": main, "borrowed": borrowed, "greet": recipes["greet"]}
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, spawn, initializer=os.chdir, initargs=("/",)) as pool:
        done = {
            "rendered": {name: pool.submit(render, one).result() for name, one in all.items()},
            "came back": [name for name, one in all.items() if pool.submit(itself, one).result() is one],
            "as a function": [one.text for one in pool.map(main.render, ["Ada", "Bo"])],
            "refused": repr(pool.submit(refuses.render, "Ada").exception()),
            "faults": [str(one) for one in pool.submit(main.render_wire, {"nam": "x"}).exception().errors],
        }
    print(json.dumps(done))
"""

LIBRARY = """
from promptkit import prompt

@prompt
def borrowed(name: str) -> str:
    return f"The library greets {name}."
"""


@pytest.fixture(scope="module")
def spawned(tmp_path_factory):
    """The output of the program, whose spawned process has another current folder."""
    folder = tmp_path_factory.mktemp("spawning")
    folder.joinpath("recipes").mkdir()
    for name, source in FOLDER.items():
        folder.joinpath("recipes", f"{name}.py").write_text(dedent(source), encoding="utf-8")
    folder.joinpath("library.py").write_text(LIBRARY, encoding="utf-8")
    folder.joinpath("program.py").write_text(SPAWNING, encoding="utf-8")
    return json.loads(run_python("program.py", cwd=folder))


def run_python(*arguments, cwd, site=""):
    """Run a new Python process that can also import from *site*, and return its output."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), *sys.path])}
    result = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


class TestSpawn:
    def test_prompts_render_in_another_process(self, spawned):
        """Prompts of a program, a module and a folder render in a process with another current folder."""
        assert spawned["rendered"] == {
            "main": ["/", "The program greets Ada."],
            "borrowed": ["/", "The library greets Ada."],
            "greet": ["/", "The folder greets Ada."],
        }

    def test_markdown_prompt_renders_in_another_process(self, tmp_path):
        """A Markdown prompt renders in another process, as long as its file exists."""
        file = tmp_path / "shelf" / "fix.prompt.md"
        file.parent.mkdir()
        file.write_text("Fix {{issue}}.")
        (declared,) = load(file.parent).prompts
        (tmp_path / "pickled").write_bytes(pickle.dumps(declared))
        script = "import pickle\nwith open('pickled', 'rb') as file: prompt = pickle.load(file)\n"

        rendered = run_python("-c", f"{script}print(prompt.render(issue='it').text)", cwd=tmp_path)
        file.unlink()
        absent = run_python(
            "-c",
            f"try:\n    {script.strip().replace(chr(10), chr(10) + '    ')}\n"
            "except Exception as error: print(type(error).__name__, error)",
            cwd=tmp_path,
        )

        assert rendered == "Fix it.\n"
        assert absent.startswith(f"LoadError cannot load {str(file)!r}")

    def test_returned_prompt_is_the_same_object(self, spawned):
        """A prompt that the other process returns is the same object here."""
        assert spawned["came back"] == ["main", "borrowed", "greet"]

    def test_prompt_method_can_be_mapped(self, spawned):
        """A prompt's method can be mapped over a pool, and its workflows come back."""
        assert spawned["as a function"] == ["The program greets Ada.", "The program greets Bo."]

    def test_errors_keep_their_details(self, spawned):
        """Errors come back with all their details."""
        assert spawned["refused"] == "PromptError('Ada is away')"
        assert spawned["faults"] == [
            "'nam' is not an argument of this prompt (did you mean 'name'?)",
            "'name' is missing",
        ]


TEXTS = st.text(min_size=1).filter(lambda text: not text.isspace())
ANNOTATED = {
    "audience": st.sampled_from([(), ("user",), ("user", "assistant")]),
    "priority": st.none() | st.floats(0, 1),
    "last_modified": st.none() | st.datetimes(timezones=st.timezones()),
}
CONTENT = st.one_of(
    st.builds(Text, TEXTS, **ANNOTATED),
    st.builds(EmbeddedResource, st.just("docs://a"), text=TEXTS, **ANNOTATED),
    st.builds(EmbeddedResource, st.just("docs://a"), blob=st.binary(min_size=1), **ANNOTATED),
    st.builds(ResourceLink, st.just("docs://a"), name=TEXTS, title=st.none() | TEXTS, **ANNOTATED),
)
MESSAGES = st.builds(Message, st.sampled_from(["user", "assistant"]), CONTENT)
POINTS = st.lists(st.tuples(st.integers(-1, 9), st.integers(0, 99))).map(tuple)
ANSWERS = st.sampled_from([None, int, list[str], dict[str, int | None]])
WORKFLOWS = st.builds(
    make_workflow, st.lists(MESSAGES).map(tuple), st.none() | TEXTS.map(Text), ANSWERS, POINTS
)
ICONS = st.builds(
    Icon,
    st.just("https://example.com/a.png"),
    mime_type=st.none() | st.just("image/png"),
    sizes=st.lists(st.sampled_from(["48x48", "any"])),
    theme=st.sampled_from([None, "light", "dark"]),
)


def attribute_values(value):
    """Return all attributes of a value, compared or not."""
    return {field.name: getattr(value, field.name) for field in attrs.fields(type(value))}


class TestValues:
    @settings(max_examples=30)
    @given(CONTENT | MESSAGES | WORKFLOWS | ICONS)
    def test_values_stay_equal(self, value):
        """Values survive every pickle protocol and every copy, even in attributes that are not compared."""
        copies = [round_trip(value, protocol) for protocol in PROTOCOLS]

        for duplicate in (*copies, copy.copy(value), copy.deepcopy(value)):
            assert (type(duplicate), duplicate, hash(duplicate)) == (type(value), value, hash(value))
            assert attribute_values(duplicate) == attribute_values(value)

    @pytest.mark.parametrize("protocol", PROTOCOLS)
    def test_media_stay_equal(self, protocol, png, wav):
        """Media come back equal, with their bytes, whether or not these were encoded before."""
        image, audio = Image(png, priority=1), Audio(wav)

        assert image.base64
        assert round_trip((image, audio), protocol) == (image, audio)
        assert round_trip(image, protocol).base64 == image.base64

    def test_rendering_keeps_answer_type_and_cache_points(self):
        """A rendering comes back with its answer type and cache points."""

        @prompt(answer=list[int])
        def primes():
            yield system("You are a mathematician.", cache_point())
            yield user("Name the primes up to 10.")

        rendering = round_trip(primes.render())

        assert (rendering.answer, rendering.cache_points) == (list[int], ((-1, 24),))
