"""`promptkit export` writes, updates and removes its own files and touches no others."""

import json

import pytest

from promptkit.cli import main
from promptkit.cli.export import RECORD


def read_paths(folder):
    """Return the paths of the files in a folder, without promptkit's record."""
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != RECORD)
    return [path.relative_to(folder).as_posix() for path in paths]


@pytest.fixture
def out(project, tmp_path):
    """The output folder."""
    return tmp_path / "out"


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("claude-commands", ["compare.md", "explain.md", "greet.md", "translate.md"]),
        ("gemini-commands", ["explain.toml", "greet.toml", "translate.toml"]),
        (
            "codex",
            [
                f"{name}/{path}"
                for name in ("compare", "explain", "greet", "translate")
                for path in ("SKILL.md", "agents/openai.yaml")
            ],
        ),
        (
            "skills",
            [f"{name}/SKILL.md" for name in ("compare", "explain", "greet", "notes", "translate")],
        ),
    ],
)
def test_unsupported_prompts_are_skipped(out, form, expected, capsys):
    """Prompts that cannot be exported are reported and make the exit code 1, and the others are written."""
    assert main(["export", form, "out"]) == 1

    assert read_paths(out) == expected
    assert "prompt 'count' cannot be exported" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["claude-commands", "gemini-commands", "codex", "skills"])
def test_live_export(out, form, capsys):
    """
    Every prompt without secrets can be exported live; repeating changes nothing, and `--remove` removes all
    files.
    """
    assert main(["export", form, "out", "--live"]) == 1
    assert len(read_paths(out)) >= 7
    assert capsys.readouterr().err.count("\n") == 1

    main(["export", form, "out", "--live"])
    assert capsys.readouterr().out == "out: nothing to change\n"

    assert main(["export", form, "out", "--remove"]) == 0
    assert list(out.iterdir()) == []


def test_named_prompts(out, capsys):
    """If prompts are named, only these are updated; otherwise obsolete files are removed as well."""
    assert main(["export", "claude-commands", "out", "explain", "greet"]) == 0
    assert capsys.readouterr().out == "wrote 2 commands to out: explain.md, greet.md\n"
    assert main(["export", "claude-commands", "out", "compare"]) == 0
    assert read_paths(out) == ["compare.md", "explain.md", "greet.md"]

    assert main(["export", "claude-commands", "out", "explain", "--remove"]) == 0
    assert capsys.readouterr().out.endswith("removed 1 command from out: explain.md\n")
    assert read_paths(out) == ["compare.md", "greet.md"]

    source = out.parent / "recipes" / "words.py"
    source.write_text(source.read_text().replace("def greet", "def hail"))
    main(["export", "claude-commands", "out"])
    assert read_paths(out) == ["compare.md", "explain.md", "hail.md", "translate.md"]


@pytest.mark.parametrize("command", [["explain"], ["explain", "--remove"]])
@pytest.mark.parametrize("is_exported", [True, False])
def test_files_that_promptkit_did_not_write_are_kept(out, capsys, command, is_exported):
    """A file of the user, or an export that was edited, is kept."""
    if is_exported:
        assert main(["export", "claude-commands", "out", "explain"]) == 0
    out.mkdir(exist_ok=True)
    (out / "explain.md").write_text("mine")

    code = main(["export", "claude-commands", "out", *command])

    captured = capsys.readouterr()
    assert (out / "explain.md").read_text() == "mine"
    if is_exported:
        assert "has changed since it was written: move it first" in captured.err
    elif code:
        assert "explain.md was not written by promptkit: move it" in captured.err
    else:
        assert captured.out == "out: nothing to change\n"
    assert code == (0 if not is_exported and "--remove" in command else 1)


