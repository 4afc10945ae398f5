"""`promptkit render --typed`: the text after a slash command."""

import pytest

from promptkit.cli import main

MARKER = "end-of-it"


@pytest.fixture
def render_typed(project, run):
    """A function that renders a prompt for a typed text and returns the exit code and the output."""

    def render(name, text, *options, end=f"\n{MARKER}\n", start="."):
        stdin = f"{start}{text}{end}".encode()
        code, out, err = run("render", name, "--typed", MARKER, *options, cwd=project.parent, stdin=stdin)
        return code, err if code else out

    return render


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("explain", 'it\'s "so"', 'Explain it\'s "so" to a child, for $100. it\'s "so"!'),
        ("explain", "a\n\nb", "Explain a\n\nb to a child, for $100. a\n\nb!"),
        ("greet", "", "Hello.\n\nWho are you?"),
        ("translate", "It's 'so'\nand so", "Translate into German, in a plain tone:\n\nIt's 'so'\nand so"),
        ("translate", "language=french Yes, I do", "Translate into French, in a plain tone:\n\nYes, I do"),
        ("translate", "tone='very dry' text=Yes", "Translate into German, in a very dry tone:\n\nYes"),
        ("translate", "tone= language=French\na=b", "Translate into French, in a  tone:\n\na=b"),
        ("translate", "text=Yes French dry", "Translate into French, in a dry tone:\n\nYes"),
        ("compare", "'the sun' moon", "Compare the sun with moon.\n\nBegin with the sun."),
        ("compare", "second=moon the sun", "Compare the sun with moon.\n\nBegin with the sun."),
        ("review", "@words.py", "Review this.\n\n```\n@words.py\n```"),
        ("count", " 3 ", "Count to 3."),
    ],
)
def test_typed_text(render_typed, name, text, expected):
    """A single argument gets the whole text, several arguments get words of it, and no file is read."""
    assert render_typed(name, text) == (0, f"{expected}\n")


def test_byte_order_mark(render_typed):
    """A byte order mark that the shell writes is ignored."""
    assert render_typed("count", "3", start="\ufeff.") == (0, "Count to 3.\n")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "compare",
            "a b c",
            "too many values were typed: 3 instead of at most 2; put words that belong together",
        ),
        ("greet", "you", "too many values were typed: 1 instead of at most 0; the prompt takes no arguments"),
        ("compare", "it's", "the typed arguments have an unclosed quote (No closing quotation)"),
        ("explain", "", "prompt 'explain': 'topic' is missing"),
        ("explain", f"a{MARKER}b", "the client changed or truncated the typed arguments"),
    ],
)
def test_invalid_text(render_typed, name, text, message):
    """The error explains what to do."""
    code, output = render_typed(name, text)

    assert code
    assert message in output


@pytest.mark.parametrize("end", ["", "\n", f"{MARKER}\n", f"\n{MARKER}"])
def test_truncated_text(render_typed, end):
    """Without its last line, the text is rejected."""
    code, output = render_typed("explain", "half of", end=end)

    assert code == 2
    assert (
        "the client changed or truncated the typed arguments: omit text that the client interprets" in output
    )


def test_assistant_turn_is_rejected(render_typed):
    """A prompt with an assistant turn is rejected, or printed as a transcript with `--lossy`."""
    code, output = render_typed("debug", "x")

    assert code == 1
    assert "message 2 (assistant) contains Text: a slash command can contain only user text" in output
    assert "(--lossy replaces unsupported content with text)" in output
    assert render_typed("debug", "x", "--lossy") == (
        0,
        "[user]\nI see x.\n\n[assistant]\nWhat have you tried?\n",
    )


def test_arguments_are_rejected(project, capsys):
    """`--typed` cannot be combined with arguments."""
    with pytest.raises(SystemExit):
        main(["render", "explain", "--typed", MARKER, "topic=x"])
    assert "--typed reads the arguments from standard input" in capsys.readouterr().err
