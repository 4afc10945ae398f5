import errno
import os
import socket
import sys
from pathlib import Path
from textwrap import dedent

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


def list_names(loaded):
    return sorted(prompt.options.name for prompt in loaded.prompts)


class TestTargets:
    def test_every_python_file_of_a_folder_is_a_recipe(self, recipes):
        """Every Python file in a folder is a recipe, in a fixed order."""
        folder = recipes(b=HELLO.replace("hello", "b"), a=HELLO.replace("hello", "a"))

        loaded = load(folder)

        assert list_names(loaded) == ["a", "b"]
        assert [file.file.name for file in loaded.by_file] == ["a.py", "b.py"]

    def test_helpers_and_tests_are_not_recipes(self, recipes):
        """Files whose names start with '_' and pytest's files are not imported."""
        folder = recipes(
            hello=HELLO,
            _helper="raise RuntimeError",
            test_hello="raise RuntimeError",
            hello_test="raise RuntimeError",
            conftest="raise RuntimeError",
        )

        loaded = load(folder)

        assert (list_names(loaded), loaded.diagnostics) == (["hello"], ())

    def test_file_can_import_its_siblings(self, recipes):
        """A target that is a file serves only that file, which can still import its siblings."""
        folder = recipes(
            hello="from .other import other\n" + HELLO,
            other=HELLO.replace("hello", "other"),
        )

        assert list_names(load(folder / "hello.py")) == ["hello", "other"]

    def test_only_the_named_object_is_served(self, recipes):
        """Only the object after the colon is served."""
        folder = recipes(hello=HELLO + HELLO.replace("hello", "other"))

        assert list_names(load(f"{folder / 'hello.py'}:other")) == ["other"]

    def test_object_can_be_a_list(self, recipes):
        """The object can be a list of prompts."""
        folder = recipes(hello=HELLO + HELLO.replace("hello", "other") + "\nALL = [hello, other]")

        assert list_names(load(f"{folder / 'hello.py'}:ALL")) == ["hello", "other"]

    def test_each_decorator_of_a_function_declares(self, recipes):
        """Several decorators of one function each declare a prompt, a resource or a skill, in any order."""
        source = """
        from promptkit import prompt, resource, skill

        @prompt
        @resource("one://{name}")
        @resource("two://{name}")
        @prompt(name="inner")
        def outer(name: str) -> str:
            return name

        @skill(name="first")
        @resource("three://x")
        @skill(name="second")
        def described() -> str:
            \"\"\"Use it.\"\"\"
            return "Text."

        again = prompt(name="again")(outer)
        """
        loaded = load(recipes(many=source))
        catalog = compile(loaded)

        assert catalog.diagnostics == ()
        assert sorted(catalog) == ["again", "inner", "outer"]
        assert {resource.uri_template for resource in catalog.resources} >= {
            "one://{name}",
            "two://{name}",
            "three://x",
        }
        assert {skill.name for skill in catalog.skills} == {"first", "second"}
        assert catalog["inner"].render({"name": "x"}).text == "x"

    @pytest.mark.parametrize(
        "source",
        [
            """
            for name in ("one", "two"):
                @resource(f"{name}://x")
                def document() -> str:
                    return "x"
            """,
            """
            @resource("one://x")
            def document() -> str:
                return "x"

            @resource("two://x")
            def document() -> str:
                return "y"
            """,
            """
            def make(name):
                return resource(f"{name}://x")(lambda: "x")

            by_name = {name: make(name) for name in ("one", "two")}
            """,
        ],
        ids=["loop", "same name", "dict"],
    )
    @pytest.mark.parametrize("is_module", [False, True], ids=["folder", "module"])
    def test_resources_without_a_name_of_their_own_are_served(self, recipes, monkeypatch, source, is_module):
        """Every resource that a module makes is served, even if no name in the module refers to it."""
        folder = recipes(many=f"from promptkit import resource\n{dedent(source)}")
        monkeypatch.syspath_prepend(folder)

        loaded = load("many" if is_module else folder)

        assert sorted(resource.uri_template for resource in loaded.resources) == ["one://x", "two://x"]

    def test_imported_declaration_inside_another_is_not_served(self, recipes):
        """A decorator of another module's resource declares one resource, not both."""
        helper = (
            "from promptkit import resource\n\n@resource('theirs://x')\ndef x() -> str:\n    return 'x'\n"
        )
        source = "from promptkit import resource\nfrom . import _helper\n\nours = resource('ours://x')(_helper.x)\n"

        loaded = load(recipes(_helper=helper, many=source))

        assert [resource.uri_template for resource in loaded.resources] == ["ours://x"]

    def test_dotted_module_is_found_from_the_current_folder(self, recipes, tmp_path, monkeypatch):
        """A dotted module is found from the current folder, as Python would find it."""
        recipes(folder="shelf/inner", __init__="", hello=HELLO)
        monkeypatch.chdir(tmp_path)

        assert list_names(load("shelf.inner.hello")) == ["hello"]

    def test_package_is_a_folder_of_recipes(self, recipes, tmp_path, monkeypatch):
        """A dotted package as target is loaded like a folder of recipes."""
        recipes(folder="drawer", __init__="", hello=HELLO)
        monkeypatch.chdir(tmp_path)

        assert list_names(load("drawer")) == ["hello"]

    @pytest.mark.parametrize("outer_init", ["", None], ids=["in a package", "in a folder"])
    def test_init_file_can_define_prompts(self, recipes, tmp_path, monkeypatch, outer_init):
        """Prompts defined in `__init__.py` are served, and prompts that it imports are served once."""
        recipes(folder="cabinet/inner", __init__=f"from .hi import hi\nfrom ._low import low\n{HELLO}")
        recipes(folder="cabinet/inner", hi=HELLO.replace("hello", "hi"))
        recipes(folder="cabinet/inner", _low=HELLO.replace("hello", "low"))
        if outer_init is not None:
            recipes(folder="cabinet", __init__=outer_init)
        monkeypatch.chdir(tmp_path)

        loaded = load("cabinet.inner")

        assert list_names(loaded) == ["hello", "hi", "low"]
        assert [file.diagnostics for file in loaded.by_file] == [(), ()]

    def test_init_file_as_target(self, recipes, tmp_path, monkeypatch, capsys):
        """An `__init__.py` as the target loads its package, which is imported once."""
        folder = recipes(folder="chest", __init__=f"print('here')\n{HELLO}")

        assert list_names(load(folder / "__init__.py")) == ["hello"]
        assert capsys.readouterr().out == "here\n"

    def test_object_of_a_module_is_served(self, recipes, tmp_path, monkeypatch):
        """With `module:object` as target, only this prompt is served."""
        recipes(folder="closet", __init__="", hello=HELLO + HELLO.replace("hello", "other"))
        monkeypatch.chdir(tmp_path)

        assert list_names(load("closet.hello:hello")) == ["hello"]

    @pytest.mark.parametrize(
        ("target", "reason"),
        [
            ("nowhere", "there is no such folder, file or module"),
            ("nowhere.py", "there is no such file or folder"),
            ("some/where", "there is no such file or folder"),
            ("nowhere:thing", "there is no such folder, file or module"),
        ],
    )
    def test_missing_target_is_rejected(self, target, reason, tmp_path, monkeypatch):
        """A missing target is rejected with a message that shows how the target was interpreted."""
        monkeypatch.chdir(tmp_path)

        with pytest.raises(LoadError) as raised:
            load(target)

        assert f"cannot load '{target}': {reason}" == str(raised.value)

    @pytest.mark.parametrize(
        ("attribute", "reason"),
        [
            ("nope", "hello has no 'nope'; it has hello$"),
            ("helo", r"hello has no 'helo'; did you mean 'hello'\?$"),
            ("NUMBER", "'NUMBER' is neither a prompt, a resource nor a skill, nor a list of these"),
        ],
    )
    def test_unknown_object_is_rejected(self, recipes, attribute, reason):
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
    def test_folder_does_not_shadow_a_module(self, recipes, name):
        """A folder can have the name of an installed or standard module without shadowing it."""
        before = sys.modules.get(name)
        folder = recipes(folder=name, hello=HELLO)

        assert list_names(load(folder)) == ["hello"]
        assert before is sys.modules.get(name)

    def test_recipe_does_not_shadow_a_module(self, recipes):
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

        assert list_names(loaded) == ["hello", "letters"]
        assert letters().startswith("abc")

    @pytest.mark.parametrize("name", ["my-prompts", "2026 prompts", "提示"])
    def test_folder_can_have_any_name(self, recipes, name):
        """The folder's name does not have to be a Python identifier."""
        folder = recipes(folder=name, _word="WORD = 'x'", hello="from ._word import WORD\n" + HELLO)

        loaded = load(folder)

        assert (list_names(loaded), loaded.diagnostics) == (["hello"], ())

    def test_nested_package_can_import_from_the_outer_one(self, recipes):
        """Recipes inside a larger package can import from all of it."""
        recipes(folder="app", __init__="NAME = 'app'")
        folder = recipes(folder="app/prompts", __init__="", hello="from .. import NAME\n" + HELLO)

        loaded = load(folder)

        assert (list_names(loaded), loaded.diagnostics) == (["hello"], ())

    def test_second_load_reads_edited_files(self, recipes):
        """Loading again after an edit returns only the new prompts."""
        load(recipes(hello=HELLO))

        folder = recipes(hello=HELLO.replace("def hello", "def goodbye") + "# changed, and of another size")

        assert list_names(load(folder)) == ["goodbye"]

    def test_sibling_import_finds_its_own_folder(self, recipes):
        """`import _words` finds the file next to the recipe, even after other folders were loaded."""
        source = "import _words\n" + HELLO.replace('f"Hello, {name}."', "_words.WORD")
        texts = []
        for folder in ("first", "second", "first"):
            path = recipes(folder=folder, word=source, _words=f"WORD = {folder!r}")
            texts += [prompt("") for prompt in load(path).prompts]

        assert texts == ["first", "second", "first"]

    def test_imported_prompts_are_not_served(self, recipes):
        """A prompt that is imported from elsewhere is not served."""
        recipes(folder="library", __init__="", shared=HELLO)
        sys.path.append(str(recipes(folder=".")))
        folder = recipes(mine="from library.shared import hello\n" + HELLO.replace("def hello", "def mine"))

        assert list_names(load(folder)) == ["mine"]

    def test_prompt_that_a_sibling_imports_is_served_once(self, recipes):
        """A prompt that a sibling imports is served once."""
        folder = recipes(hello=HELLO, other="from .hello import hello as greeting")

        assert list_names(load(folder)) == ["hello"]


