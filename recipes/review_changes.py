"""How a model reviews changes by itself: the rules of `code_review`, as a skill."""

from promptkit import Text, skill
from promptkit.fragments import blocks, bullets, numbered, section

from .code_review import FINDINGS, FOCUS, RULES


def _focus() -> Text:
    """Return what each focus means, as a file of its own: it is read only if somebody names one."""
    named = [f"**{name}**: {meaning}" for name, meaning in FOCUS.items()]
    return blocks("# What a review may look for", bullets(named))


@skill(
    license="MIT",
    allowed_tools=["Read", "Grep", "Bash(git diff:*)"],
    files={"references/focus.md": _focus},
)
def review_changes() -> Text:
    """Review a change and list its problems by severity. Use it before a commit, or when asked to."""
    steps = numbered(
        [
            "Read the whole change: `git diff HEAD`, or what you were given. Then read what calls it.",
            "Say in one sentence what it is meant to do. If you cannot tell, ask.",
            "If you are told what to look for, read [what that means](references/focus.md). Else, for all.",
            "Try to break it: empty input, the largest input, two callers at once, a failure half-way.",
            "Write the answer in the form below.",
        ]
    )
    return blocks(
        "# Review a change",
        section("Steps", steps),
        section(
            "Form of the answer",
            "One sentence with your verdict: `ready`, `ready after fixes` or `needs rework`. Then:",
            FINDINGS,
        ),
        section("Rules", RULES),
    )
