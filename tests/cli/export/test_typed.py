"""`promptkit render --typed`: what was typed behind a slash command."""

import pytest

from promptkit.cli import main
from tests.terminal import command

END = "end-of-it"


@pytest.fixture
def typed(project):
    """Render a prompt for what was typed; return the exit code, and what is printed."""

    def render(name, text, *options, end=f"\n{END}\n"):
        sent = f".{text}{end}".encode()
        code, out, err = command("render", name, "--typed", END, *options, cwd=project.parent, input=sent)
        return code, (err if code else out).decode()

    return render


@pytest.mark.parametrize(
    ("name", "text", "said"),
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
def test_it_is_the_text_alone(typed, name, text, said):
    """
    All of it is an only argument; several are words. No file is read.
    """
    assert typed(name, text) == (0, f"{said}\n")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "compare",
            "a b c",
            "typed values: 3, arguments for them: 2; put words that belong together",
        ),
        ("greet", "you", "typed values: 1, arguments for them: 0; it takes none"),
        ("compare", "it's", "the typed arguments have an unclosed quote (No closing quotation)"),
        ("explain", "", "prompt 'explain': 'topic' is missing"),
        ("explain", f"a{END}b", "the typed arguments were changed or cut by the client"),
    ],
)
def test_what_does_not_fit_is_refused(typed, name, text, said):
    """
    And it is said what to do.
    """
    code, printed = typed(name, text)

    assert code
    assert said in printed


@pytest.mark.parametrize("end", ["", "\n", f"{END}\n", f"\n{END}"])
def test_what_was_cut_is_refused(typed, end):
    """
    Its last line has to be there.
    """
    code, printed = typed("explain", "half of", end=end)

    assert code == 2
    assert (
        "the typed arguments were changed or cut by the client: omit what the client interprets itself"
        in printed
    )


def test_what_is_no_text_of_a_user_is_refused(typed):
    """
    Or becomes a transcript.
    """
    code, printed = typed("debug", "x")

    assert code == 1
    assert (
        "cannot take it: message 2 holds Text of the assistant: a slash command is the text of a" in printed
    )
    assert "(--lossy replaces unsupported content by text)" in printed
    assert typed("debug", "x", "--lossy") == (0, "[user]\nI see x.\n\n[assistant]\nWhat have you tried?\n")


@pytest.mark.parametrize("more", [["topic=x"], ["--json"], ["--cases"], ["--out", "x"]])
def test_it_takes_no_others(project, capsys, more):
    """
    Neither arguments nor forms.
    """
    with pytest.raises(SystemExit):
        main(["render", "explain", "--typed", END, *more])
    assert "--typed takes no other options but --lossy, and no arguments" in capsys.readouterr().err
