"""Markdown prompts: what their files declare and render, and the diagnostics of invalid files."""

import json
import os
import sys
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit import EmbeddedResource, Image, Workflow, assistant, system, user
from promptkit.compiler.compilation import compile
from promptkit.declarations.markdown_body import escape_text
from promptkit.errors.exceptions import ArgumentsError, ResultError
from promptkit.errors.rules import Rule
from promptkit.language.messages import Message
from promptkit.language.text import Text
from promptkit.loader.loader import load
from promptkit.testing import Client
from tests.language.test_media_files import PNG

REVIEW = """\
---
description: Review a change before it is merged
title: Review a change
tags: [review, git]
version: 1.10
timeout: 5
arguments:
  diff: The change, as `git diff` prints it
  depth:
    description: How thorough the review should be
    choices: [quick, normal, thorough]
    default: normal
  reviewers: {type: "list[str]", default: []}
cases:
  one line: {diff: "-a\\n+b"}
---
[system]
You are a careful reviewer. {{> style.md}}

[user]
Review this change, {{depth}}:

{{diff}}

{{#reviewers}}
Ask {{reviewers}} if you are unsure.
{{/reviewers}}
"""


@pytest.fixture
def markdown(tmp_path):
    """A function that writes files of a folder, and returns its catalog with all diagnostics."""

    def write(**files):
        for name, text in files.items():
            file = tmp_path / "prompts" / name.replace("__", "/")
            file = file if file.suffix else file.with_name(f"{file.name}.prompt.md")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return compile(load(tmp_path / "prompts"), lint=True)

    return write


@pytest.fixture
def diagnose(markdown):
    """A function that returns the rule, line and column of each diagnostic of one file."""

    def diagnose(text, **files):
        return [
            (diagnostic.rule, diagnostic.location.line, diagnostic.location.column)
            for diagnostic in markdown(review=text, **files).diagnostics
        ]

    return diagnose


