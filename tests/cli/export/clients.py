"""
How clients use exported files, according to their documentation.

Claude Code: https://code.claude.com/docs/en/skills#available-string-substitutions. Gemini CLI:
https://github.com/google-gemini/gemini-cli/blob/main/docs/cli/custom-commands.md, and `quote` of shell-quote.
`test_assistants.py` verifies this with the clients themselves.
"""

import re
import shlex
import tomllib
from typing import NamedTuple

#: As in JavaScript's ``\\s``.
BLANK = "\t\n\v\f\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"


class ClaudeExpansion(NamedTuple):
    """A command as Claude Code expands it, and the typed arguments."""

    typed: str
    text: str

    @classmethod
    def expand(cls, file, typed):
        """
        Return the command with the typed arguments inserted, in which `!` no longer starts a shell command.
        """
        head, body = re.fullmatch(r"---\n(.*?)\n---\n\n?(.*?)\n", file.decode(), re.DOTALL).groups()
        typed = re.sub(r"(?<!\S)!(`?)", lambda match: "\\! `" if match[1] else "\\!", typed)
        typed = typed.replace("```!", "``` \\!")
        words = shlex.split(typed) if "] [" in head else []

        def substitute(match):
            slashes, index, number = match.groups()
            if slashes in {"\\", None}:
                return match[0][1:]
            position = index or number
            value = (
                typed if position is None else words[int(position)] if int(position) < len(words) else None
            )
            return match[0] if value is None else f"{slashes}{value}"

        pattern = r"(\\*)\$(?:ARGUMENTS(?:\[(\d+)\])?|(\d+)(?!\w))|(?<!\\)\\\$\d"
        return cls(typed, re.sub(pattern, substitute, body))

    @property
    def commands(self):
        """The commands that Claude Code runs."""
        blocks = re.findall(r"```!\s*\n?(.*?)\n?```", self.text, re.DOTALL)
        return [*blocks, *re.findall(r"(?<!\S)!`([^`]+)`", self.text)]


def expand_gemini(file, typed):
    """Return the text that Gemini CLI sends for a frozen command."""
    text = tomllib.loads(file.decode())["prompt"]
    assert "!{" not in text
    assert "@{" not in text
    return replace_all(text, "{{args}}", typed)


def gemini_shell_command(file, typed):
    """Return the command that Gemini CLI passes to a shell."""
    text = tomllib.loads(file.decode())["prompt"]
    command = re.fullmatch(r"!\{(.*)\}", text, re.DOTALL)[1]
    assert command.count("{") == command.count("}") == 2
    return replace_all(command, "{{args}}", quote(typed))


def replace_all(text, pattern, replacement):
    """Replace like JavaScript's `replaceAll`, which interprets `$` sequences in the replacement."""
    parts = text.split(pattern)
    result = parts[0]
    for number, part in enumerate(parts[1:], 1):
        before, after = pattern.join(parts[:number]), pattern.join(parts[number:])
        signs = {"$": "$", "&": pattern, "`": before, "'": after}
        result += re.sub(r"\$([$&`'])", lambda sign, signs=signs: signs[sign[1]], replacement) + part
    return result


def quote(value):
    """Quote a word like the package shell-quote."""
    if not value:
        return ""
    if re.search(rf'["\\{BLANK}]', value) and "'" not in value:
        return f"'{value}'"
    if re.search(rf"[\"'{BLANK}]", value):
        return '"' + re.sub(r'(["\\$`!])', r"\\\1", value) + '"'
    return re.sub(r"([A-Za-z]:)?([#!\"$&'()*,:;<=>?@\[\\\]^`{|}])", r"\1\\\2", value)
