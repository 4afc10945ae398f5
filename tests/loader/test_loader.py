import errno
import os
import socket
import sys
from pathlib import Path

import pytest

from promptkit.compiler.compilation import compile
from promptkit.errors import LoadError
from promptkit.errors.rules import Rule
from promptkit.loader.loader import load

HELLO = '''
from promptkit import prompt

@prompt
def hello(name: str) -> str:
    """Say hello."""
    return f"Hello, {name}."
'''


def names(loaded):
    return sorted(prompt.options.name for prompt in loaded.prompts)


class TestTargets:
    def test_a_folder(self, recipes):
        """Every Python file in a folder is a recipe, in a fixed order."""
        folder = recipes(b=HELLO.replace("hello", "b"), a=HELLO.replace("hello", "a"))

        loaded = load(folder)

        assert names(loaded) == ["a", "b"]
        assert [one.file.name for one in loaded.by_file] == ["a.py", "b.py"]

    def test_helpers_and_tests_are_no_recipes(self, recipes):
        """Files whose names start with '_' and pytest's files are not imported."""
        folder = recipes(
            hello=HELLO,
            _helper="raise RuntimeError",
            test_hello="raise RuntimeError",
            hello_test="raise RuntimeError",
            conftest="raise RuntimeError",
        )

        loaded = load(folder)

        assert (names(loaded), loaded.diagnostics) == (["hello"], ())

    def test_a_file(self, recipes):
        """A target that is a file serves only that file, which can still import its siblings."""
        folder = recipes(
            hello="from .other import other\n" + HELLO,
            other=HELLO.replace("hello", "other"),
        )

        assert names(load(folder / "hello.py")) == ["hello", "other"]

    def test_one_object_of_a_file(self, recipes):
        """Only the object after the colon is served."""
        folder = recipes(hello=HELLO + HELLO.replace("hello", "other"))

        assert names(load(f"{folder / 'hello.py'}:other")) == ["other"]

    def test_several_objects(self, recipes):
        """The object can be a list of prompts."""
        folder = recipes(hello=HELLO + HELLO.replace("hello", "other") + "\nALL = [hello, other]")

        assert names(load(f"{folder / 'hello.py'}:ALL")) == ["hello", "other"]

    def test_a_dotted_module(self, recipes, tmp_path, monkeypatch):
        """A dotted module is found from the current folder, as Python would find it."""
        recipes(folder="shelf/inner", __init__="", hello=HELLO)
        monkeypatch.chdir(tmp_path)

        assert names(load("shelf.inner.hello")) == ["hello"]

    def test_a_dotted_package(self, recipes, tmp_path, monkeypatch):
        """A package is a folder of recipes."""
        recipes(folder="drawer", __init__="", hello=HELLO)
        monkeypatch.chdir(tmp_path)

        assert names(load("drawer")) == ["hello"]

    @pytest.mark.parametrize("above", ["", None], ids=["in a package", "in a folder"])
    def test_a_package_that_defines_prompts_itself(self, recipes, tmp_path, monkeypatch, above):
        """Prompts defined in `__init__.py` are served, and prompts that it imports are served once."""
        recipes(folder="cabinet/inner", __init__=f"from .hi import hi\nfrom ._low import low\n{HELLO}")
        recipes(folder="cabinet/inner", hi=HELLO.replace("hello", "hi"))
        recipes(folder="cabinet/inner", _low=HELLO.replace("hello", "low"))
        if above is not None:
            recipes(folder="cabinet", __init__=above)
        monkeypatch.chdir(tmp_path)

        found = load("cabinet.inner")

        assert names(found) == ["hello", "hi", "low"]
        assert [one.diagnostics for one in found.by_file] == [(), ()]

    def test_an_init_as_a_file(self, recipes, tmp_path, monkeypatch, capsys):
        """A target that is an `__init__.py` is its package, and is imported once."""
        folder = recipes(folder="chest", __init__=f"print('here')\n{HELLO}")

        assert names(load(folder / "__init__.py")) == ["hello"]
        assert capsys.readouterr().out == "here\n"

    def test_an_object_of_a_module(self, recipes, tmp_path, monkeypatch):
        """`module:object` names one prompt."""
        recipes(folder="closet", __init__="", hello=HELLO + HELLO.replace("hello", "other"))
        monkeypatch.chdir(tmp_path)

        assert names(load("closet.hello:hello")) == ["hello"]

    @pytest.mark.parametrize(
        ("target", "reason"),
        [
            ("nowhere", "there is no such folder, file or module"),
            ("nowhere.py", "there is no such file or folder"),
            ("some/where", "there is no such file or folder"),
            ("nowhere:thing", "there is no such folder, file or module"),
        ],
    )
    def test_nothing_there(self, target, reason, tmp_path, monkeypatch):
        """A missing target is rejected with a message that shows how the target was interpreted."""
        monkeypatch.chdir(tmp_path)

        with pytest.raises(LoadError) as refused:
            load(target)

        assert f"cannot load '{target}': {reason}" == str(refused.value)

    @pytest.mark.parametrize(
        ("attribute", "reason"),
        [
            ("nope", "hello has no 'nope'; it has hello$"),
            ("helo", r"hello has no 'helo'; did you mean 'hello'\?$"),
            ("NUMBER", "'NUMBER' is neither a prompt, a resource nor a skill, nor several of them"),
        ],
    )
    def test_no_such_object(self, recipes, attribute, reason):
        """An object that is missing, or is not a prompt, is rejected."""
        folder = recipes(hello=HELLO + "\nNUMBER = 3")

        with pytest.raises(LoadError, match=reason):
            load(f"{folder / 'hello.py'}:{attribute}")


