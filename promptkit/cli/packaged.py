"""The command of packages that ``promptkit package`` builds: serves the prompts, or runs another command."""

import sys
from collections.abc import Sequence
from typing import Final

from promptkit.cli import Exit
from promptkit.cli import main as promptkit
from promptkit.clients.uvx import is_temporary
from promptkit.standard_error import say

#: The commands that work on the package's recipes. If no command is given, the package serves its recipes.
_COMMANDS: Final = ("serve", "list", "render", "check", "install")

_HELP: Final = """\
usage: {name} [COMMAND] [OPTION ...]

Serve these prompts to an MCP client, or run another command of promptkit on them.

commands:
  serve      serve the prompts over stdio, or over HTTP with --http PORT (default)
  list       list the prompts with their arguments, the resources and the skills
  render     render a prompt and print it: {name} render NAME [KEY=VALUE ...]
  check      report every problem in the recipes
  install    add this server to an MCP client: {name} install CLIENT

{name} COMMAND --help shows the options of a command, and {name} --version shows the version.
"""


def main(name: str, version: str, targets: Sequence[str], options: Sequence[str]) -> int:
    """
    Run the command of a package with the command-line arguments of this process.

    Args:
        name:
            The name of the package.

        version:
            The version of the package.

        targets:
            The folders of the recipes, with their prefixes.

        options:
            The options of `serve` that were recorded when the package was built, including ``--markdown``.

    Returns:
        The exit code.
    """
    words = sys.argv[1:]
    if words in (["--version"], ["--help"], ["-h"], ["help"]):
        print(f"{name} {version}" if words == ["--version"] else _HELP.format(name=name))
        return Exit.OK
    command, arguments = (words[0], words[1:]) if words and words[0] in _COMMANDS else ("serve", words)
    markdown = [option for option in options if option.startswith("--markdown=")]
    if command == "install":
        if not _only_prints(arguments) and is_temporary():
            say(
                f"uvx runs {name} in a temporary environment, which no longer exists when a client starts: "
                f"run 'uv tool install {name}' first, or add the command 'uvx {name}' to the client yourself"
            )
            return Exit.USAGE
        return _run(command, *_complete_install_arguments(name, [*targets, *markdown], arguments))
    if command == "render":  # only one target without a prefix can be positional
        return _run(command, *(f"--target={target}" for target in targets), *markdown, *arguments)
    return _run(command, *targets, *(options if command == "serve" else markdown), *arguments)


def _run(*words: str) -> int:
    """Run a promptkit command as if its words were this process's command line."""
    sys.argv[1:] = words
    return promptkit()


def _complete_install_arguments(name: str, targets: Sequence[str], words: Sequence[str]) -> list[str]:
    """Return the arguments of `install`, with the recipes after the clients, and ``--name`` if needed."""
    if _only_prints(words):
        return [*words]
    at = words.index("--") if "--" in words else len(words)
    name_option = (
        [] if any(word.partition("=")[0] in ("--name", "--skills") for word in words) else ["--name", name]
    )
    return [*words[:at], *targets, *name_option, *words[at:]]


def _only_prints(words: Sequence[str]) -> bool:
    """Return whether `install` only prints help, a list or a usage error, and does not change a client."""
    return not words or not {"--list", "--help", "-h"}.isdisjoint(words)
