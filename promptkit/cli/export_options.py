"""The options of `promptkit export`."""

from argparse import ArgumentParser
from typing import Any, Final

__all__ = ["FORMATS", "add_export"]

#: What can be written.
FORMATS: Final = ("claude-commands", "gemini-commands", "codex", "skills")


def add_export(export: ArgumentParser, target: dict[str, Any]) -> None:
    """
    Add the options to a parser.

    Args:
        export:
            The parser.

        target:
            What is known of targets.
    """
    add = export.add_argument
    form = (
        "slash commands of Claude Code or Gemini CLI, prompts as skills for Codex, or all prompts and skills"
    )
    add("form", choices=FORMATS, metavar="FORMAT", help=f"{', '.join(FORMATS)}: {form}")
    add("folder", metavar="DIR", help="where the client looks for them, as in .claude/commands")
    add("names", nargs="*", metavar="PROMPT", help="which ones (default: all)")
    add("--target", dest="targets", action="append", **target)
    live = "write what runs 'promptkit render', so that all prompts can be written, and none is out of date"
    add("--live", action="store_true", help=live)
    add("--remove", action="store_true", help="remove what was written, if nobody has changed it since")
    add("--dry-run", action="store_true", help="print what would change, and change nothing")
