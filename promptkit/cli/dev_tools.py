"""
``promptkit dev --mcp``: tools for a coding agent that writes the prompts of this project.

Each call runs a command in a new process, so it sees the current files. The commands run the project's code,
so the tools are only served over stdio, to a client that could run this code itself.
"""

import re
import subprocess
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

from promptkit.catalog.catalog import Catalog
from promptkit.cli import Exit
from promptkit.cli.loading import run_promptkit
from promptkit.compiler.compilation import compile  # noqa: A004 (the field's word)
from promptkit.declarations.prompts import prompt
from promptkit.errors.distribution import DISTRIBUTION
from promptkit.errors.exceptions import PromptError
from promptkit.files.reading import MAX_SOURCE_BYTES, read_regular_file
from promptkit.language.annotations import Arg, Tool
from promptkit.loader.targets import is_markdown_target
from promptkit.protocol.capabilities import ServerInfo
from promptkit.protocol.limits import Limits
from promptkit.server import Server
from promptkit.transports import stdio
from promptkit.version import VERSION

#: Timeout of a command, in seconds, because recipes can hang.
_COMMAND_S: Final = 120.0

#: Maximum length of an output, in characters, so that it does not fill the context of a model.
_MAX_OUTPUT: Final = 60_000

_INSTRUCTIONS: Final = (
    "Tools for writing prompts with promptkit. Read the project's AGENTS.md first. After each edit, call "
    "check_prompts, and explain_code for codes that you do not know. Then read the text with render_prompt."
)

#: The page about diagnostics: its path in an installed wheel, and its path in a checkout.
_PAGES: Final = (
    Path(__file__).with_name("diagnostics.md"),
    Path(__file__).parents[2] / "docs" / "diagnostics.md",
)

_READ_ONLY: Final = Tool(read_only=True, idempotent=True)


def run(options: Namespace) -> int:
    """
    Serve the tools until the client disconnects, then exit the process.

    Raises:
        OSError: If standard input or output is closed.
    """
    if conflicting := sorted({"--port", "--editor", "--no-open", "--server"} & options.typed_options):
        options.error(
            f"{conflicting[0]} is for the preview, but --mcp serves tools over stdio: omit one of them"
        )
    targets = [target for target in options.targets if not is_markdown_target(target)]
    pipes = stdio.redirect_stdio()
    identity = ServerInfo(f"{DISTRIBUTION}-dev", VERSION, _INSTRUCTIONS, "promptkit for coding agents")
    server = Server(
        compile_tools(
            targets if options.has_targets else (), [f"--markdown={each}" for each in options.markdown]
        ),
        pipes.write,
        identity=identity,
        tools=True,
        limits=Limits(timeout=_COMMAND_S + 10),
    )
    return stdio.exit_now(Exit.OK if stdio.serve(server, pipes) or pipes.was_signalled else Exit.FAILED)


def compile_tools(targets: Sequence[str], markdown: Sequence[str] = ()) -> Catalog:
    """
    Return the tools as a catalog.

    Args:
        targets:
            The targets on the command line. If there are none, each command finds the configured targets
            itself.

        markdown:
            The options ``--markdown=GLOB``.
    """
    named = [f"--target={target}" for target in targets]

    @prompt(tool=_READ_ONLY)
    def list_prompts() -> str:
        """List the prompts of the project with their arguments, the resources and the skills."""
        return _run_command("list", *targets, *markdown)

    @prompt(tool=_READ_ONLY)
    def check_prompts(
        render: Annotated[bool, Arg("Whether to render every prompt with its examples and cases")] = True,  # noqa: FBT002 (models name it)
    ) -> str:
        """Report every problem in the prompts, with its code, its location and a fix."""
        return _run_command("check", *targets, *markdown, *(["--render"] if render else []))

    @prompt(tool=_READ_ONLY)
    def render_prompt(
        name: Annotated[str, Arg("The name of a prompt, or the URI of a resource")],
        arguments: Annotated[dict[str, str], Arg("The arguments by name, as text")] = {},  # noqa: B006
    ) -> str:
        """Render a prompt with arguments, and return its messages as a model gets them."""
        words = [f"{key}={'@' * value.startswith('@')}{value}" for key, value in arguments.items()]
        return _run_command("render", *named, name, *words, *markdown)

    @prompt(tool=_READ_ONLY)
    def render_cases(name: Annotated[str, Arg("The name of a prompt")]) -> str:
        """Render every saved case of a prompt, each under a heading."""
        return _run_command("render", *named, name, *markdown, "--cases")

    @prompt(tool=_READ_ONLY)
    def explain_code(code: Annotated[str, Arg("A code that check reports", examples=["PK207"])]) -> str:
        """Explain the code of a diagnostic, with an example and a fix."""
        return explain(code)

    declared = (list_prompts, check_prompts, render_prompt, render_cases, explain_code)
    return compile(declared)


def explain(code: str) -> str:
    """
    Return the section about a code in docs/diagnostics.md.

    Raises:
        PromptError: If there is no such code.
    """
    code = code.strip().upper()
    page = read_regular_file(next(filter(Path.is_file, _PAGES)), MAX_SOURCE_BYTES).decode()
    match = re.search(rf"^## {re.escape(code)}\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE)
    if match is None:
        msg = f"there is no code {code!r}: pass one that check_prompts reports, such as PK207"
        raise PromptError(msg)
    return f"# {code}\n\n{match[1].strip()}"


def _run_command(command: str, *words: str) -> str:
    """Run a promptkit command, and return its output."""
    try:
        process = run_promptkit(command, *words, timeout=_COMMAND_S)
    except subprocess.TimeoutExpired:
        msg = f"promptkit {command} did not finish within {_COMMAND_S:g} s: a recipe might hang"
        raise PromptError(msg) from None
    output = "\n".join(filter(None, (process.stdout.strip(), process.stderr.strip())))
    if len(output) > _MAX_OUTPUT:
        return f"{output[:_MAX_OUTPUT]}\n… truncated: {len(output):,} characters in total"
    return output or f"promptkit {command} printed nothing and exited with {process.returncode}"