class TestImports:
    def test_relative_and_sibling_imports_find_one_module(self, recipes):
        """`from ._words`, `import _words` and `from recipes._words` import the same module."""
        folder = recipes(
            folder="phrases",
            _words="class Word: pass",
            hello="""
                import _words as sibling
                from . import _words as relative
                from phrases import _words as absolute
                from promptkit import prompt

                @prompt
                def same() -> str:
                    return str(sibling is relative is absolute)
            """,
        )

        (same,) = load(folder).prompts

        assert same() == "True"

    @pytest.mark.parametrize("name", ["json", "typing", "mcp", "promptkit", "attrs"])
    def test_a_folder_shadows_nothing(self, recipes, name):
        """A folder can have the name of an installed or standard module without shadowing it."""
        before = sys.modules.get(name)
        folder = recipes(folder=name, hello=HELLO)

        assert names(load(folder)) == ["hello"]
        assert before is sys.modules.get(name)

    def test_a_recipe_shadows_nothing(self, recipes):
        """A recipe can have the name of a standard module without shadowing it."""
        folder = recipes(
            string=HELLO,
            upper="""
                import string
                from promptkit import prompt

                @prompt
                def letters() -> str:
                    return string.ascii_letters
            """,
        )

        loaded = load(folder)
        letters = next(prompt for prompt in loaded.prompts if prompt.options.name == "letters")

        assert names(loaded) == ["hello", "letters"]
        assert letters().startswith("abc")

    @pytest.mark.parametrize("name", ["my-prompts", "2026 prompts", "提示"])
    def test_any_folder_name(self, recipes, name):
        """The folder's name does not have to be a Python identifier."""
        folder = recipes(folder=name, _word="WORD = 'x'", hello="from ._word import WORD\n" + HELLO)

        loaded = load(folder)

        assert (names(loaded), loaded.diagnostics) == (["hello"], ())

    def test_a_package_inside_a_package(self, recipes):
        """Recipes inside a larger package can import from all of it."""
        recipes(folder="app", __init__="NAME = 'app'")
        folder = recipes(folder="app/prompts", __init__="", hello="from .. import NAME\n" + HELLO)

        loaded = load(folder)

        assert (names(loaded), loaded.diagnostics) == (["hello"], ())

    def test_loading_again_reads_the_files_again(self, recipes):
        """Loading again after an edit returns the new prompts only."""
        load(recipes(hello=HELLO))

        folder = recipes(hello=HELLO.replace("def hello", "def goodbye") + "# changed, and of another size")

        assert names(load(folder)) == ["goodbye"]

    def test_a_sibling_is_never_another_folders(self, recipes):
        """`import _words` finds the file next to the recipe, even after other folders were loaded."""
        source = "import _words\n" + HELLO.replace('f"Hello, {name}."', "_words.WORD")
        said = []
        for folder in ("first", "second", "first"):
            path = recipes(folder=folder, word=source, _words=f"WORD = {folder!r}")
            said += [prompt("") for prompt in load(path).prompts]

        assert said == ["first", "second", "first"]

    def test_prompts_of_other_packages_are_not_served(self, recipes):
        """A prompt that is imported from elsewhere is not served."""
        recipes(folder="library", __init__="", shared=HELLO)
        sys.path.append(str(recipes(folder=".")))
        folder = recipes(mine="from library.shared import hello\n" + HELLO.replace("def hello", "def mine"))

        assert names(load(folder)) == ["mine"]

    def test_a_prompt_is_loaded_once(self, recipes):
        """A prompt that a sibling imports is served once."""
        folder = recipes(hello=HELLO, other="from .hello import hello as greeting")

        assert names(load(folder)) == ["hello"]


