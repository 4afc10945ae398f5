"""A skill that teaches models to write prompts with promptkit."""

from importlib.resources import files
from typing import Final

from promptkit import Text, skill
from promptkit.fragments import blocks, bullets, code_block, numbered, section, table

#: The complete guide. `promptkit new` writes it as AGENTS.md, and a model reads it before it writes prompts.
GUIDE: Final = files("promptkit.cli").joinpath("agents.md").read_text(encoding="utf-8")

#: The shortest complete prompt. A test compiles it, and all examples in the guide.
EXAMPLE: Final = '''\
from typing import Annotated

from promptkit import Arg, prompt, user
from promptkit.fragments import code_block


@prompt
def explain(code: Annotated[str, Arg("The code to explain", examples=["xs[::-1]"])]):
    """Explain a piece of code."""
    return user("Explain this code to a newcomer.", code_block(code))
'''


@skill(
    license="MIT", allowed_tools=["Read", "Edit", "Bash(promptkit:*)"], files={"references/guide.md": GUIDE}
)
def promptkit_authoring() -> Text:
    """Write and fix prompts for MCP clients with promptkit. Use it in projects with promptkit."""
    steps = numbered(
        [
            "Read [the guide](references/guide.md): the language, with an example of each kind of prompt.",
            "Read the prompts in the project, and follow their style.",
            "Write one file per prompt. Choose Markdown if it is mostly text, otherwise Python.",
            "Run `promptkit check --render` until it reports nothing. Fix the cause, and ignore no codes.",
            "Run `promptkit render NAME key=value`, and read the text as the model will.",
            "Save a case for each kind of input.",
        ]
    )
    rules = bullets(
        [
            "The docstring states what the prompt asks for, in one sentence: users see it.",
            "Each argument has a type, a description and an example.",
            "Text by other people goes into `untrusted(...)`; code goes into `code_block(...)`.",
            "Do not join strings: parts of `user(...)` get blank lines between them, and None is omitted.",
        ]
    )
    tools = table(
        [
            ["`list_prompts`", "the prompts with their arguments"],
            ["`check_prompts`", "every problem, with a code and a fix"],
            ["`render_prompt`", "a prompt with arguments"],
            ["`explain_code`", "a code such as PK207"],
        ],
        header=["Tool", "Shows"],
    )
    return blocks(
        "# Write prompts with promptkit",
        section("Steps", steps),
        section("The shortest prompt", code_block(EXAMPLE, "python")),
        section("Rules", rules),
        section(
            "Tools",
            "If the host offers the tools of `promptkit dev --mcp`, use them instead of commands.",
            tools,
        ),
    )
