"""Tests of the skill `promptkit-authoring`: every example in it works, without a diagnostic."""

import re
from pathlib import Path

from promptkit import compiler
from promptkit.testing import Client

from .skills.promptkit_authoring import EXAMPLE, GUIDE, promptkit_authoring

BLOCK = re.compile(r"^```(?:python|markdown) title=\"(.+?)\"\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_host_can_read_the_skill() -> None:
    """The skill names its guide, and contains the shortest prompt."""
    skill = Client(promptkit_authoring).read_skill("promptkit-authoring")

    assert EXAMPLE.strip() in skill.text
    assert skill.files["references/guide.md"] == GUIDE.encode()


def test_examples_have_no_diagnostics(tmp_path: Path) -> None:
    """`check` reports nothing about the examples in the guide and in the skill."""
    folder = tmp_path / "prompts"
    folder.mkdir()
    for name, text in [*BLOCK.findall(GUIDE), ("explain.py", EXAMPLE)]:
        (folder / name).write_text(text, encoding="utf-8")

    catalog = compiler.compile(folder, lint=True)

    assert [str(diagnostic) for diagnostic in catalog.diagnostics] == []
    assert {"review", "plan", "release_notes", "describe", "explain"} <= set(catalog)