class TestOddFiles:
    def test_what_editors_and_archives_leave_behind(self, recipes):
        """Lock files, resource forks and folders are not recipes."""
        folder = recipes(hello=HELLO)
        (folder / ".#hello.py").symlink_to("nowhere")
        (folder / "._hello.py").write_bytes(b"\0\5\x16\7")
        (folder / "folder.py").mkdir()

        loaded = load(folder)

        assert (names(loaded), loaded.diagnostics) == (["hello"], ())

    def test_a_name_with_a_dot(self, recipes):
        """The hint for a file name with a dot is to rename the file."""
        folder = recipes()
        (folder / "a.b.py").write_text(HELLO)

        (found,) = load(folder).diagnostics

        assert found.hint == "rename the file: a module's name has no dot, as in a_b.py"

    @pytest.mark.parametrize("target", ["", "notes.txt"])
    def test_what_is_no_python(self, target, tmp_path, monkeypatch):
        """A target that does not name Python code is not imported."""
        (tmp_path / "notes.txt").write_text("raise SystemExit")
        monkeypatch.chdir(tmp_path)

        with pytest.raises(LoadError):
            load(target)


class TestBrokenRecipes:
    @pytest.mark.parametrize(
        ("source", "line", "message", "hint"),
        [
            pytest.param(
                "import os\nimport no_such_module",
                2,
                "recipe 'broken' cannot be imported: ModuleNotFoundError: No module named 'no_such_module'",
                "there is no 'no_such_module' next to the recipe, in the project's root ",
                id="missing-module",
            ),
            pytest.param(
                "x = 1\n\ndef (:\n",
                3,
                "recipe 'broken' cannot be imported: SyntaxError: invalid syntax",
                "correct the syntax",
                id="syntax",
            ),
            pytest.param(
                "def f():\n    return 1 / 0\n\nf()",
                2,
                "recipe 'broken' cannot be imported: ZeroDivisionError: division by zero",
                "correct the line",
                id="exception",
            ),
            pytest.param(
                "class Odd(BaseException):\n    __module__ = 'builtins'\n"
                "    def __str__(self): return 1 / 0\n\nraise Odd",
                5,
                "recipe 'broken' cannot be imported: Odd: <exception str() failed>",
                "correct the line",
                id="odd-exception",
            ),
            pytest.param(
                "import sys\nsys.exit(3)",
                2,
                "recipe 'broken' cannot be imported: SystemExit: 3",
                "do not exit while a recipe is imported",
                id="exit",
            ),
        ],
    )
    def test_one_broken_recipe_is_one_diagnostic(self, recipes, source, line, message, hint):
        """A recipe that fails to import is reported with its line, and the others are loaded."""
        folder = recipes(broken=source, hello=HELLO)

        loaded = load(folder)

        (found,) = loaded.diagnostics
        assert names(loaded) == ["hello"]
        assert (Rule.IMPORT_FAILED, str(folder / "broken.py"), line) == (
            found.rule,
            found.location.file,
            found.location.line,
        )
        assert message == found.message
        assert found.hint.startswith(hint)

    def test_a_package_that_cannot_be_imported(self, recipes):
        """A failing `__init__.py` is one diagnostic as well."""
        folder = recipes(__init__="1 / 0", hello=HELLO)

        loaded = load(folder)

        assert [diagnostic.message.partition("imported: ")[2] for diagnostic in loaded.diagnostics] == [
            "ZeroDivisionError: division by zero"
        ]

    def test_a_module_that_cannot_be_imported(self, recipes, tmp_path, monkeypatch):
        """A dotted module that fails to import is a diagnostic, not a missing target."""
        recipes(folder="cellar", __init__="", dark="import no_such_module")
        monkeypatch.chdir(tmp_path)

        (found,) = load("cellar.dark").diagnostics

        assert found.message.endswith("No module named 'no_such_module'")