class TestPrompts:
    def test_the_documented_example(self, markdown):
        """The documented example has the documented options, arguments, cases, turns and optional text."""
        catalog = markdown(review=REVIEW, **{"style.md": "Be kind.\n"})

        assert catalog.diagnostics == ()
        prompt = catalog.prompts[0]
        assert (prompt.name, prompt.title, prompt.tags) == ("review", "Review a change", ("review", "git"))
        assert (prompt.description, prompt.timeout) == ("Review a change before it is merged", 5)
        assert prompt.meta["promptkit/version"] == "1.10"
        assert [argument.name for argument in prompt.arguments.ordered] == ["diff", "depth", "reviewers"]
        assert [case.name for case in prompt.saved()] == ["one line"]
        assert prompt.render({"diff": "-a\n+b", "reviewers": "ann, bo", "depth": "quick"}) == (
            system("You are a careful reviewer. Be kind.")
            + user("Review this change, quick:\n\n-a\n+b\n\nAsk ann, bo if you are unsure.")
        )
        assert prompt.render(prompt.saved()[0].sent()).messages == (
            user("Review this change, normal:\n\n-a\n+b").messages
        )

    def test_a_file_without_front_matter(self, markdown):
        """Without front matter, the first paragraph is the description, and placeholders are arguments."""
        catalog = markdown(fix="# Fix an issue\n\nFix {{issue}} of {{priority}}.\n")

        prompt = catalog["fix"]
        assert prompt.description == "Fix an issue"
        assert [(argument.name, argument.required) for argument in prompt.arguments.ordered] == [
            ("issue", True),
            ("priority", True),
        ]
        with pytest.raises(ArgumentsError, match="'issue' is missing; 'priority' is missing"):
            prompt.render({})

    @pytest.mark.parametrize(
        ("path", "name"),
        [
            ("review", "review"),
            ("git__review", "git-review"),
            ("a b.c", "a-b-c"),
        ],
    )
    def test_names_come_from_paths(self, path, name, markdown):
        """A prompt is named after its path below the target, unless the front matter names it."""
        assert list(markdown(**{f"{path}.prompt.md": "x"})) == [name]
        assert list(markdown(**{f"{path}.prompt.md": "---\nname: other\n---\nx"})) == ["other"]

    def test_other_markdown_files_are_not_prompts(self, markdown):
        """Files for includes, other Markdown, and files of skills are not prompts."""
        skill = "---\nname: tidy\ndescription: Tidy up\n---\nTidy."
        files = {"_part.prompt.md": "x", "README.md": "x", "tidy__SKILL.md": skill, "tidy__a.prompt.md": "x"}

        assert list(markdown(review="x", **files)) == ["review"]

    def test_types(self, markdown):
        """
        Arguments can have types, defaults, examples and completions, read as written, and can be secret.
        """
        catalog = markdown(
            report="""\
---
arguments:
  day: {type: date, default: 2026-01-31}
  count: {type: int, default: 007}
  ratio: {type: float, examples: [1.10, 2.5]}
  code:
    description: A code: 007
    default: 007
  answer: {choices: [yes, no, 1.10], default: no}
  wait: {type: duration | None}
  deep: {type: bool, default: no}
  data: {type: json, default: {"a": "1"}}
  token: {secret: true, required: false}
  team: {complete: [red, green]}
---
{{day}} {{count}} {{ratio}} {{code}} {{answer}} {{wait?}}
{{data}} {{team}}
{{#deep}}
deep
{{/deep}}
{{token?}}
"""
        )

        assert catalog.diagnostics == ()
        arguments = catalog["report"].arguments.by_name
        assert {name: each.default for name, each in arguments.items() if each.has_default} == {
            "day": date(2026, 1, 31),
            "count": 7,
            "code": "007",
            "answer": "no",
            "deep": False,
            "data": {"a": "1"},
            "token": None,
        }
        assert "A code: 007" in arguments["code"].description
        assert arguments["answer"].reader.values == ("yes", "no", "1.10")
        assert catalog.complete("report", "team", "gr").values == ("green",)
        rendered = catalog.render("report", {"ratio": "1.10", "team": "red", "wait": "1h", "deep": "yes"})
        assert rendered.text == '2026-01-31 7 1.1 007 no PT3600S\n{"a":"1"} red\ndeep'

    def test_parts_that_are_files(self, markdown, tmp_path):
        """Lines that name images and files become separate parts; the files are below the target."""
        text = "[user]\nLook:\n\n{{image: ../dot.png}}\n\n{{file: notes.txt}}\n\nDone."

        catalog = markdown(sub__look=text, **{"dot.png": PNG, "sub__notes.txt": "hello"})

        messages = catalog.render("sub-look").messages
        assert [type(message.content) for message in messages] == [Text, Image, EmbeddedResource, Text]
        assert messages[2].content.text == "hello"

    @pytest.mark.parametrize(
        ("text", "rendered"),
        [
            ("\\{{a}}", "{{a}}"),
            ("\\\\{{a}}", "\\1"),
            ("\\\\\\{{a}}", "\\{{a}}"),
            ("C:\\\\{{a}}\\x", "C:\\1\\x"),
            ("\\{{{{a}}", "{{1"),
            ("{{{a}}}", "{1}"),
            ("a\\b \\\\ \\[x]", "a\\b \\\\ \\[x]"),
            ("\\{{> a}} \\{{a}} {{a}}", "{{> a}} {{a}} 1"),
            ("\\[user]\n\\\\[user]", "[user]\n\\[user]"),
            ("\\{{image: x.png}}", "{{image: x.png}}"),
            ("$[user] {{[user]}}", "$[user] {{[user]}}"),
            ("{{\u00a0a}} {{ a }}", "{{\u00a0a}} 1"),
        ],
    )
    def test_backslashes(self, text, rendered, markdown):
        """A backslash turns a mark into text, and two backslashes before braces become one."""
        catalog = markdown(review=text)

        values = {"a": "1"} if "a" in catalog["review"].arguments.by_name else {}
        assert catalog.render("review", values).text == rendered

    def test_values_have_no_marks(self, markdown):
        """A value starts no turn, includes nothing and has no placeholders, wherever it is inserted."""
        catalog = markdown(review="[{{a}}]\n{{b}}\n{{{{a}}}}", **{"part.md": "part"})

        values = {"a": "user", "b": "[assistant]\n{{a}}\n{{> part.md}}\n\\[user]"}
        assert catalog.render("review", values) == user(f"[user]\n{values['b']}\n{{{{user}}}}")

    def test_the_description_has_no_escapes(self, markdown):
        """The description is the text as it is sent, without the backslashes of escapes."""
        assert markdown(review="# Write \\{{x}}\n")["review"].description == "Write {{x}}"

    def test_blocks_of_text(self, markdown):
        """A block of text in the front matter can have lines that look like keys."""
        catalog = markdown(review="---\ndescription: |\n  First\n  note: this\n  - 1.10\ntitle: 1.10\n---\nx")

        assert catalog["review"].description == "First\nnote: this\n- 1.10\n"
        assert catalog["review"].title == "1.10"

    @pytest.mark.parametrize(
        "line",
        [
            *("arguments: [b, a]", "arguments: b a", "arguments: b, a", "argument-hint: [b] [a]"),
            *("argument-hint: [b, a]", "argument-hint: <b> {a}", "argument-hint: {b}"),
        ],
    )
    def test_names_of_arguments_alone(self, line, markdown):
        """A list of argument names sets their order, as in Claude Code, whose commands can be served."""
        catalog = markdown(review=f"---\n{line}\ntools: [x]\n---\n{{{{a}}}} {{{{b}}}} {{{{c}}}}")

        assert [each.name for each in catalog["review"].arguments.ordered] == ["b", "a", "c"]
        assert [each.rule for each in catalog.diagnostics] == [Rule.FOREIGN_KEY]

    def test_escapes(self, markdown):
        """A backslash turns a placeholder, a turn mark or a fence into text, even in code fences."""
        text = "[user]\n\\{{name}} and \\{{> a}}\n\\[user]\n\\```\n[assistant]\n```\n[user]\n\\[user]\n```"

        assert markdown(review=text).render("review") == (
            user("{{name}} and {{> a}}\n[user]\n```") + assistant("```\n[user]\n[user]\n```")
        )

    def test_includes(self, markdown):
        """
        Included files are found relative to the including file; their text has placeholders, and is indented
        like the mark.
        """
        files = {"parts__a.md": "---\nx: y\n---\nA {{a}}\n{{> sub/b.md}}", "parts__sub__b.md": "B {{b}}"}

        catalog = markdown(review="- Rules: {{> parts/a.md}}, then {{> parts/sub/b.md}}.", **files)

        assert catalog.render("review", {"a": "1", "b": "2"}).text == "- Rules: A 1\n  B 2, then B 2."

    def test_cases_and_direct_calls(self, markdown):
        """A compiled Markdown prompt can be called from Python, with checked types."""
        (definition,) = load(markdown(review="{{code}}").prompts[0].location.file).prompts

        assert definition.render(code="x") == user("x")
        with pytest.raises(TypeError, match="takes str, not an int"):
            definition.render(code=3)

    def test_served_like_a_python_prompt(self, markdown):
        """A client can list and get a Markdown prompt, and complete its arguments."""
        client = Client(markdown(review=REVIEW, **{"style.md": "Be kind."}))

        assert client.get_prompt("review", {"diff": "x"}).messages[-1].content.text.startswith("Review this")
        assert client.complete("review", "depth", "q").values == ("quick",)