class TestOddFiles:
    def test_editor_and_archive_files_are_ignored(self, recipes):
        """Lock files, resource forks and folders are not recipes."""
        folder = recipes(hello=HELLO)
        (folder / ".#hello.py").symlink_to("nowhere")
        (folder / "._hello.py").write_bytes(b"\0\5\x16\7")
        (folder / "folder.py").mkdir()

        loaded = load(folder)

        assert (list_names(loaded), loaded.diagnostics) == (["hello"], ())

    def test_file_name_with_a_dot_gets_a_hint(self, recipes):
        """The hint for a file name with a dot is to rename the file."""
        folder = recipes()
        (folder / "a.b.py").write_text(HELLO)

        (diagnostic,) = load(folder).diagnostics

        assert diagnostic.hint == "rename the file, for example to a_b.py: module names cannot contain dots"

    @pytest.mark.parametrize("target", ["", "notes.txt"])
    def test_non_python_target_is_not_imported(self, target, tmp_path, monkeypatch):
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
                "do not exit while a recipe is being imported",
                id="exit",
            ),
        ],
    )
    def test_one_broken_recipe_is_one_diagnostic(self, recipes, source, line, message, hint):
        """A recipe that fails to import is reported with its line, and the others are loaded."""
        folder = recipes(broken=source, hello=HELLO)

        loaded = load(folder)

        (diagnostic,) = loaded.diagnostics
        assert list_names(loaded) == ["hello"]
        assert (Rule.IMPORT_FAILED, str(folder / "broken.py"), line) == (
            diagnostic.rule,
            diagnostic.location.file,
            diagnostic.location.line,
        )
        assert message == diagnostic.message
        assert diagnostic.hint.startswith(hint)

    def test_failing_init_file_is_one_diagnostic(self, recipes):
        """A failing `__init__.py` is one diagnostic as well."""
        folder = recipes(__init__="1 / 0", hello=HELLO)

        loaded = load(folder)

        assert [diagnostic.message.partition("imported: ")[2] for diagnostic in loaded.diagnostics] == [
            "ZeroDivisionError: division by zero"
        ]

    def test_failing_module_is_a_diagnostic(self, recipes, tmp_path, monkeypatch):
        """A dotted module that fails to import is a diagnostic, not a missing target."""
        recipes(folder="cellar", __init__="", dark="import no_such_module")
        monkeypatch.chdir(tmp_path)

        (diagnostic,) = load("cellar.dark").diagnostics

        assert diagnostic.message.endswith("No module named 'no_such_module'")