class TestFilesThatCannotBeRead:
    @pytest.fixture
    def folder(self, recipes):
        """A folder with one valid recipe."""
        return recipes(hello=HELLO)

    def said(self, folder):
        """Return the diagnostics of a folder, after checking that its valid recipe was loaded."""
        loaded = load(folder)
        assert names(loaded) == ["hello"]
        return [(found.rule, found.message) for found in loaded.diagnostics]

    @pytest.mark.parametrize(
        ("leads_to", "reason"),
        [
            ("loop.py", "Too many levels of symbolic links"),
            ("nowhere.py", "No such file or directory"),
            ("hello.py/inside.py", "Not a directory"),
            ("x" * 300, "File name too long"),
        ],
    )
    def test_a_link_that_leads_to_no_file(self, folder, leads_to, reason):
        """A link that does not lead to a file is reported, and the other recipes are loaded."""
        (folder / "loop.py").symlink_to(leads_to)

        assert self.said(folder) == [(Rule.IMPORT_FAILED, f"recipe 'loop' cannot be read: {reason}")]

    def test_a_link_into_a_forbidden_folder(self, folder, monkeypatch):
        """A link whose target cannot be accessed is reported."""
        (folder / "secret.py").symlink_to("elsewhere")
        stat = os.stat

        def refuse(path, **options):
            if str(path).endswith("secret.py"):
                raise PermissionError(errno.EACCES, "Permission denied", path)
            return stat(path, **options)

        monkeypatch.setattr(os, "stat", refuse)

        assert self.said(folder) == [
            (Rule.IMPORT_FAILED, "recipe 'secret' cannot be read: Permission denied")
        ]

    @pytest.mark.parametrize("kind", ["pipe", "socket", "device"])
    def test_what_is_no_regular_file(self, folder, kind, monkeypatch):
        """A pipe, socket or device is reported but not opened, because a pipe could block forever."""
        monkeypatch.chdir(folder)
        if kind == "pipe":
            os.mkfifo("odd.py")
        elif kind == "socket":
            with socket.socket(socket.AF_UNIX) as bound:
                bound.bind("odd.py")
        else:
            Path("odd.py").symlink_to(os.devnull)

        reason = "it is a pipe, a socket or a device"
        assert self.said(folder) == [(Rule.IMPORT_FAILED, f"recipe 'odd' cannot be read: {reason}")]

    def test_a_folder_that_may_not_be_looked_into(self, folder, monkeypatch):
        """A target folder without read permission is an error."""

        def refuse(path):
            raise PermissionError(errno.EACCES, "Permission denied", path)

        monkeypatch.setattr(os, "scandir", refuse)

        with pytest.raises(LoadError, match="it cannot be read: Permission denied"):
            load(folder)

    @pytest.mark.parametrize("name", [b"caf\xe9.py", b"new\nline.py", b"\x1b[31mred.py", b"dir\xff"])
    def test_names_that_are_no_text(self, recipes, name):
        """Files and folders can have any name, and messages about them stay printable."""
        folder = recipes(hello=HELLO)
        odd = Path(os.fsdecode(os.fsencode(folder) + b"/" + name))
        if name.endswith(b".py"):
            odd.write_text("1 / 0")
        else:
            odd.mkdir()
            (odd / "bad.py").write_text("1 / 0")

        found = load(folder if name.endswith(b".py") else odd).diagnostics

        assert len(found) == 1
        text = str(found[0])
        assert [c for line in text.splitlines() for c in line if not c.isprintable()] == []
        assert len(text.splitlines()) == 2
        assert found[0].as_data()["file"].encode()

    @pytest.mark.parametrize(
        "target", ["x\0y", "a" * 5000, "a/" * 3000, "\ud800", "\udcff.py", "loop", "loop.py"]
    )
    def test_targets_that_are_no_paths(self, tmp_path, monkeypatch, target):
        """A target that is not a valid path raises LoadError."""
        monkeypatch.chdir(tmp_path)
        Path("loop").symlink_to("loop")
        Path("loop.py").symlink_to("loop.py")

        with pytest.raises(LoadError):
            load(target)


