"""Targets with a prefix: how they are parsed, and the names of their prompts, tools and skills."""

import os

import pytest

from promptkit.compiler.compilation import compile
from promptkit.compiler.reloading import Reloader
from promptkit.errors.exceptions import LoadError
from promptkit.errors.rules import Rule
from promptkit.loader.loader import load
from promptkit.loader.targets import (
    format_render_targets,
    is_markdown_target,
    locate_target,
    split_prefix,
    split_target,
    with_markdown,
    with_path,
)
from promptkit.testing import Client, ProtocolError

REVIEW = '''
from promptkit import prompt, resource, skill

@prompt
def review(code: str) -> str:
    """Review code."""
    return "{text} " + code

review.case("short", "x")

@skill(prefix="{prefix}", description="Deploy it. Use it to deploy.")
def deploy() -> str:
    return "Deploy with {text}."

@resource("{text}://rules")
def rules() -> str:
    """The rules."""
    return "{text}"
'''

NAMED = """
from promptkit import prompt

@prompt(name="{name}")
def named() -> str:
    return "x"
"""

WITH_SCOPES = """
from promptkit import prompt

@prompt(scopes=["deploy"])
def review() -> str:
    return "secret"
"""


@pytest.fixture
def two_folders(recipes, tmp_path, monkeypatch):
    """
    Two folders with the same name, each with a prompt, a skill and a resource of the same name, as targets.
    """
    monkeypatch.chdir(tmp_path)
    recipes("team/prompts", review=REVIEW.format(text="team", prefix=""))
    recipes("ops/prompts", review=REVIEW.format(text="ops", prefix="acme/billing"))
    return ["review=team/prompts", "ops=ops/prompts"]


class TestParsing:
    @pytest.mark.parametrize(
        ("target", "prefix", "path", "attribute"),
        [
            ("review=team/prompts", "review", "team/prompts", ""),
            ("a=team/prompts", "a", "team/prompts", ""),
            ("a-b_c9=team/prompts", "a-b_c9", "team/prompts", ""),
            ("review=team/prompts/r.py:plan", "review", "team/prompts/r.py", "plan"),
            ("review=package.module", "review", "package.module", ""),
            ("review=package.module:plan", "review", "package.module", "plan"),
            ("review=a=b", "review", "a=b", ""),
            (f"{'a' * 32}=x", "a" * 32, "x", ""),
            ("team/prompts", "", "team/prompts", ""),
            ("review=", "", "review=", ""),
            ("=team", "", "=team", ""),
            ("Review=team", "", "Review=team", ""),
            ("9=team", "", "9=team", ""),
            ("re.view=team", "", "re.view=team", ""),
            ("re/view=team", "", "re/view=team", ""),
            ("review-=team", "", "review-=team", ""),
            (f"{'a' * 33}=x", "", f"{'a' * 33}=x", ""),
        ],
    )
    def test_words(self, target, prefix, path, attribute):
        """A prefix has up to 32 characters that are valid in names and in hosts of URIs."""
        assert split_prefix(target)[0] == prefix
        assert split_target(target) == (path, attribute)

    @pytest.mark.parametrize(
        "target", ["a=b", "a=b/c", "a=b/c.py", "a=b/c.py:object", "a=b/*.md", "a=b/**/*.md"]
    )
    def test_existing_path_is_not_split(self, target, tmp_path, monkeypatch):
        """A target is a path, although it has an equals sign, if that path exists."""
        monkeypatch.chdir(tmp_path)
        assert split_prefix(target)[0] == "a"

        (tmp_path / "a=b" / "c").mkdir(parents=True)
        (tmp_path / "a=b" / "c.py").touch()

        assert split_prefix(target) == ("", target)

    def test_folder_of_a_path_does_not_count(self, tmp_path, monkeypatch):
        """A target is split although the folder of the unsplit path exists, if the path itself does not."""
        monkeypatch.chdir(tmp_path)
        (tmp_path / "a=b").mkdir()

        assert split_prefix("a=b/missing") == ("a", "b/missing")

    def test_markdown(self, tmp_path, monkeypatch):
        """
        Markdown files and patterns can have a prefix; the patterns of a folder get the prefix of the folder.
        """
        monkeypatch.chdir(tmp_path)
        (tmp_path / "team").mkdir()
        (tmp_path / "team" / "fix.md").touch()

        assert is_markdown_target("a=team/fix.md")
        assert is_markdown_target("a=team/*.md")
        assert not is_markdown_target("a=team/missing.md")
        assert locate_target("a=team/*.md") == (str(tmp_path / "team"), "")
        assert with_markdown(["a=team", "b=x.y"], ["*.md"]) == ["a=team", "b=x.y", "a=team/*.md"]

    def test_parts_are_kept(self, tmp_path, monkeypatch):
        """Replacing the path in a target keeps the prefix and the object."""
        monkeypatch.chdir(tmp_path)

        assert with_path("a=x.py:plan", "/y.py") == "a=/y.py:plan"
        assert with_path("x.py:plan", "/y.py") == "/y.py:plan"
        assert with_path("a=x", "/y") == "a=/y"
        assert with_path("a=x/*.md", "/y/*.md") == "a=/y/*.md"

    def test_words_for_render(self, tmp_path, monkeypatch):
        """`render` accepts one plain target as a word, and all others as options."""
        monkeypatch.chdir(tmp_path)

        assert format_render_targets(["x y"], repr) == "'x y'"
        assert format_render_targets(["a=x"], str) == "--target a=x"
        assert format_render_targets(["x", "y"], str) == "--target x --target y"

    @pytest.mark.parametrize("target", ["Review=team", "re.view=team/x", "9=team.module"])
    def test_invalid_prefix(self, target):
        """An invalid prefix is reported with the valid characters."""
        with pytest.raises(LoadError) as caught:
            load(target)

        assert caught.value.target == target
        assert (
            f"{target.partition('=')[0]!r} is not a valid prefix: a prefix must have 1 to 32"
            in caught.value.reason
        )

    def test_missing_folder(self):
        """A missing folder with a prefix is reported like a missing folder without a prefix."""
        with pytest.raises(LoadError, match="'review=team/missing': there is no such file or folder"):
            load("review=team/missing")