class TestUnreadableFiles:
    @pytest.fixture
    def folder(self, recipes):
        """A folder with one valid recipe."""
        return recipes(hello=HELLO)

    def list_diagnostics(self, folder):
        """Return the diagnostics of a folder, after checking that its valid recipe was loaded."""
        loaded = load(folder)
        assert list_names(loaded) == ["hello"]
        return [(diagnostic.rule, diagnostic.message) for diagnostic in loaded.diagnostics]

    @pytest.mark.parametrize(
        ("target", "reason"),
        [
            ("loop.py", "Too many levels of symbolic links"),
            ("nowhere.py", "No such file or directory"),
            ("hello.py/inside.py", "Not a directory"),
            ("x" * 300, "File name too long"),
        ],
    )
    def test_broken_link_is_reported(self, folder, target, reason):
        """A link that does not lead to a file is reported, and the other recipes are loaded."""
        (folder / "loop.py").symlink_to(target)

        assert self.list_diagnostics(folder) == [
            (Rule.IMPORT_FAILED, f"recipe 'loop' cannot be read: {reason}")
        ]

    def test_inaccessible_link_is_reported(self, folder, monkeypatch):
        """A link whose target cannot be accessed is reported."""
        (folder / "secret.py").symlink_to("elsewhere")
        stat = os.stat

        def refuse(path, **options):
            if str(path).endswith("secret.py"):
                raise PermissionError(errno.EACCES, "Permission denied", path)
            return stat(path, **options)

        monkeypatch.setattr(os, "stat", refuse)

        assert self.list_diagnostics(folder) == [
            (Rule.IMPORT_FAILED, "recipe 'secret' cannot be read: Permission denied")
        ]

    @pytest.mark.parametrize("kind", ["pipe", "socket", "device"])
    def test_special_file_is_not_opened(self, folder, kind, monkeypatch):
        """A pipe, socket or device is reported but not opened, because a pipe could block forever."""
        monkeypatch.chdir(folder)
        if kind == "pipe":
            os.mkfifo("odd.py")
        elif kind == "socket":
            with socket.socket(socket.AF_UNIX) as server:
                server.bind("odd.py")
        else:
            Path("odd.py").symlink_to(os.devnull)

        reason = "it is a pipe, a socket or a device"
        assert self.list_diagnostics(folder) == [
            (Rule.IMPORT_FAILED, f"recipe 'odd' cannot be read: {reason}")
        ]

    def test_unreadable_target_folder_is_an_error(self, folder, monkeypatch):
        """A target folder without read permission is an error."""

        def refuse(path):
            raise PermissionError(errno.EACCES, "Permission denied", path)

        monkeypatch.setattr(os, "scandir", refuse)

        with pytest.raises(LoadError, match="it cannot be read: Permission denied"):
            load(folder)

    @pytest.mark.parametrize("name", [b"caf\xe9.py", b"new\nline.py", b"\x1b[31mred.py", b"dir\xff"])
    def test_messages_about_odd_names_are_printable(self, recipes, name):
        """Files and folders can have any name, and messages about them stay printable."""
        folder = recipes(hello=HELLO)
        odd = Path(os.fsdecode(os.fsencode(folder) + b"/" + name))
        if name.endswith(b".py"):
            odd.write_text("1 / 0")
        else:
            odd.mkdir()
            (odd / "bad.py").write_text("1 / 0")

        diagnostics = load(folder if name.endswith(b".py") else odd).diagnostics

        assert len(diagnostics) == 1
        text = str(diagnostics[0])
        assert [c for line in text.splitlines() for c in line if not c.isprintable()] == []
        assert len(text.splitlines()) == 2
        assert diagnostics[0].as_data()["file"].encode()

    @pytest.mark.parametrize(
        "target", ["x\0y", "a" * 5000, "a/" * 3000, "\ud800", "\udcff.py", "loop", "loop.py"]
    )
    def test_invalid_path_is_rejected(self, tmp_path, monkeypatch, target):
        """A target that is not a valid path raises LoadError."""
        monkeypatch.chdir(tmp_path)
        Path("loop").symlink_to("loop")
        Path("loop.py").symlink_to("loop.py")

        with pytest.raises(LoadError):
            load(target)