class TestWhatModulesDo:
    """A recipe is loaded with its siblings, whatever it contains, raises or puts in place of its module."""

    @pytest.mark.parametrize(
        "line",
        [
            "sys.modules[__name__] = types.ModuleType('other')",
            "sys.path_importer_cache.clear()",
            "liar = Liar()",
        ],
        ids=["replaces itself", "forgets folders", "holds what raises at every touch"],
    )
    def test_its_prompts_and_its_neighbours(self, recipes, line):
        """Lazy modules and proxies do not break the load."""
        liar = (
            "import sys, types\nclass Liar:\n    def __getattribute__(self, name): raise RuntimeError(name)\n"
        )
        folder = recipes(hello=f"{liar}{HELLO}\n{line}\n", zoo=HELLO.replace("hello", "zoo"))

        for _ in range(2):
            loaded = load(folder)

            assert (names(loaded), loaded.diagnostics) == (["hello", "zoo"], ())

    def test_a_resource_of_a_module_that_replaces_itself(self, recipes):
        """Resources are collected from the module that was executed, not from its replacement."""
        source = """
        import sys
        from promptkit import resource

        @resource("note:it")
        def note() -> str:
            return ""

        sys.modules[__name__] = "something else"
        """

        assert [found.name for found in load(recipes(note=source)).resources] == ["note"]

    @pytest.mark.parametrize(
        "source",
        [
            "raise BaseException",
            "raise GeneratorExit",
            "raise KeyError(__name__)",
            "raise BaseExceptionGroup('g', [SystemExit()])",
            "class E(BaseException):\n    def __str__(self): raise self\nraise E",
            "class E(Exception):\n    def __repr__(self): raise SystemExit\nraise E(E())",
            "class E(Exception):\n    __class__ = property(lambda self: 1 / 0)\nraise E",
            "import asyncio\nraise asyncio.CancelledError",
            "raise SyntaxError('x', (None, None, None, None))",
            "raise SyntaxError('x', ('\\udcff', -1, 99, 'text', 0, -7))",
            "raise ModuleNotFoundError(name=7)",
            "raise UnicodeDecodeError('utf-8', b'x', 0, 1, '\\x1b[31m')",
            "raise StopIteration",
            "def f(): f()\nf()",
            "exec('(' * 5000)",
        ],
    )
    def test_strange_exceptions(self, recipes, source):
        """Anything that a recipe raises becomes one printable diagnostic."""
        loaded = load(recipes(broken=source, hello=HELLO))

        (found,) = loaded.diagnostics
        assert names(loaded) == ["hello"]
        assert str(found).splitlines()[0].isprintable()
        assert "".join(map(str, found.as_data().values())).encode()


