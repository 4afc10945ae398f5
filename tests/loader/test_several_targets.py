"""Several targets loaded together: folders, files of one folder, and modules."""

import sys

import pytest

from promptkit.compiler.compilation import compile
from promptkit.errors.exceptions import LoadError
from promptkit.loader.loader import load
from promptkit.loader.targets import target_of

SAYS = """
from promptkit import prompt
{line}

@prompt
def {name}() -> str:
    return {says}
"""


def says(name, text="'x'", line=""):
    """Return the source of a recipe with one prompt."""
    return SAYS.format(name=name, says=text, line=line)


def texts(targets):
    """Return the text of each prompt of valid targets, by name."""
    catalog = compile(targets)
    assert catalog.diagnostics == ()
    return {name: prompt.render().messages[0].content.text for name, prompt in catalog.items()}


class TestWhatIsServed:
    def test_all_that_each_declares(self, recipes, tmp_path, monkeypatch):
        """A folder, a file, an object of a file, a module and a package are served together."""
        folder = recipes("prompts", plan=says("plan"))
        file = recipes("more", review=says("review"), other=says("other")) / "review.py"
        one = recipes("single", two=says("first") + says("second")) / "two.py"
        recipes("outer/shelf", __init__=says("about"), inner=says("inner"))
        recipes(".", loose=says("loose"))
        monkeypatch.chdir(tmp_path)

        found = load([folder, str(file), f"{one}:second", "loose", "outer.shelf"])

        served = {prompt.options.name for prompt in found.prompts}
        assert served == {"plan", "review", "second", "loose", "about", "inner"}
        assert found.diagnostics == ()

    def test_folders_of_one_name_are_packages_of_their_own(self, recipes):
        """Folders with the same name are separate packages, and each recipe imports its own siblings."""
        names = ["prompts", "a/prompts", "b/prompts"]
        folders = [
            recipes(
                folder,
                _words=f"WORD = {folder!r}",
                **{f"from_{at}": says(f"from_{at}", "WORD", "from ._words import WORD")},
            )
            for at, folder in enumerate(names)
        ]

        assert texts(folders) == {f"from_{at}": name for at, name in enumerate(names)}

    def test_what_is_imported_while_a_prompt_is_called(self, recipes):
        """Imports inside a prompt's function find the modules of its own folder and project."""
        for place in ("one", "two"):
            (recipes(place) / "pyproject.toml").touch()
            recipes(place, **{f"words_of_{place}": f"WORD = {place!r}"})
        folders = [
            recipes(
                f"{place}/prompts",
                _late="",
                **{place: says(place, f"late_{place}()") + LATE.format(place=place)},
            )
            for place in ("one", "two")
        ]

        assert texts(folders) == {"one": "one", "two": "two"}

    def test_files_of_one_folder_are_modules_of_one_package(self, recipes):
        """Files of one folder, as from a shell's `recipes/*.py`, are modules of one package."""
        folder = recipes(
            a=says("a", "b.render().messages[0].content.text", "from .b import b"), b=says("b"), c=says("c")
        )

        assert texts([folder / "a.py", folder / "b.py"]) == {"a": "x", "b": "x"}

    def test_two_prompts_of_one_name_are_a_fault_wherever_they_are(self, recipes):
        """Of two prompts with the same name in different targets, the second is not served."""
        found = compile(load([recipes("one", a=says("plan")), recipes("two", b=says("plan"))]))

        assert ([*found], [one.rule.value for one in found.diagnostics]) == (["plan"], ["PK202"])

    def test_a_module_of_the_project_exists_once(self, recipes, tmp_path):
        """Recipes of both targets import the same module of their project."""
        (tmp_path / "pyproject.toml").touch()
        recipes(".", common="print('imported')")
        folders = [
            recipes(name, **{name: says(name, "str(id(common))", "import common")}) for name in ("one", "two")
        ]

        found = texts(folders)

        assert found["one"] == found["two"]

    def test_a_test_patches_what_is_loaded(self, recipes):
        """Modules that are already imported are reused, so that a test can patch them in every target."""
        folders = [
            recipes(name, **{name: says(name, "WORD", "WORD = 'x'")}) for name in ("first_of", "second_of")
        ]
        load(folders)
        for name in ("first_of", "second_of"):
            sys.modules[f"{name}.{name}"].WORD = "patched"

        assert texts(folders) == {"first_of": "patched", "second_of": "patched"}


LATE = """
def late_{place}():
    import words_of_{place}
    from . import _late
    return words_of_{place}.WORD
"""


