from pathlib import Path

import pytest

from promptkit import Image, Text, assistant, prompt, skill, system, user
from promptkit.compiler.compilation import compile
from promptkit.errors.rules import Rule
from promptkit.fragments import blocks, section

GIF = b"GIF89a\x01\x00\x01\x00\x00\x00\x00;"


def compile_skill(declaration):
    """Return the only skill of a catalog, which must have no diagnostics."""
    catalog = compile([declaration])
    assert catalog.diagnostics == ()
    (compiled,) = catalog.skills
    return compiled


def read_texts(compiled):
    """Return the text of each file of a skill by path."""
    return {file.path: file.content.data.decode() for file in compiled.files}


def find_diagnostic(declaration):
    """Return the only diagnostic of a skill, which must not be served."""
    catalog = compile([declaration])
    (diagnostic,) = catalog.diagnostics
    assert catalog.skills == ()
    return diagnostic


def make_skill(text="Do it.", **options):
    """Return a skill with this text."""

    @skill(**{"description": "Review a change.", **options})
    def some_skill():
        return text

    return some_skill


class TestASkill:
    def test_skill_md_is_built_from_the_declaration(self):
        """`SKILL.md` is built from the function's name, its docstring and the options, in a fixed format."""

        @skill(
            license="MIT",
            compatibility="Needs git",
            metadata={"version": "1.0"},
            allowed_tools=["Read", "Bash(git:*)"],
            prefix="acme/billing",
        )
        def code_review():
            """Review a change. Use it
            when asked.

            More details, for developers.
            """
            return blocks("# Review", section("Steps", "Read."))

        compiled = compile_skill(code_review)

        assert compiled.uri_template == "skill://acme/billing/code-review/SKILL.md"
        assert read_texts(compiled) == {
            "SKILL.md": "---\n"
            "name: code-review\n"
            "description: Review a change. Use it when asked.\n"
            "license: MIT\n"
            "compatibility: Needs git\n"
            'allowed-tools: "Read Bash(git:*)"\n'
            "metadata:\n"
            '  version: "1.0"\n'
            "---\n\n# Review\n\n## Steps\n\nRead.\n"
        }

    def test_a_skill_is_still_a_function(self):
        """A skill is still a function with its own name and docstring."""

        @skill
        def greet():
            """Say hello. Use it often."""
            return Text("Hello")

        assert greet() == Text("Hello")
        assert (greet.__name__, greet.__doc__) == ("greet", "Say hello. Use it often.")
        assert "greet" in repr(greet)

    @pytest.mark.parametrize("text", ["Do it.", Text("Do it."), user("Do it."), ["Do it."]])
    def test_a_skill_returns_text(self, text):
        """A skill returns one piece of text, in any form that a prompt could return."""
        assert read_texts(compile_skill(make_skill(text)))["SKILL.md"].endswith("---\n\nDo it.\n")

    @pytest.mark.parametrize(
        "result",
        ["", None, 7, assistant("Do it."), system("Do it."), user("a") + user("b"), ["a", "b"], Image(GIF)],
    )
    def test_other_results_are_reported(self, result):
        """Any result other than one piece of user text is reported."""
        diagnostic = find_diagnostic(make_skill(result))

        assert diagnostic.rule is Rule.SKILL_FAILS
        assert "its function" in diagnostic.message
        assert diagnostic.hint

    def test_a_function_that_raises_is_reported(self):
        """A skill whose function raises is reported, and all others are served."""

        @skill(description="Fails.")
        def broken():
            return str(1 // 0)

        @prompt
        def fine() -> str:
            return "fine"

        catalog = compile([broken, fine, make_skill()])

        (diagnostic,) = catalog.diagnostics
        assert diagnostic.rule is Rule.SKILL_FAILS
        assert "the function of 'SKILL.md' raised ZeroDivisionError" in diagnostic.message
        assert (list(catalog), len(catalog.skills)) == (["fine"], 1)

    @pytest.mark.parametrize(
        ("options", "rule", "part"),
        [
            ({"name": "Code Review"}, Rule.BAD_SKILL, "its name 'Code Review' is invalid"),
            ({"description": "x" * 1025}, Rule.BAD_SKILL, "1,025 characters"),
            ({"compatibility": "x" * 501}, Rule.BAD_SKILL, "501 characters"),
            ({"description": "half \ud800"}, Rule.BAD_SKILL, "an unpaired surrogate"),
            ({"metadata": {"a": "x" * 70_000}}, Rule.BAD_SKILL, "characters: the limit is 65,536"),
            ({"prefix": "a b"}, Rule.BAD_SKILL, "prefix 'a b'"),
            ({"prefix": "../a"}, Rule.BAD_SKILL, "prefix '../a'"),
            ({"prefix": "a//b"}, Rule.BAD_SKILL, "prefix 'a//b'"),
            ({"scopes": ["two words"]}, Rule.BAD_SCOPE, "not a scope"),
            ({"files": {"SKILL.md": "x"}}, Rule.SKILL_FILES, "'SKILL.md'"),
        ],
    )
    def test_invalid_options_are_reported(self, options, rule, part):
        """An option that the format does not allow is reported with a hint, and the skill is not served."""
        diagnostic = find_diagnostic(make_skill(**options))

        assert diagnostic.rule is rule
        assert part in diagnostic.message
        assert diagnostic.hint

    @pytest.mark.parametrize(
        "options",
        [
            {"name": 7},
            {"name": 0},
            {"description": 7},
            {"description": 0},
            {"license": 7},
            {"metadata": {"version": 1}},
            {"metadata": {1: "version"}},
            {"metadata": "x"},
            {"allowed_tools": [1]},
            {"files": ["a"]},
            {"files": {1: "a"}},
        ],
    )
    def test_options_of_the_wrong_type_are_rejected(self, options):
        """An option of the wrong type raises at the decorator."""
        with pytest.raises(TypeError, match=next(iter(options))):
            make_skill(**options)

    def test_only_a_plain_function_can_be_a_skill(self):
        """`@skill` takes only a plain function without parameters."""

        async def coroutine():
            return "x"

        def generator():
            yield "x"

        for invalid in (coroutine, generator, 7, str):
            with pytest.raises(TypeError, match="a plain function that returns text"):
                skill(invalid)
        for invalid in (lambda x: x, lambda x=1: x):
            with pytest.raises(TypeError, match="this one has 'x': remove them, or use @prompt"):
                skill(invalid)

    def test_a_duplicate_uri_is_reported(self):
        """A second skill with the same URI is reported and not served."""
        catalog = compile([make_skill(), make_skill()])

        (diagnostic,) = catalog.diagnostics
        assert diagnostic.rule is Rule.DUPLICATE_SKILL
        assert "'skill://some-skill/SKILL.md' is already defined at" in diagnostic.message
        assert len(catalog.skills) == 1


class TestFiles:
    def test_files_can_be_strings_bytes_and_functions(self):
        """Strings, bytes and functions become files; each function is called once per catalog."""
        calls = []

        def generate():
            calls.append(1)
            return Text("made")

        compiled = compile_skill(
            make_skill(files={"b.txt": "text", "a/c.bin": b"\xff", "d.md": generate, "empty": b""})
        )

        assert {file.path: file.content.data for file in compiled.files if file.path != "SKILL.md"} == {
            "a/c.bin": b"\xff",
            "b.txt": b"text",
            "d.md": b"made",
            "empty": b"",
        }
        assert [file.path for file in compiled.files] == ["SKILL.md", "a/c.bin", "b.txt", "d.md", "empty"]
        assert calls == [1]

    def test_files_can_be_paths_next_to_the_recipe(self, recipes):
        """A path can be a file or a folder, from which hidden files are omitted; nothing is imported."""
        folder = recipes(
            review="""
            from pathlib import Path
            from promptkit import skill

            FILES = {"rules.md": Path("_rules.md"), "scripts/": Path("_scripts"), "again": Path("_scripts")}

            @skill(files=FILES)
            def review():
                "Review. Use it often."
                return "Read rules.md"
            """
        )
        (folder / "_rules.md").write_text("Rules")
        (folder / "_scripts" / "deep").mkdir(parents=True)
        (folder / "_scripts" / "run.py").write_text("raise RuntimeError")
        (folder / "_scripts" / "deep" / "x.txt").write_text("x")
        (folder / "_scripts" / ".hidden").write_text("x")

        catalog = compile(folder)

        assert catalog.diagnostics == ()
        assert sorted(read_texts(catalog.skills[0])) == [
            *("SKILL.md", "again/deep/x.txt", "again/run.py"),
            *("rules.md", "scripts/deep/x.txt", "scripts/run.py"),
        ]

    @pytest.mark.parametrize(
        ("files", "part"),
        [
            ({"../x": "a"}, "not a valid path"),
            ({"/x": "a"}, "not a valid path"),
            ({"a\\b": "a"}, "not a valid path"),
            ({"c:x": "a"}, "not a valid path"),
            ({"a//b": "a"}, "not a valid path"),
            ({"./a": "a"}, "not a valid path"),
            ({"a/": "a"}, "not a valid path"),
            ({"": "a"}, "not a valid path"),
            ({"a\nb": "a"}, "not a valid path"),
            ({"a.md": "a", "A.md": "b"}, "differ only in case"),
            ({"skill.md": "a"}, "differ only in case"),
            ({"a": "a", "a/b": "b"}, "is a file"),
            ({f"{i}.md": str(i) for i in range(512)}, "more than 512 files"),
            ({"large": bytes(17 << 20)}, "exceed 16 MiB in total"),
            ({"x": Path("../outside")}, "is outside the recipe's folder"),
            ({"x": Path("/etc/passwd")}, "is outside the recipe's folder"),
            ({"x": Path("missing.md")}, "cannot be read"),
        ],
    )
    def test_unusable_files_are_reported(self, files, part):
        """An unusable file is reported, and the skill is not served."""
        diagnostic = find_diagnostic(make_skill(files=files))

        assert diagnostic.rule is Rule.SKILL_FILES
        assert part in diagnostic.message
        assert diagnostic.hint

    @pytest.mark.parametrize("source", [7, None, lambda: 7, "half \ud800"])
    def test_a_file_that_is_neither_text_nor_bytes_is_reported(self, source):
        """A file that is neither text nor bytes is reported."""
        diagnostic = find_diagnostic(make_skill(files={"x": source}))

        assert diagnostic.rule is Rule.SKILL_FAILS
        assert "'x'" in diagnostic.message