class TestACurrentFolderThatIsGone:
    def test_everything_else_goes_on(self, recipes, tmp_path, monkeypatch):
        """Recipes with absolute paths are loaded and diagnosed; relative targets raise LoadError."""
        folder = recipes(hello=HELLO, broken="1 / 0")
        gone = tmp_path / "gone"
        gone.mkdir()
        monkeypatch.chdir(gone)
        gone.rmdir()

        loaded = load(folder)

        assert names(loaded) == ["hello"]
        assert f"{folder / 'broken.py'}:1: error" in str(compile(loaded).diagnostics[0])
        for target in ("recipes", "recipes.py", "recipes:x", ".", "json.nothing"):
            with pytest.raises(LoadError):
                load(target)


class TestCircles:
    def test_what_was_executed_twice_is_declared_once(self, recipes):
        """The prompts of a file that fails only within a circular import are declared once."""
        folder = recipes(
            a="from .b import bye\n" + HELLO,
            b=HELLO.replace("hello", "bye") + "from .a import hello\n",
        )
        loaded = load(folder)

        (fault,) = compile(loaded).diagnostics
        assert "recipe 'a' cannot be imported: ImportError: cannot import name 'hello'" in fault.message
        assert names(loaded) == ["bye", "hello"]


class TestNamesOfPackages:
    def test_a_name_stays(self, recipes, tmp_path, monkeypatch):
        """A package keeps its name if a folder elsewhere on `sys.path` has the same name."""
        (tmp_path / "elsewhere" / "notes_of_mine").mkdir(parents=True)
        monkeypatch.syspath_prepend(str(tmp_path / "elsewhere"))
        folder = recipes(folder="inner/notes_of_mine", hello=HELLO)

        first, second = ({prompt.__module__ for prompt in load(folder).prompts} for _ in range(2))

        assert first == second == {"recipes_notes_of_mine.hello"}

    def test_a_name_with_a_dot_inside_a_package(self, recipes, tmp_path):
        """A folder that Python could not import as a subpackage is loaded as a separate package."""
        (tmp_path / "__init__.py").touch()
        folder = recipes(folder="v1.2", hello=HELLO)
        (folder / "__init__.py").touch()

        assert names(load(folder)) == ["hello"]


class TestTheProjectAround:
    @pytest.fixture
    def project(self, tmp_path, monkeypatch):
        """A project with a module that no other test imports."""
        monkeypatch.delitem(sys.modules, "mylib", raising=False)
        (tmp_path / "pyproject.toml").touch()
        (tmp_path / "mylib").mkdir()
        (tmp_path / "mylib" / "util.py").write_text("WORD = 'x'")
        return tmp_path

    USES = "from mylib.util import WORD\n" + HELLO

    @pytest.mark.parametrize("folder", ["recipes", "src/app/recipes", "mylib/recipes"])
    @pytest.mark.parametrize("target", ["{}", "{}/hello.py", "{}/hello.py:hello"])
    def test_its_modules_are_found(self, project, recipes, monkeypatch, folder, target):
        """Recipes can import from their project, however deep they are and however the target is written."""
        found = load(target.format(recipes(folder=folder, hello=self.USES)))

        assert (names(found), found.diagnostics) == (["hello"], ())
        assert str(project / "mylib" / "util.py") in found.read
        assert sys.path[-1] == str(project)

    def test_siblings_come_first(self, project, recipes):
        """A file next to the recipe takes precedence, because the project's root comes last in `sys.path`."""
        (project / "words.py").write_text("WORD = 'project'")
        source = "import words\n" + HELLO.replace('f"Hello, {name}."', "words.WORD")
        folder = recipes(hello=source, words="WORD = 'sibling'")

        (hello,) = load(folder).prompts

        assert hello("") == "sibling"

    def test_it_shadows_nothing(self, project, recipes):
        """A folder of the project with the name of an installed or standard module shadows neither."""
        for name in ("json", "attrs", "time", "promptkit"):
            (project / name).mkdir()
            (project / name / "__init__.py").write_text("raise RuntimeError")
        folder = recipes(hello="import json, attrs, time, promptkit.fragments\n" + HELLO)

        assert load(folder).diagnostics == ()

    def test_another_project_has_its_own(self, project, recipes):
        """A module imported for one project is not available to another project's recipes."""
        load(recipes(hello=self.USES))
        other = project / "other"
        other.mkdir()
        (other / ".git").touch()

        (found,) = load(recipes(folder="other/recipes", hello=self.USES)).diagnostics

        assert "No module named 'mylib'" in found.message
        assert str(project) not in sys.path

    def test_a_module_as_target(self, project, recipes, monkeypatch):
        """A dotted module finds its project from any folder inside it."""
        recipes(folder="deep/inner", hallo=self.USES)
        monkeypatch.chdir(project / "deep")

        assert names(load("inner.hallo")) == ["hello"]