class TestUnusualModules:
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
    def test_lazy_modules_and_proxies_are_loaded(self, recipes, line):
        """Lazy modules and proxies do not break the load."""
        liar = (
            "import sys, types\nclass Liar:\n    def __getattribute__(self, name): raise RuntimeError(name)\n"
        )
        folder = recipes(hello=f"{liar}{HELLO}\n{line}\n", zoo=HELLO.replace("hello", "zoo"))

        for _ in range(2):
            loaded = load(folder)

            assert (list_names(loaded), loaded.diagnostics) == (["hello", "zoo"], ())

    def test_resources_come_from_the_executed_module(self, recipes):
        """Resources are collected from the module that was executed, not from its replacement."""
        source = """
        import sys
        from promptkit import resource

        @resource("note:it")
        def note() -> str:
            return ""

        sys.modules[__name__] = "something else"
        """

        assert [resource.name for resource in load(recipes(note=source)).resources] == ["note"]

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
    def test_any_exception_is_one_diagnostic(self, recipes, source):
        """Anything that a recipe raises becomes one printable diagnostic."""
        loaded = load(recipes(broken=source, hello=HELLO))

        (diagnostic,) = loaded.diagnostics
        assert list_names(loaded) == ["hello"]
        assert str(diagnostic).splitlines()[0].isprintable()
        assert "".join(map(str, diagnostic.as_data().values())).encode()