class TestPatterns:
    def test_patterns_name_further_files(self, tmp_path):
        """A pattern serves other Markdown files, named after their path below its fixed part."""
        for name in ("commands/fix.md", "commands/git/tidy up.md", "commands/_part.md", "docs/page.md"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text("Do it.")

        assert list(compile(str(tmp_path / "commands/**/*.md"))) == ["fix", "git-tidy-up"]
        assert list(compile(str(tmp_path / "commands/*.md"))) == ["fix"]
        assert list(compile(str(tmp_path / "commands/fix.md"))) == ["fix"]

    def test_a_file_counts_once(self, tmp_path):
        """A file that is in the folder and matches a pattern is served once."""
        (tmp_path / "fix.prompt.md").write_text("Do it.")

        assert list(compile([str(tmp_path), str(tmp_path / "*.md")])) == ["fix"]


class TestDiagnostics:
    @pytest.mark.parametrize(
        ("text", "rule", "line", "column"),
        [
            ("---\ntitle: [a\n---\nx", None, 0, 0),
            ("---\ntags: {a: b}\n---\nx", Rule.BAD_FRONT_MATTER, 2, 1),
            ("---\ntitel: x\n---\nx", Rule.BAD_FRONT_MATTER, 2, 1),
            ("---\ntitle: x\ntitle: y\n---\nx", Rule.BAD_FRONT_MATTER, 3, 1),
            ("---\ntitle:\n  - a\n   b: c\n---\nx", Rule.BAD_FRONT_MATTER, 4, 0),
            ("---\ntitle:\n  &a\n---\nx", Rule.BAD_FRONT_MATTER, 3, 0),
            ("---\ntimeout: soon\n---\nx", Rule.BAD_FRONT_MATTER, 2, 1),
            ("---\ntimeout: -1\n---\nx", Rule.BAD_FRONT_MATTER, 2, 1),
            ("---\nelicit: yes\n---\nx", Rule.BAD_FRONT_MATTER, 2, 1),
            ("---\nversions: 1\n---\nx", Rule.BAD_FRONT_MATTER, 2, 1),
            ("---\ntool: {speed: true}\n---\nx", Rule.BAD_FRONT_MATTER, 2, 1),
            ("---\narguments: [{name: x}]\n---\n{{x}}", Rule.BAD_FRONT_MATTER, 2, 13),
            ('---\narguments:\n  x: {type: "' + "list[" * 99 + '"}\n---\n{{x}}', Rule.BAD_FRONT_MATTER, 3, 7),
            ("---\n" + "a:\n" * 2 + "---\nx", Rule.BAD_FRONT_MATTER, 3, 1),
            (
                "---\ntags:\n" + "".join(" " * at + "- \n" for at in range(30)) + "---\nx",
                Rule.BAD_FRONT_MATTER,
                20,
                0,
            ),
            ("".join(f"{{{{a{number}}}}}" for number in range(501)), Rule.BAD_MARKDOWN, 1, 0),
            ("---\nname: 日本\n---\nx", Rule.BAD_NAME, 1, 0),
            ("---\narguments:\n  x: {type: it}\n---\n{{x}}", Rule.BAD_FRONT_MATTER, 3, 7),
            ("---\narguments:\n  x: {typ: int}\n---\n{{x}}", Rule.BAD_FRONT_MATTER, 3, 7),
            ("---\narguments:\n  x: {type: int, default: a}\n---\n{{x}}", Rule.BAD_FRONT_MATTER, 3, 18),
            ("---\narguments:\n  x: {choices: [a], default: b}\n---\n{{x}}", Rule.BAD_FRONT_MATTER, 3, 21),
            ("---\narguments:\n  x: {type: int, examples: [a]}\n---\n{{x}}", Rule.BAD_EXAMPLE, 3, 3),
            ("---\narguments:\n  class: x\n---\n{{class}}", Rule.BAD_FRONT_MATTER, 3, 3),
            ("---\narguments:\n  depht: x\n---\n{{depth}}", Rule.BAD_FRONT_MATTER, 5, 1),
            ("---\narguments:\n  x: a\n---\nx", Rule.UNUSED_ARGUMENT, 3, 3),
            ("---\narguments:\n  x: {required: false}\n---\n{{x}}", Rule.ABSENT_VALUE, 3, 3),
            ("---\narguments:\n  x: {type: bool}\n---\n{{x}}", Rule.ABSENT_VALUE, 3, 3),
            ("---\narguments:\n  x: {type: bool}\n---\n{{x?}}", Rule.ABSENT_VALUE, 3, 3),
            ("---\nmodel: gpt\n---\nx", Rule.FOREIGN_KEY, 2, 1),
            ("---\ntitle: x\nnot a key\n---\nx", Rule.MARK_SENT_AS_TEXT, 1, 0),
            ("\nx\n{{#a}} b", Rule.BAD_MARKDOWN, 3, 0),
            ("x\n{{#a}}\nb", Rule.BAD_MARKDOWN, 2, 0),
            ("hello\n[user]\nx", Rule.BAD_MARKDOWN, 1, 0),
            ("{{> nope.md}}", Rule.BAD_MARKDOWN, 1, 0),
            ("{{> ../x.md}}", Rule.BAD_MARKDOWN, 1, 0),
            ("{{> /etc/hostname}}", Rule.BAD_MARKDOWN, 1, 0),
            ("{{> a\\..\\b.md}}", Rule.BAD_MARKDOWN, 1, 0),
            ("{{> review.prompt.md}}", Rule.BAD_MARKDOWN, 1, 0),
            ("{{image: nope.png}}", Rule.BAD_MARKDOWN, 1, 0),
            ("---\ndescription: x\n--\nx", Rule.MARK_SENT_AS_TEXT, 1, 0),
            ("description: x\n---\nx", Rule.MARK_SENT_AS_TEXT, 1, 0),
            ("x: y\n---\nx", None, 0, 0),
            ("a\n[Assistant]\nb", Rule.MARK_SENT_AS_TEXT, 2, 0),
            ("[user]\na\n[assistant]:\nb", Rule.MARK_SENT_AS_TEXT, 3, 0),
            ("[user]\na\n[assistent]\nb", Rule.MARK_SENT_AS_TEXT, 3, 0),
            ("[user] a", Rule.MARK_SENT_AS_TEXT, 1, 0),
            ("[user]: a.md\n\n[system](a.md) [x]\n[User guide]\n[ ] user\n```\n[User]\n```", None, 0, 0),
            ("a {{my name}}", Rule.TEMPLATE_SYNTAX, 1, 3),
            ("a {{my-name?}}", Rule.TEMPLATE_SYNTAX, 1, 3),
            ("a\n$ARGUMENTS", Rule.TEMPLATE_SYNTAX, 2, 1),
            ("a @b/c.md", Rule.TEMPLATE_SYNTAX, 1, 3),
            ("npm i @scope/name, `b!`, `c`, $10, ann@example.org", None, 0, 0),
            ("a $1", Rule.TEMPLATE_SYNTAX, 1, 3),
            ("a !`git diff`", Rule.TEMPLATE_SYNTAX, 1, 3),
            ("a ${input:name}", Rule.TEMPLATE_SYNTAX, 1, 3),
            ("{{#if a}}\nb\n{{else}}\nc\n{{/if}}", Rule.TEMPLATE_SYNTAX, 1, 1),
            ("{{#a}}\nb {{{a}}}\n{{/a}}", Rule.TEMPLATE_SYNTAX, 2, 3),
            ("\\{{#if x}} {% for x in y %}", Rule.TEMPLATE_SYNTAX, 1, 12),
            ("a\n{{#each a}}\n{{this}}\n{{/each}}", Rule.TEMPLATE_SYNTAX, 2, 1),
            ("", Rule.BAD_MARKDOWN, 1, 0),
            (b"\xff", Rule.BAD_MARKDOWN, 1, 0),
            (b"x" * (4 * 1024 * 1024 + 1), Rule.BAD_MARKDOWN, 1, 0),
            ("---\na: " + "x" * 70_000 + "\n---\nx", Rule.BAD_FRONT_MATTER, 1, 0),
        ],
        ids=range(63),
    )
    def test_a_mistake_is_one_diagnostic_at_its_line(self, text, rule, line, column, diagnose):
        """Each mistake is one diagnostic at its line and column."""
        expected = [] if rule is None else [(rule, line, column)]
        assert [each for each in diagnose(text) if each[0] is not Rule.NO_PROMPTS] == expected

    @pytest.mark.parametrize(
        ("text", "message", "hint"),
        [
            (
                "---\narguments:\n  x: {choices: [a, b], default: c}\n---\n{{x}}",
                "the default is 'c', not one of a, b",
                "write one of a, b",
            ),
            (
                "{{#avoid}}\n{{avoid}}\n{{/avoids}}",
                "{{/avoids}} is above {{/avoid}}",
                "write {{/avoid}}",
            ),
            (
                "---\narguments:\nword: x\n---\n{{word}}",
                "the front matter has keys that promptkit ignores: word",
                "if you meant an argument, indent word below 'arguments:'",
            ),
        ],
    )
    def test_a_hint_suggests_a_correction(self, text, message, hint, markdown):
        """A message names the value, and its hint suggests a correction."""
        (diagnostic,) = markdown(review=text).diagnostics

        assert (diagnostic.message, diagnostic.hint) == (f"prompt 'review': {message}", hint)

    def test_a_value_that_is_none_fails_without_a_traceback(self, markdown):
        """A value that a placeholder does not accept is an error with the file, the name and the fix."""
        catalog = markdown(review="---\narguments:\n  x: {required: false}\n---\n{{x}}")

        with pytest.raises(ResultError, match=r"review\.prompt\.md: 'x' is None: write \{\{x\?\}\}"):
            catalog.render("review", {})

    def test_mistake_in_an_included_file(self, diagnose):
        """A mistake in an included file, such as a turn mark, is reported at its location in that file."""
        assert diagnose("{{> a.md}}", **{"a.md": "x\n[user]"}) == [(Rule.MISPLACED_MARK, 2, 0)]

    def test_two_prompts_with_one_name(self, markdown):
        """Two prompts with the same name are reported."""
        files = {name: f"---\nname: x\n---\n{name}" for name in "ab"}

        assert [each.rule for each in markdown(**files).diagnostics] == [Rule.DUPLICATE_NAME]

    @pytest.mark.parametrize("text", ["\ufeffx {{a}}\r\n\r\ny", "x {{a}}\r\n\r\ny", "x {{a}}\n\ny"])
    def test_byte_order_marks_and_line_endings(self, text, markdown):
        """A byte order mark is removed, and all line endings are LF."""
        assert markdown(review=text).render("review", {"a": "1"}).text == "x 1\n\ny"

    def test_nul_is_text(self, markdown):
        """A NUL in the body is text."""
        assert markdown(review="a\0b").render("review").text == "a\0b"

    def test_links_do_not_lead_out(self, markdown, tmp_path):
        """An include through a link that leads outside the target is not read."""
        (tmp_path / "secret.md").write_text("secret")
        (tmp_path / "prompts").mkdir()
        (tmp_path / "prompts" / "link.md").symlink_to(tmp_path / "secret.md")

        (diagnostic,) = [
            each for each in markdown(review="{{> link.md}}").diagnostics if each.rule is not Rule.NO_PROMPTS
        ]

        assert diagnostic.rule is Rule.BAD_MARKDOWN
        assert "secret" not in str(diagnostic).replace("secret.md", "")

    def test_a_prompt_that_is_a_link_is_confined(self, markdown, tmp_path):
        """A prompt file can be a link within the target, but not to a file outside."""
        (tmp_path / "secret.md").write_text("secret")
        folder = tmp_path / "prompts"
        folder.mkdir()
        (folder / "out.prompt.md").symlink_to(tmp_path / "secret.md")
        (folder / "in.prompt.md").symlink_to("review.prompt.md")

        catalog = markdown(review="text")

        assert sorted(catalog) == ["in", "review"]
        assert [each.rule for each in catalog.diagnostics] == [Rule.BAD_MARKDOWN]
        assert "secret" not in catalog.diagnostics[0].message.replace("secret.md", "")

    @pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pipes in folders")
    @pytest.mark.timeout(10)
    def test_pipes_and_devices_are_not_read(self, markdown, tmp_path):
        """A pipe or a device in place of a prompt, an included file or a picture is one diagnostic."""
        folder = tmp_path / "prompts"
        folder.mkdir()
        for name in ("pipe.prompt.md", "pipe.md", "pipe.png"):
            os.mkfifo(folder / name)
        (folder / "zero.md").symlink_to("/dev/zero")
        marks = ("{{> pipe.md}}", "{{> zero.md}}", "{{image: pipe.png}}", "{{image: /dev/zero}}")

        catalog = markdown(fine="x", **{f"p{number}": mark for number, mark in enumerate(marks)})

        assert list(catalog) == ["fine"]
        files = sorted(Path(each.location.file).name for each in catalog.diagnostics)
        assert files == [*(f"p{number}.prompt.md" for number in range(4)), "pipe.prompt.md"]

    @pytest.mark.parametrize(
        ("path", "name"),
        [("a\nb", "a-b"), ("a\x1b[2Jb", "a-2Jb"), ("a:b", "a-b"), ("é\u202ex", "e-x"), ("-x", "x")],
    )
    def test_names_have_no_special_characters(self, path, name, markdown):
        """Characters that a name cannot have are replaced, in paths and in the front matter."""
        catalog = markdown(**{f"{path}.prompt.md": "x", "b": "---\nname: Über: 2 a.b\n---\nx"})

        assert sorted(catalog) == sorted([name, "Uber-2-a-b"])
        assert catalog.diagnostics == ()

    @pytest.mark.parametrize(
        "files",
        [
            {"a.md": "{{> b.md}}", "b.md": "{{> a.md}}"},
            {f"{at}.md": f"{{{{> {at + 1}.md}}}}" for at in range(9)} | {"9.md": "x", "a.md": "{{> 0.md}}"},
        ],
        ids=["cycle", "depth"],
    )
    def test_includes_end(self, files, diagnose):
        """A cycle of several files is reported, and so are includes that are nested too deeply."""
        diagnostics = [each for each in diagnose("{{> a.md}}", **files) if each[0] is not Rule.NO_PROMPTS]

        assert [each[0] for each in diagnostics] == [Rule.BAD_MARKDOWN]

    def test_ten_megabytes_of_front_matter(self, diagnose):
        """A file that is too large is not parsed."""
        assert diagnose("---\na: " + "x" * (10 << 20) + "\n---\nx")[-1] == (Rule.BAD_MARKDOWN, 1, 0)

    def test_includes_do_not_multiply(self, markdown):
        """Includes that double at each level are stopped by the size limit."""
        files = {f"p{level}.md": f"{{{{> p{level + 1}.md}}}}\n" * 30 for level in range(7)}

        diagnostics = markdown(review="{{> p0.md}}", **files, **{"p7.md": "x" * 1000}).diagnostics

        assert Rule.BAD_MARKDOWN in [each.rule for each in diagnostics]

    @pytest.mark.parametrize("bomb", ["&a [x]", "*a", "!!python/name:os.system", "<<: *a", "[" * 5_000])
    def test_yaml_has_no_special_values(self, bomb, markdown):
        """Anchors, aliases, tags and deep nesting are text, and never evaluated."""
        catalog = markdown(review=f"---\ndescription: {bomb}\n---\nx")

        assert catalog["review"].description == bomb


#: Texts of turns: marks, fences, braces and lines of words, without blank lines at their ends.
TEXTS = (
    st.lists(
        st.sampled_from(
            [
                *(
                    "[user]",
                    "[system] ",
                    "\\[user]",
                    "\\\\[assistant]",
                    "```",
                    "~~~~ x",
                    "\\```",
                    "{{a}}",
                    "\\{{b}}",
                    "\\\\{{c}}",
                    "{{{",
                ),
                *(
                    "{{#if x}}",
                    "{{> a}}",
                    "{{image: x}}",
                    "---",
                    "word",
                    "",
                    "  indented",
                    "\\",
                    "{",
                    "é\u2028",
                ),
            ]
        )
        | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=5),
        min_size=1,
        max_size=8,
    )
    .map("\n".join)
    .filter(lambda text: text.split("\n")[0].strip() and text.split("\n")[-1].strip())
)
TURNS = st.lists(st.tuples(st.sampled_from(["user", "assistant"]), TEXTS), min_size=1, max_size=4)