class TestNames:
    def test_prompts_of_one_name(self, two_folders):
        """Prompts with the same name are served from two targets, with their cases."""
        catalog = compile(two_folders)

        assert catalog.diagnostics == ()
        assert list(catalog) == ["ops-review", "review-review"]
        assert str(catalog.render("ops-review", {"code": "x"})) == "[user]\nops x"
        assert [case.name for case in catalog["review-review"].saved()] == ["short"]
        assert [prompt.own_name for prompt in catalog.prompts] == ["review", "review"]

    def test_tools_and_completion_have_these_names(self, two_folders):
        """Tools, errors and completions use the prefixed names, and the plain ones do not exist."""
        with Client(two_folders, tools=True) as client:
            assert [tool.name for tool in client.list_tools()] == ["ops-review", "review-review"]
            assert client.call_tool("ops-review", {"code": "y"}).text == "ops y"
            with pytest.raises(ProtocolError, match="'review-review': 'code' is missing"):
                client.get_prompt("review-review")
            with pytest.raises(ProtocolError, match="'review'"):
                client.get_prompt("review", {"code": "x"})
            assert client.complete("ops-review", "code", "").values == ()

    def test_skills_get_a_path(self, two_folders):
        """A skill keeps its name and its bytes. In the URI, the target's prefix precedes the skill's."""
        plain = compile("team/prompts").skills[0]
        first, second = compile(two_folders).skills

        assert first.uri_template == "skill://ops/acme/billing/deploy/SKILL.md"
        assert second.uri_template == "skill://review/deploy/SKILL.md"
        assert second.name == plain.name == "deploy"
        assert second.files == plain.files
        assert list(second.resources) == ["skill://review/deploy/SKILL.md"]

    def test_skill_folders(self, recipes):
        """A folder with a `SKILL.md` has the same bytes below another URI."""
        folder = recipes("team")
        (folder / "skills" / "acme" / "deploy").mkdir(parents=True)
        text = "---\nname: deploy\ndescription: Deploy it. Use it to deploy.\n---\n\nDo it.\n"
        (folder / "skills" / "acme" / "deploy" / "SKILL.md").write_text(text, encoding="utf-8")

        with Client(f"ops={folder}") as client:
            assert client.read_resource("skill://ops/acme/deploy/SKILL.md").text == text

    def test_uris_of_resources_do_not_change(self, two_folders, recipes):
        """URIs of resources have no prefix, so the same URI in two targets is an error."""
        assert [resource.uri_template for resource in compile(two_folders).resources] == [
            "ops://rules",
            "team://rules",
        ]
        recipes("ops/prompts", review=REVIEW.format(text="team", prefix=""))

        (diagnostic,) = compile(two_folders).diagnostics
        assert diagnostic.rule is Rule.DUPLICATE_TEMPLATE

    def test_files_of_one_folder(self, recipes, tmp_path, monkeypatch):
        """Two files of one folder, an object and a module can have different prefixes."""
        monkeypatch.chdir(tmp_path)
        folder = recipes("prompts", one=NAMED.format(name="x"), two=NAMED.format(name="x"))
        recipes(".", loose=NAMED.format(name="x"))
        targets = [f"a={folder}/one.py", f"b={folder}/two.py:named", "c=loose"]

        assert list(compile(targets)) == ["a-x", "b-x", "c-x"]

    def test_markdown_prompts(self, tmp_path):
        """Markdown prompts get the prefix of their target: in a folder, as a file, or by a pattern."""
        for folder in ("one", "two", "three"):
            (tmp_path / folder).mkdir()
            (tmp_path / folder / "fix.prompt.md").write_text("Fix it.\n", encoding="utf-8")
        targets = [
            f"a={tmp_path}/one",
            f"b={tmp_path}/two/fix.prompt.md",
            f"c={tmp_path}/three/*.md",
        ]

        assert list(compile(targets)) == ["a-fix", "b-fix", "c-fix"]

    def test_scopes(self, recipes, two_folders):
        """Scopes hide a prompt in one namespace, but not the prompt with the same name in another."""
        recipes("ops/prompts", review=WITH_SCOPES)

        with Client(two_folders) as client:
            assert [prompt.name for prompt in client.list_prompts()] == ["review-review"]
        with Client(two_folders, scopes=["deploy"]) as client:
            assert [prompt.name for prompt in client.list_prompts()] == ["ops-review", "review-review"]

    def test_code_keeps_its_names(self, two_folders):
        """In code, a declaration, its calls and its `compiled` prompt have no prefix."""
        (review, _) = load(two_folders).prompts

        assert review.__name__ == "review"
        assert str(review("x")) == "team x"
        assert review.compiled.name == "review"