class TestDeletedCurrentFolder:
    def test_absolute_paths_still_load(self, recipes, tmp_path, monkeypatch):
        """Recipes with absolute paths are loaded and diagnosed; relative targets raise LoadError."""
        folder = recipes(hello=HELLO, broken="1 / 0")
        gone = tmp_path / "gone"
        gone.mkdir()
        monkeypatch.chdir(gone)
        gone.rmdir()

        loaded = load(folder)

        assert list_names(loaded) == ["hello"]
        assert f"{folder / 'broken.py'}:1: error" in str(compile(loaded).diagnostics[0])
        for target in ("recipes", "recipes.py", "recipes:x", ".", "json.nothing"):
            with pytest.raises(LoadError):
                load(target)


class TestCircularImports:
    def test_prompts_are_declared_once(self, recipes):
        """The prompts of a file that fails only within a circular import are declared once."""
        folder = recipes(
            a="from .b import bye\n" + HELLO,
            b=HELLO.replace("hello", "bye") + "from .a import hello\n",
        )
        loaded = load(folder)

        (diagnostic,) = compile(loaded).diagnostics
        assert "recipe 'a' cannot be imported: ImportError: cannot import name 'hello'" in diagnostic.message
        assert list_names(loaded) == ["bye", "hello"]


class TestPackageNames:
    def test_package_keeps_its_name(self, recipes, tmp_path, monkeypatch):
        """A package keeps its name if a folder elsewhere on `sys.path` has the same name."""
        (tmp_path / "elsewhere" / "notes_of_mine").mkdir(parents=True)
        monkeypatch.syspath_prepend(str(tmp_path / "elsewhere"))
        folder = recipes(folder="inner/notes_of_mine", hello=HELLO)

        first, second = ({prompt.__module__ for prompt in load(folder).prompts} for _ in range(2))

        assert first == second == {"recipes_notes_of_mine.hello"}

    def test_folder_with_a_dot_is_a_separate_package(self, recipes, tmp_path):
        """A folder that Python could not import as a subpackage is loaded as a separate package."""
        (tmp_path / "__init__.py").touch()
        folder = recipes(folder="v1.2", hello=HELLO)
        (folder / "__init__.py").touch()

        assert list_names(load(folder)) == ["hello"]