class TestLaws:
    @given(TURNS, st.none() | TEXTS)
    def test_a_transcript_renders_the_same_workflow(self, tmp_path_factory, turns, instructions):
        """Writing a workflow to a file, with escapes, and rendering the file gives the same workflow."""
        path = tmp_path_factory.mktemp("law") / "law.prompt.md"
        written = [("system", instructions)] if instructions is not None else []
        body = "\n\n".join(f"[{role}]\n{escape_text(text)}" for role, text in (*written, *turns))
        path.write_text(body, encoding="utf-8", newline="")

        rendered = compile(str(path)).render("law")

        messages = tuple(Message(role, Text(text)) for role, text in turns)
        expected = Workflow(messages)
        assert rendered == (expected if instructions is None else system(instructions) + expected)

    @pytest.mark.parametrize(
        "values", [{"code": "x"}, {"code": "a\nb", "count": "3", "names": "a, b"}, {"code": ""}]
    )
    def test_a_twin_in_python_has_equal_bytes(self, values, tmp_path):
        """
        A Python prompt and a Markdown prompt with the same signature and body are listed and rendered as the
        same bytes.
        """
        body = "# Look\n\n- Code: {{code}}\n\n{{#names}}\nAsk {{names}}.\n{{/names}}\n\n{{count?}} times"
        (tmp_path / "md").mkdir()
        (tmp_path / "py").mkdir()
        (tmp_path / "md" / "twin.prompt.md").write_text(
            "---\ndescription: Twin\ntitle: T\ntags: [a]\narguments:\n  code: The code\n"
            "  count: {type: int | None, default: null}\n  names: {type: 'list[str]', default: []}\n---\n"
            + body
        )
        (tmp_path / "py" / "body.md").write_text(body)
        (tmp_path / "py" / "twin.py").write_text(
            "from typing import Annotated\nfrom promptkit import Text, prompt\n\n"
            "@prompt(title='T', tags=['a'])\n"
            "def twin(code: Annotated[str, 'The code'], count: int | None = None, names: list[str] = []):\n"
            '    """Twin"""\n'
            "    return Text.from_path('body.md', code=code, count=count, names=names)\n"
        )
        clients = [Client(tmp_path / name) for name in ("md", "py")]

        lists = [json.dumps(client.request("prompts/list", {})) for client in clients]
        replies = [
            json.dumps(client.request("prompts/get", {"name": "twin", "arguments": values}))
            for client in clients
        ]

        assert lists[0] == lists[1]
        assert replies[0] == replies[1]