def test_link_is_not_followed(out, capsys):
    """The target of a link is not touched."""
    out.mkdir()
    (out.parent / "mine").write_text("mine")
    (out / "explain.md").symlink_to(out.parent / "mine")

    assert main(["export", "claude-commands", "out", "explain"]) == 1
    assert (out.parent / "mine").read_text() == "mine"
    assert "was not written by promptkit" in capsys.readouterr().err


def test_two_projects_in_one_folder(out, recipes, capsys, tmp_path):
    """Projects can share a folder, but not the name of a prompt."""
    source = "from promptkit import prompt\n\n@prompt\ndef {}():\n    'Say it.'\n    return 'It.'\n"
    recipes("others", one=source.format("other"))
    assert main(["export", "claude-commands", "out", "greet"]) == 0
    assert main(["export", "claude-commands", "out", "--target", "others"]) == 0
    assert read_paths(out) == ["greet.md", "other.md"]
    assert main(["export", "claude-commands", "out", "--target", "others", "--remove"]) == 0
    assert read_paths(out) == ["greet.md"]

    (tmp_path / "others" / "one.py").write_text(source.format("greet"))
    assert main(["export", "claude-commands", "out", "--target", "others"]) == 1
    assert (
        "was already written from recipes: remove that version first, or rename one of the two"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize("form", ["codex", "skills"])
def test_names_of_the_same_folder(out, recipes, capsys, form):
    """If two prompts would be written to the same folder, an error is printed, and nothing is written."""
    source = "from promptkit import prompt\n\n@prompt(name={!r})\ndef say():\n    'Say.'\n    return 'It.'\n"
    recipes("others", one=source.format("say_it"), two=source.format("Say-it"))

    assert main(["export", form, "out", "--target", "others"]) == 1

    error = capsys.readouterr().err
    assert "'say_it' and another" in error
    assert "to say-it" in error
    assert read_paths(out) == []


def test_dry_run(out, capsys):
    """A dry run prints the changes without making them."""
    assert main(["export", "claude-commands", "out", "explain", "--dry-run"]) == 0
    assert capsys.readouterr().out == "would write out/explain.md\n"
    assert not out.exists()

    main(["export", "claude-commands", "out", "explain"])
    assert main(["export", "claude-commands", "out", "--remove", "--dry-run"]) == 0
    assert capsys.readouterr().out.endswith("would remove out/explain.md\n")
    assert read_paths(out) == ["explain.md"]


def test_record(out):
    """The record contains the source and the digests of each file."""
    main(["export", "claude-commands", "out", "explain"])
    entry = json.loads((out / RECORD).read_text())["explain.md"]
    assert entry["source"] == "recipes"
    assert len(entry["files"]["."]) == 64


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["claude-commands", "out", "explian"], 2, "unknown prompt 'explian'; did you mean 'explain'?"),
        (["codex", "out", "zzz"], 2, "unknown prompt 'zzz': run 'promptkit list' to see all names"),
        (
            ["claude-commands", "out", "notes"],
            1,
            "'notes' is a skill: export it with 'promptkit export skills'",
        ),
        (["claude-commands", "recipes/out"], 2, "'recipes/out' is inside the recipes: choose another folder"),
        (["claude-commands", "out", "--remove", "--live"], 2, "--live cannot be combined with --remove"),
        (["opencode", "out"], 2, "argument FORMAT: invalid choice: 'opencode'"),
    ],
)
def test_usage_errors(out, capsys, words, code, message):
    """Wrong usage is explained, and nothing is written."""
    try:
        exit_code = main(["export", *words])
    except SystemExit as error:
        exit_code = error.code
    assert (exit_code, message in capsys.readouterr().err) == (code, True)
    assert not out.exists()


def test_invalid_recipes(out, capsys):
    """With invalid recipes nothing is written, because prompts could be missing."""
    (out.parent / "recipes" / "broken.py").write_text("1 / 0")
    assert main(["export", "claude-commands", "out"]) == 1
    assert "nothing was written: fix the errors above" in capsys.readouterr().err
    assert not out.exists()
