"""
What clients do with the files that are written for them, by their documentation.

Claude Code: https://code.claude.com/docs/en/skills#available-string-substitutions. Gemini CLI:
https://github.com/google-gemini/gemini-cli/blob/main/docs/cli/custom-commands.md, and `quote` of shell-quote.
`test_assistants.py` holds these against the clients themselves.
"""

import re
import shlex
import tomllib
from typing import NamedTuple

#: As in JavaScript's ``\\s``.
BLANK = "\t\n\v\f\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"


class Claude(NamedTuple):
    """What Claude Code makes of a command, and of what was typed."""

    typed: str
    text: str

    @classmethod
    def reads(cls, file, typed):
        """Put in what was typed, in which a ``!`` begins no command any more."""
        head, body = re.fullmatch(r"---\n(.*?)\n---\n\n?(.*?)\n", file.decode(), re.DOTALL).groups()
        typed = re.sub(r"(?<!\S)!(`?)", lambda found: "\\! `" if found[1] else "\\!", typed)
        typed = typed.replace("```!", "``` \\!")
        words = shlex.split(typed) if "] [" in head else []

        def filled(found):
            slashes, index, number = found.groups()
            if slashes in {"\\", None}:
                return found[0][1:]
            at = index or number
            value = typed if at is None else words[int(at)] if int(at) < len(words) else None
            return found[0] if value is None else f"{slashes}{value}"

        pattern = r"(\\*)\$(?:ARGUMENTS(?:\[(\d+)\])?|(\d+)(?!\w))|(?<!\\)\\\$\d"
        return cls(typed, re.sub(pattern, filled, body))

    @property
    def commands(self):
        """What it runs, each by itself."""
        blocks = re.findall(r"```!\s*\n?(.*?)\n?```", self.text, re.DOTALL)
        return [*blocks, *re.findall(r"(?<!\S)!`([^`]+)`", self.text)]


def gemini_says(file, typed):
    """What Gemini CLI makes of a frozen command."""
    text = tomllib.loads(file.decode())["prompt"]
    assert "!{" not in text
    assert "@{" not in text
    return replaced_all(text, "{{args}}", typed)


def gemini_runs(file, typed):
    """The command that Gemini CLI gives to a shell."""
    text = tomllib.loads(file.decode())["prompt"]
    command = re.fullmatch(r"!\{(.*)\}", text, re.DOTALL)[1]
    assert command.count("{") == command.count("}") == 2
    return replaced_all(command, "{{args}}", quoted(typed))


def replaced_all(text, found, replacement):
    """As ``replaceAll`` of JavaScript, which reads some signs of the replacement."""
    parts = text.split(found)
    made = parts[0]
    for number, part in enumerate(parts[1:], 1):
        before, behind = found.join(parts[:number]), found.join(parts[number:])
        signs = {"$": "$", "&": found, "`": before, "'": behind}
        made += re.sub(r"\$([$&`'])", lambda sign, signs=signs: signs[sign[1]], replacement) + part
    return made


def quoted(value):
    """As shell-quote makes a word of a shell."""
    if not value:
        return ""
    if re.search(rf'["\\{BLANK}]', value) and "'" not in value:
        return f"'{value}'"
    if re.search(rf"[\"'{BLANK}]", value):
        return '"' + re.sub(r'(["\\$`!])', r"\\\1", value) + '"'
    return re.sub(r"([A-Za-z]:)?([#!\"$&'()*,:;<=>?@\[\\\]^`{|}])", r"\1\\\2", value)