class TestWhatWasPerhapsMeant:
    @pytest.mark.parametrize(
        ("folder", "target", "said"),
        [
            ("prompts", "recipes/", "there are recipes in 'prompts/'"),
            ("prompts", "./recipes", "there are recipes in 'prompts/'"),
            ("src/prompts", "src/recipes", "there are recipes in 'src/prompts/'"),
            ("src/prompts", "prompts/", "did you mean 'src/prompts/'?"),
            ("src/prompts", "src/promtps", "did you mean 'src/prompts/'?"),
            ("prompts", "prompt", "did you mean 'prompts/'?"),
            ("prompts/support", "prompst", "did you mean 'prompts/'?"),
            ("prompts/support", "support", "did you mean 'prompts/support/'?"),
            ("src/prompts/team", "src/prompst", "did you mean 'src/prompts/'?"),
            ("prompts/support", "nosuch", "there are recipes in 'prompts/support/'"),
        ],
    )
    def test_a_target_that_is_not_there(self, recipes, monkeypatch, folder, target, said):
        """The message names a folder that holds recipes, as a suggestion if its name is similar."""
        recipes(folder=folder, hello=HELLO)
        recipes(folder="scripts", tool="print('no recipe')")
        monkeypatch.chdir(recipes(folder="."))

        with pytest.raises(LoadError) as refused:
            load(target)

        assert str(refused.value).endswith(f"; {said}")

    @pytest.mark.parametrize(
        ("target", "said"),
        [
            ("recipe", "; did you mean 'recipes/'?"),
            ("nosuch", "; there are recipes in 'prompts/', 'recipes/', 'src/prompts/'"),
        ],
    )
    def test_several_are_near(self, recipes, tmp_path, monkeypatch, target, said):
        """The message suggests the one similar folder, or lists all folders with recipes."""
        for folder in ("prompts", "recipes", "src/prompts"):
            recipes(folder=folder, hello=HELLO)
        monkeypatch.chdir(tmp_path)

        with pytest.raises(LoadError) as refused:
            load(target)

        assert str(refused.value).endswith(f"there is no such folder, file or module{said}")

    def test_a_folder_without_recipes(self, recipes, tmp_path, monkeypatch):
        """For a folder without recipes, the hint names a folder that has some."""
        recipes(folder="src/prompts", hello=HELLO)
        recipes(folder="docs")
        monkeypatch.chdir(tmp_path)

        (found,) = compile(load("docs")).diagnostics

        assert found.hint.startswith("name 'src/prompts/', where some are, or decorate a function")

    def test_nothing_is_near(self, tmp_path, monkeypatch):
        """Without any recipes nearby, nothing is suggested."""
        monkeypatch.chdir(tmp_path)

        with pytest.raises(LoadError, match=r"folder$"):
            load("some/where")
