"""A skill for reviewing changes, with the rules of `code_review`."""

from promptkit import Text, skill
from promptkit.fragments import blocks, bullets, numbered, section

from .code_review import ANSWER_FORMAT, FOCUS, RULES


def _render_focus_reference() -> Text:
    """Render the definitions of all focuses, as a file that a model reads only if it needs one of them."""
    definitions = [f"**{name}**: {definition}" for name, definition in FOCUS.items()]
    return blocks("# Focus of a review", bullets(definitions))


@skill(
    license="MIT",
    allowed_tools=["Read", "Grep", "Bash(git diff:*)"],
    files={"references/focus.md": _render_focus_reference},
)
def review_changes() -> Text:
    """Review a change and list its problems by severity. Use it before a commit, or on request."""
    steps = numbered(
        [
            "Read the whole change: `git diff HEAD`, or the diff you were given. Then read the callers.",
            "State in one sentence what the change is meant to do. If that is unclear, ask.",
            "If a focus was named, read [its definition](references/focus.md). Otherwise, review everything.",
            "Try to break the change: empty input, the largest input, concurrent callers, a failure halfway.",
            "Write the answer in the format below.",
        ]
    )
    return blocks(
        "# Review a change",
        section("Steps", steps),
        ANSWER_FORMAT,
        section("Rules", RULES),
    )