class TestErrors:
    def test_long_names(self, recipes):
        """
        A name of more than 64 characters with its prefix is an error, and the hint suggests a shorter prefix.
        """
        folder = recipes(long=NAMED.format(name="n" * 58), valid=NAMED.format(name="n" * 57))

        catalog = compile(f"review={folder}")

        assert list(catalog) == [f"review-{'n' * 57}"]
        (diagnostic,) = catalog.diagnostics
        assert diagnostic.rule is Rule.BAD_NAME
        assert diagnostic.location.file == str(folder / "long.py")
        assert diagnostic.message.endswith("with its prefix, the name has 65 characters: the limit is 64")
        assert diagnostic.hint == "choose a shorter prefix than 'review', or rename the prompt"

    def test_equal_names(self, recipes):
        """Two names that are equal with their prefixes are an error."""
        first = recipes("first", one=NAMED.format(name="b-c"))
        second = recipes("second", two=NAMED.format(name="c"))

        catalog = compile([f"a={first}", f"a-b={second}"])

        assert list(catalog) == ["a-b-c"]
        (diagnostic,) = catalog.diagnostics
        assert diagnostic.rule is Rule.DUPLICATE_NAME
        assert diagnostic.message == f"prompt 'a-b-c': it is already defined at {first / 'one.py'}:3"
        assert diagnostic.hint.endswith("@prompt(name='c-2')")

    def test_equal_uris(self, recipes):
        """Two skills whose URIs are equal with their prefixes are an error."""
        first = recipes("first", one=REVIEW.format(text="a", prefix="ops"))
        second = recipes("second", two=REVIEW.format(text="b", prefix=""))

        catalog = compile([first, f"ops={second}"])

        (diagnostic,) = catalog.diagnostics
        assert diagnostic.rule is Rule.DUPLICATE_SKILL
        assert "'skill://ops/deploy/SKILL.md' is already defined at" in diagnostic.message
        assert len(catalog.skills) == 1

    def test_diagnostics_name_the_served_prompt(self, recipes):
        """Diagnostics of one file use the names that clients see, and are counted for that prompt."""
        folder = recipes(bad=NAMED.format(name="x").replace("named()", "named(*rest)"))

        (diagnostic,) = compile(f"ops={folder}", lint=True).diagnostics

        assert diagnostic.message.startswith("prompt 'ops-x': ")
        assert diagnostic.owner.subject == "prompt 'ops-x'"

    def test_one_folder_twice(self, recipes):
        """The same files cannot have two prefixes, because they would be imported twice."""
        folder = recipes(one=NAMED.format(name="x"))

        with pytest.raises(LoadError, match="includes some of the same files"):
            load([f"a={folder}", f"b={folder}/one.py"])


class TestReload:
    @pytest.fixture
    def reload(self, two_folders, tmp_path):
        """A function that reloads the targets, and returns the names of the prompts."""
        reloader = Reloader(two_folders, lambda _: None)
        assert list(reloader.load()) == ["ops-review", "review-review"]
        assert reloader.has_watched_files
        published = []
        reloader._publish, reloader.is_quiet = published.append, True  # without a thread that watches

        def reload():
            for file in tmp_path.rglob("*.py"):
                os.utime(file, (1_000_000_000, 1_000_000_000))  # nothing is being written
            reloader._reload()
            return list(published.pop())

        return reload

    def test_each_target_is_reloaded(self, reload, recipes, tmp_path, monkeypatch):
        """A reload keeps the prefixes, even if a recipe has changed the current folder."""
        monkeypatch.chdir(tmp_path / "team")
        recipes("ops/prompts", more=NAMED.format(name="plan"))

        assert reload() == ["ops-plan", "ops-review", "review-review"]

    def test_last_good_version(self, reload, recipes):
        """A broken file keeps its prompts, with their prefix."""
        recipes("ops/prompts", review="raise ValueError", more=NAMED.format(name="plan"))

        assert reload() == ["ops-plan", "ops-review", "review-review"]