class TestProject:
    @pytest.fixture
    def project(self, tmp_path, monkeypatch):
        """A project with a module that no other test imports."""
        monkeypatch.delitem(sys.modules, "mylib", raising=False)
        (tmp_path / "pyproject.toml").touch()
        (tmp_path / "mylib").mkdir()
        (tmp_path / "mylib" / "util.py").write_text("WORD = 'x'")
        return tmp_path

    RECIPE = "from mylib.util import WORD\n" + HELLO

    @pytest.mark.parametrize("folder", ["recipes", "src/app/recipes", "mylib/recipes"])
    @pytest.mark.parametrize("target", ["{}", "{}/hello.py", "{}/hello.py:hello"])
    def test_project_modules_can_be_imported(self, project, recipes, monkeypatch, folder, target):
        """Recipes can import from their project, however deep they are and however the target is written."""
        loaded = load(target.format(recipes(folder=folder, hello=self.RECIPE)))

        assert (list_names(loaded), loaded.diagnostics) == (["hello"], ())
        assert str(project / "mylib" / "util.py") in loaded.read_paths
        assert sys.path[-1] == str(project)

    def test_siblings_take_precedence(self, project, recipes):
        """A file next to the recipe takes precedence, because the project's root comes last in `sys.path`."""
        (project / "words.py").write_text("WORD = 'project'")
        source = "import words\n" + HELLO.replace('f"Hello, {name}."', "words.WORD")
        folder = recipes(hello=source, words="WORD = 'sibling'")

        (hello,) = load(folder).prompts

        assert hello("") == "sibling"

    def test_project_folder_does_not_shadow_a_module(self, project, recipes):
        """A project folder with the name of an installed or standard library module does not shadow it."""
        for name in ("json", "attrs", "time", "promptkit"):
            (project / name).mkdir()
            (project / name / "__init__.py").write_text("raise RuntimeError")
        folder = recipes(hello="import json, attrs, time, promptkit.fragments\n" + HELLO)

        assert load(folder).diagnostics == ()

    def test_projects_do_not_share_modules(self, project, recipes):
        """A module imported for one project is not available to another project's recipes."""
        load(recipes(hello=self.RECIPE))
        other = project / "other"
        other.mkdir()
        (other / ".git").touch()

        (diagnostic,) = load(recipes(folder="other/recipes", hello=self.RECIPE)).diagnostics

        assert "No module named 'mylib'" in diagnostic.message
        assert str(project) not in sys.path

    def test_dotted_module_finds_its_project(self, project, recipes, monkeypatch):
        """A dotted module finds its project from any folder inside it."""
        recipes(folder="deep/inner", hallo=self.RECIPE)
        monkeypatch.chdir(project / "deep")

        assert list_names(load("inner.hallo")) == ["hello"]


class TestSuggestions:
    @pytest.mark.parametrize(
        ("folder", "target", "suggestion"),
        [
            ("prompts", "recipes/", "there are recipes in 'prompts/'"),
            ("prompts", "./recipes", "there are recipes in 'prompts/'"),
            ("src/prompts", "src/recipes", "there are recipes in 'src/prompts/'"),
            ("src/prompts", "prompts/", "there are recipes in 'src/prompts/'"),
            ("prompts", "prompt", "there are recipes in 'prompts/'"),
            ("prompts/support", "nosuch", "there are recipes in 'prompts/support/'"),
        ],
    )
    def test_folder_with_recipes_is_suggested(self, recipes, monkeypatch, folder, target, suggestion):
        """The message names a folder that holds recipes."""
        recipes(folder=folder, hello=HELLO)
        recipes(folder="scripts", tool="print('no recipe')")
        monkeypatch.chdir(recipes(folder="."))

        with pytest.raises(LoadError) as raised:
            load(target)

        assert str(raised.value).endswith(f"; {suggestion}")

    def test_all_folders_are_named(self, recipes, tmp_path, monkeypatch):
        """The message lists all folders with recipes."""
        for folder in ("prompts", "recipes", "src/prompts"):
            recipes(folder=folder, hello=HELLO)
        monkeypatch.chdir(tmp_path)

        with pytest.raises(LoadError) as raised:
            load("nosuch")

        assert str(raised.value).endswith("; there are recipes in 'prompts/', 'recipes/', 'src/prompts/'")

    def test_hint_names_another_folder(self, recipes, tmp_path, monkeypatch):
        """For a folder without recipes, the hint names a folder that has some."""
        recipes(folder="src/prompts", hello=HELLO)
        recipes(folder="docs")
        monkeypatch.chdir(tmp_path)

        (diagnostic,) = compile(load("docs")).diagnostics

        assert diagnostic.hint.startswith(
            "pass 'src/prompts/', which contains recipes, or decorate a function"
        )

    def test_nothing_is_suggested_without_recipes(self, tmp_path, monkeypatch):
        """Without any recipes nearby, nothing is suggested."""
        monkeypatch.chdir(tmp_path)

        with pytest.raises(LoadError, match=r"folder$"):
            load("some/where")