class TestWhatIsRefused:
    @pytest.fixture
    def folder(self, recipes, tmp_path, monkeypatch):
        """The current folder has a folder of recipes with a subfolder."""
        monkeypatch.chdir(tmp_path)
        recipes("recipes/ops", b=says("b"))
        return recipes(a=says("a"))

    @pytest.mark.usefixtures("folder")
    @pytest.mark.parametrize(
        ("targets", "named", "other"),
        [
            (["recipes", "recipes/ops"], "recipes/ops", "recipes"),
            (["recipes/ops", "recipes"], "recipes", "recipes/ops"),
            (["recipes", "recipes/a.py"], "recipes/a.py", "recipes"),
            (["recipes/a.py:one", "recipes/a.py:two"], "recipes/a.py:two", "recipes/a.py:one"),
            (["recipes", "./recipes/"], "./recipes/", "recipes"),
        ],
        ids=["below", "above", "a file", "twice", "spelt"],
    )
    def test_a_target_that_lies_in_another(self, targets, named, other):
        """A target inside another target is rejected, because its recipes would be imported twice."""
        with pytest.raises(LoadError) as caught:
            load(targets)

        reason = f"{other!r} has files of it, too: name one of the two"
        assert (caught.value.target, caught.value.reason) == (named, reason)

    def test_a_target_that_is_not_there(self, recipes):
        """The error names the missing target."""
        with pytest.raises(LoadError) as caught:
            load([recipes(a=says("a")), "nowhere/at/all"])

        assert caught.value.target == "nowhere/at/all"

    def test_no_target(self):
        """An empty list of targets is rejected."""
        with pytest.raises(LoadError, match="name a folder, a file or a module"):
            load([])

    def test_a_sibling_that_two_folders_have(self, recipes):
        """A plain import of a module that two targets have is an error, because it is ambiguous."""
        one = recipes("one", words="", a=says("a", line="import words"))
        two = recipes("two", words="", b=says("b", line="from . import words"))

        (fault,) = compile(load([one, two])).diagnostics

        assert fault.message.endswith(
            "ImportError: 'words' is next to the recipes of two targets: write 'from . import words'"
        )


class TestModulesAsTargets:
    @pytest.fixture
    def library(self, recipes, tmp_path, monkeypatch):
        """A package of prompts in the current folder, which is not a target."""
        recipes("library", __init__="", plans=says("plan") + says("review"))
        monkeypatch.chdir(tmp_path)

    @pytest.mark.parametrize("target", ["served", "served.py", "_served.py"])
    @pytest.mark.parametrize(
        "source",
        [
            "from library.plans import plan, review",
            "from library import plans\nPROMPTS = [plans.plan, plans.review]",
            "from library import plans\nPROMPTS = (plans.plan, plans.review)",
        ],
        ids=["imported", "listed", "in a tuple"],
    )
    def test_one_that_lists_prompts_serves_them(self, source, target, library, recipes):
        """A module named as target serves the prompts that it imports or lists, even if it is private."""
        recipes(".", **{target.removesuffix(".py"): source})

        assert {prompt.options.name for prompt in load(target).prompts} == {"plan", "review"}

    def test_a_package_serves_what_its_init_imports(self, library, recipes):
        """A package serves the prompts that its `__init__.py` imports, each of them once."""
        init = "from library.plans import plan\nfrom .own import own"
        recipes("outer/published", __init__=init, own=says("own"))

        served = [prompt.options.name for one in load("outer.published").by_file for prompt in one.prompts]

        assert sorted(served) == ["own", "plan"]

    def test_a_recipe_of_a_folder_may_import_a_prompt_to_call_it(self, library, recipes):
        """A recipe in a folder does not serve a prompt that it only imports to call."""
        folder = recipes(mine=says("mine", "plan()", "from library.plans import plan"))

        assert texts(folder) == {"mine": "x"}


@pytest.mark.parametrize(
    ("file", "target"),
    [
        ("prompts/ops/deploy.py", "prompts"),
        ("one.py", "one.py:deploy"),
        ("elsewhere/library.py", "package.module"),
    ],
)
def test_the_target_of_a_file(file, target, tmp_path, monkeypatch):
    """The target of a file is the folder or file that contains it, or a module otherwise."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prompts").mkdir()
    (tmp_path / "one.py").touch()

    assert target_of(str(tmp_path / file), ["prompts", "one.py:deploy", "package.module"]) == target
