"""`promptkit export`: files are written, changed and removed, and nothing else is touched."""

import json

import pytest

from promptkit.cli import main
from promptkit.cli.export import NOTE


def files(folder):
    """What lies in a folder, but for the note."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != NOTE)
    return [path.relative_to(folder).as_posix() for path in found]


@pytest.fixture
def out(project, tmp_path):
    """Where files are written."""
    return tmp_path / "out"


@pytest.mark.parametrize(
    ("form", "written"),
    [
        ("claude-commands", ["compare.md", "explain.md", "greet.md"]),
        ("gemini-commands", ["explain.toml", "greet.toml"]),
        (
            "codex",
            [
                f"{name}/{path}"
                for name in ("compare", "explain", "greet")
                for path in ("SKILL.md", "agents/openai.yaml")
            ],
        ),
        ("skills", ["compare/SKILL.md", "explain/SKILL.md", "greet/SKILL.md", "notes/SKILL.md"]),
    ],
)
def test_what_cannot_be_written_is_left_out(out, form, written, capsys):
    """
    The others are written; the exit code says so.
    """
    assert main(["export", form, "out"]) == 1

    assert files(out) == written
    assert "prompt 'count' cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["claude-commands", "gemini-commands", "codex", "skills"])
def test_all_but_secrets_can_be_live(out, form, capsys):
    """
    A second time nothing changes, and all of it is removed again.
    """
    assert main(["export", form, "out", "--live"]) == 1
    assert len(files(out)) >= 7
    assert capsys.readouterr().err.count("\n") == 1

    main(["export", form, "out", "--live"])
    assert capsys.readouterr().out == "out: nothing to change\n"

    assert main(["export", form, "out", "--remove"]) == 0
    assert list(out.iterdir()) == []


def test_names_leave_the_others_alone(out, capsys):
    """
    Without names, what is no prompt any more goes.
    """
    assert main(["export", "claude-commands", "out", "explain", "greet"]) == 0
    assert capsys.readouterr().out == "out has 2 commands of these recipes: explain.md, greet.md\n"
    assert main(["export", "claude-commands", "out", "compare"]) == 0
    assert files(out) == ["compare.md", "explain.md", "greet.md"]

    assert main(["export", "claude-commands", "out", "explain", "--remove"]) == 0
    assert capsys.readouterr().out.endswith("out has 0 commands of these recipes\n    removed: explain.md\n")
    assert files(out) == ["compare.md", "greet.md"]

    source = out.parent / "recipes" / "words.py"
    source.write_text(source.read_text().replace("def greet", "def hail"))
    main(["export", "claude-commands", "out"])
    assert files(out) == ["compare.md", "explain.md", "hail.md"]


@pytest.mark.parametrize("command", [["explain"], ["explain", "--remove"]])
@pytest.mark.parametrize("is_ours", [True, False])
def test_what_is_not_its_own_stays(out, capsys, command, is_ours):
    """
    Also what was written, and changed since.
    """
    if is_ours:
        assert main(["export", "claude-commands", "out", "explain"]) == 0
    out.mkdir(exist_ok=True)
    (out / "explain.md").write_text("mine")

    code = main(["export", "claude-commands", "out", *command])

    printed = capsys.readouterr()
    assert (out / "explain.md").read_text() == "mine"
    if is_ours:
        assert "was changed since it was written: move it away first" in printed.err
    elif code:
        assert "explain.md was not written by promptkit: move it away" in printed.err
    else:
        assert printed.out == "out: nothing to change\n"
    assert code == (0 if not is_ours and "--remove" in command else 1)


def test_a_link_is_not_followed(out, capsys):
    """
    What it leads to is not touched.
    """
    out.mkdir()
    (out.parent / "mine").write_text("mine")
    (out / "explain.md").symlink_to(out.parent / "mine")

    assert main(["export", "claude-commands", "out", "explain"]) == 1
    assert (out.parent / "mine").read_text() == "mine"
    assert "was not written by promptkit" in capsys.readouterr().err


def test_two_projects_in_one_folder(out, recipes, capsys, tmp_path):
    """
    Each has its own; a prompt of both is refused.
    """
    one = "from promptkit import prompt\n\n@prompt\ndef {}():\n    'Say it.'\n    return 'It.'\n"
    recipes("others", one=one.format("other"))
    assert main(["export", "claude-commands", "out", "greet"]) == 0
    assert main(["export", "claude-commands", "out", "--target", "others"]) == 0
    assert files(out) == ["greet.md", "other.md"]
    assert main(["export", "claude-commands", "out", "--target", "others", "--remove"]) == 0
    assert files(out) == ["greet.md"]

    (tmp_path / "others" / "one.py").write_text(one.format("greet"))
    assert main(["export", "claude-commands", "out", "--target", "others"]) == 1
    assert (
        "was written from recipes: remove it from there, or rename one of the two" in capsys.readouterr().err
    )


def test_dry_run(out, capsys):
    """
    It says what would change.
    """
    assert main(["export", "claude-commands", "out", "explain", "--dry-run"]) == 0
    assert capsys.readouterr().out == "would write out/explain.md\n"
    assert not out.exists()

    main(["export", "claude-commands", "out", "explain"])
    assert main(["export", "claude-commands", "out", "--remove", "--dry-run"]) == 0
    assert capsys.readouterr().out.endswith("would remove out/explain.md\n")
    assert files(out) == ["explain.md"]


def test_the_note_has_digests(out):
    """
    By the name of each file, with what it was made of.
    """
    main(["export", "claude-commands", "out", "explain"])
    noted = json.loads((out / NOTE).read_text())["explain.md"]
    assert noted["source"] == "recipes"
    assert len(noted["files"]["."]) == 64


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["claude-commands", "out", "explian"], 2, "unknown prompt 'explian'; did you mean 'explain'?"),
        (["codex", "out", "zzz"], 2, "unknown prompt 'zzz': promptkit list shows all names"),
        (
            ["claude-commands", "out", "notes"],
            1,
            "'notes' is a skill: write it with 'promptkit export skills'",
        ),
        (["claude-commands", "recipes/out"], 2, "'recipes/out' is in the recipes: name another folder"),
        (["claude-commands", "out", "--remove", "--live"], 2, "--remove takes no --live"),
        (["opencode", "out"], 2, "'opencode' is not one of claude-commands, gemini-commands, codex, skills"),
    ],
)
def test_wrong_usage(out, capsys, words, code, said):
    """
    It is said what to do.
    """
    try:
        ended = main(["export", *words])
    except SystemExit as error:
        ended = error.code
    assert (ended, said in capsys.readouterr().err) == (code, True)
    assert not out.exists()


def test_faults_in_recipes_write_nothing(out, capsys):
    """
    As a prompt may be missing.
    """
    (out.parent / "recipes" / "broken.py").write_text("1 / 0")
    assert main(["export", "claude-commands", "out"]) == 1
    assert "nothing was written: fix the faults above" in capsys.readouterr().err
    assert not out.exists()
