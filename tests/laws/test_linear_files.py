"""Files of other programs are read in linear time: readers are timed with small and with large text."""

import gc
from collections.abc import Callable
from contextlib import suppress
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from time import thread_time
from typing import Final

import pytest

from benchmarks.hostile import SIZE_RATIO, Growth
from promptkit.clients import jsonc_edits, toml_edits, yaml_edits
from promptkit.clients.slash_commands.claude import read_claude_command
from promptkit.clients.slash_commands.command import CommandSyntaxError
from promptkit.clients.slash_commands.gemini import read_gemini_command
from promptkit.clients.slash_commands.recipe_source import generate_markdown, generate_python, needs_python
from promptkit.clients.slash_commands.vscode import read_vscode_prompt
from promptkit.compiler.compilation import compile as compile_recipes
from promptkit.declarations.markdown_yaml import MarkdownError, read_fields
from promptkit.declarations.skill_frontmatter import FrontmatterError, read_skill
from promptkit.files.edits import FileEditError

pytestmark = pytest.mark.timeout(120)

#: Items of the small text; for sixteen times as many, quadratic work dominates all other work.
SIZE: Final = 300

#: Items of the small text for the YAML parser, which is slow and reads at most 64 or 128 KiB.
YAML_SIZE: Final = 100

#: Items of the small text for Markdown prompts, where more of the work does not depend on the size.
MARKDOWN_SIZE: Final = 2_000

#: Maximum number of measurements of text that does not seem linear.
MAX_MEASUREMENTS: Final = 12


def make_importer(read):
    """Return a function that reads a command and generates its recipe."""

    def call(text):
        command = read("name", text)
        if not needs_python(command):
            return generate_markdown(command, "name")
        markdown, python = generate_python(command, "name", "name")
        compile(python, "name.py", "exec")
        return markdown

    return call


def compile_markdown(text):
    """Compile and check a Markdown prompt, and render it if it has one argument at most."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "x.prompt.md")
        path.write_text(text, encoding="utf-8", newline="")
        for prompt in compile_recipes(str(path), lint=True).prompts:
            if len(prompt.arguments.ordered) <= 1:
                prompt.render({argument.name: "x" for argument in prompt.arguments.ordered})


def make_editor(module):
    """
    Return a function that reads a configuration and, if possible, adds, changes and removes an entry.
    """

    def call(text):
        data = module.read(text)
        if not isinstance(data.get("a", {}), dict):
            return
        for name, value in (("new", {"x": "y"}), ("n1", {"x": "y"}), ("n1", None)):
            module.set_entry(text, ["a", name], value)

    return call


def numbered(text: str, joint: str = "") -> Callable[[int], str]:
    return lambda size: joint.join(text.format(number) for number in range(size))


def within(before: str, make: Callable[[int], str], after: str) -> Callable[[int], str]:
    return lambda size: f"{before}{make(size)}{after}"


def repeated(text: str) -> Callable[[int], str]:
    return lambda size: text * size


CLAUDE = {
    "scripts without end": repeated("```!\nx\n"),
    "scripts with one end": within("", repeated("```!\nx | y\n"), "```\n"),
    "scripts": repeated("```!\ngit status\n```\n"),
    "commands without end": repeated(" !`"),
    "commands": numbered("!`git log {}`\n"),
    "commands for a shell": repeated("!`a | b` "),
    "fields": within("---\n", numbered("f{}: x\n"), "---\nx"),
    "fields of one name": within("---\n", repeated("description: x\n"), "---\nx"),
    "hyphens": repeated("---\n"),
    "blank lines of properties": within("---\n", repeated(" \n"), "x"),
    "$1": repeated("$1\n"),
    "\\$1": repeated("\\$1"),
    "$1,0": repeated("$1,0 "),
    "digits": within("$", repeated("1"), ""),
    "$ARGUMENTS": repeated("$ARGUMENTS"),
    "$ARGUMENTS[": repeated("$ARGUMENTS["),
    "$ARGUMENTS[0]": numbered("$ARGUMENTS[{}]"),
    "declared names": within("---\narguments: ", numbered("a{}", " "), "\n---\n$a0 $x"),
    "used names": lambda size: (
        f"---\narguments: {numbered('a{}', ' ')(size)}\n---\n{numbered('$a{} ')(size)}"
    ),
    "variables": repeated("${CLAUDE_X}"),
    "long hint": within("---\nargument-hint: x", repeated("[ "), "\n---\n$1"),
    "@": repeated("@ "),
    "files": repeated("@a.py "),
    "folders above": within("@a", repeated("/../"), "$x"),
    "folders": within("@", repeated("a/"), "$x"),
    "dots": within("@", repeated("a."), "$x"),
    "backslashes": repeated("\\"),
    "quotes": repeated('"'),
    "holes": repeated("{{a}} "),
    "braces": repeated("{{"),
    "carriage returns": repeated("x\r"),
}
GEMINI = {
    "arguments": within("prompt='''", repeated("{{args}}\n"), "'''"),
    "commands": within("prompt='''", numbered("!{{git log {}}}\n"), "'''"),
    "commands for a shell": within("prompt='''", repeated("!{a | b}\n"), "'''"),
    "commands without end": within("prompt='''", repeated("!{ "), "'''"),
    "files": within("prompt='''", repeated("@{a.b}\n"), "'''"),
    "files without end": within("prompt='''", repeated("@{ "), "'''"),
    "no files": within("prompt='''", repeated("@{a/}\n"), "'''"),
    "dots": within("prompt='''@{", repeated("a.."), "}'''"),
    "fields": within("prompt='x'\n", numbered("f{} = 1\n"), ""),
    "brackets": within("prompt='x'\na = ", repeated("["), ""),
}
VSCODE = {
    "inputs": repeated("${input:a}\n"),
    "inputs of like names": lambda size: "".join(f"${{input:{chr(0x4E00 + at)}}}\n" for at in range(size)),
    "inputs with hints": numbered("${{input:a{}:hint}}\n"),
    "inputs without end": repeated("${input:a:"),
    "variables": repeated("${file} "),
    "links": repeated("[](a.b)\n"),
    "links without end": within("[](", repeated("a."), ""),
    "brackets": repeated("["),
    "tools": repeated(" #tool:x"),
    "files": repeated(" #file:x"),
}
YAML = {
    "fields": numbered("f{}: x\n"),
    "plain lines": within("a:\n", repeated(" a\n"), ""),
    "quoted lines": within('a: "', repeated(" a\n"), '"\n'),
    "literal lines": within("a: |\n", repeated(" a\n"), ""),
    "comments": within("a: 1\n", repeated("#\n"), ""),
    "blank lines": within("a:\n", repeated("\n"), "b: 1\n"),
    "list": within("a:\n", repeated("- a\n"), ""),
    "flow list": within("a: [", repeated("a, "), "]\n"),
    "flow mapping": within("a: {", numbered("a{}: 1, "), "}\n"),
    "brackets": within("a: " + "[" * 1024, repeated("["), "\n"),  # the parser's lookahead limit
    "pairs of brackets": within("a: [", repeated("[],"), "]\n"),
    "nested lists": within("", repeated("- "), "a\n"),
    "nested keys": within("", repeated("? "), "a\n"),
    "colons": within("a: ", repeated(":"), "\n"),
    "a long key": within("", repeated("a"), ": 1\n"),
}
FIELDS = {
    "blanks in a key": within("a: b\na", repeated(" "), "b\n"),
    "blanks in a value": within("a: b", repeated("  c"), "\n"),
    "blanks": within("a: b", repeated(" "), "c\n"),
    "brackets on lines": numbered("a{}: [[[[[[[[a]]]]]]]]\n"),
    "lines with unclosed brackets": numbered("a{}: [[[[[[[[\n"),
    "quotes": within("a: '", repeated("''"), "\n"),
    "escapes": within('a: "', repeated('\\"'), "\n"),
}
MARKDOWN = {
    "braces": repeated("{{"),
    "open placeholders": repeated("{{a "),
    "blanks in a placeholder": within("{{", repeated(" "), "x"),
    "blanks in a name": within("{{a", repeated(" "), "x"),
    "placeholders": repeated("{{a}} "),
    "lines of placeholders": repeated("{{a}}\n"),
    "names": numbered("{{{{a{}}}}}\n"),
    "turns": repeated("[user]\nx\n"),
    "fences": repeated("```\n"),
    "long fence": repeated("`"),
    "blanks before a turn": within("", repeated(" "), "[user"),
    "backslashes": repeated("\\"),
    "escapes": repeated("\\{{\n\\[user]\n"),
    "blanks in an include": within("{{>", repeated(" "), "x"),
    "open includes": repeated("{{> a "),
    "blanks in a file": within("{{image:", repeated(" "), "x"),
    "blocks": repeated("{{#a}}\nx\n{{/a}}\n"),
    "nested blocks": lambda size: "{{#a}}\nx {{a}}\n" * size + "{{/a}}\n" * size,
    "Jinja": repeated("{% if "),
    "comments of Jinja": repeated("{# "),
    "comments of Handlebars": repeated("{{! "),
    "quotes in braces": repeated("{{ a '"),
    "Handlebars": within("{{#a", repeated(" "), "x"),
    "commands": repeated("!{"),
    "inputs": repeated("${input:"),
    "file names": repeated("@a/"),
    "hyphens": repeated("---\n"),
    "blanks in front matter": within("---\na", repeated(" "), "\n---\nx"),
    "blank lines in front matter": within("---\n", repeated("\n"), "x\n---\nx"),
}
JSON = {
    "members on one line": within('{"a": {', numbered('"n{}": 1', ", "), "}}"),
    "members": within('{"a": {\n', numbered('  "n{}": 1', ",\n"), "\n}}"),
    "members of the outermost object": within('{"a": {"n1": 1}, ', numbered('"n{}": 1', ", "), "}"),
    "comments": within('{"a": {"n1": 1}}', repeated("/**/"), ""),
    "comments without end": within('{"a": {"n1": 1}}', repeated("/*"), ""),
    "commas": within('{"a": {"n1": 1', repeated(", "), "}}"),
    "blanks": within('{"a": {"n1": 1', repeated(" "), ",}}"),
    "brackets": within('{"a": ', repeated("["), ""),
    "digits": within('{"a": ', repeated("1"), "}"),
    "backslashes": within('{"a": "', repeated("\\\\"), '"}'),
}
TOML = {
    "tables": numbered("[a.n{}]\nx = 1\n"),
    "keys": within("[a.n1]\n", numbered("x{} = 1\n"), ""),
    "parts of a key": within("", repeated("a."), "a = 1\n"),
    "parts of a table's name": lambda size: f"[{'a.' * size}a]\n{TOML['keys'](size)}",
    "lists of tables": repeated("[[b]]\n"),
    "comments": repeated("#\n"),
    "brackets": within("a = ", repeated("["), ""),
    "members": within("a = {", numbered("x{} = 1", ", "), "}\n"),
}

READERS = {
    "Claude Code": (make_importer(read_claude_command), CLAUDE, SIZE),
    "Gemini CLI": (make_importer(read_gemini_command), GEMINI, SIZE),
    "VS Code": (make_importer(read_vscode_prompt), VSCODE, SIZE),
    "skill": (
        lambda text: read_skill(text.encode()),
        {kind: within("---\n", make, "---\nx") for kind, make in YAML.items()}
        | {"no end": within("---\n", repeated("a: b\n"), "")},
        YAML_SIZE,
    ),
    "front matter": (lambda text: read_fields(text, "x.md"), YAML | FIELDS, YAML_SIZE),
    "Markdown": (compile_markdown, MARKDOWN, MARKDOWN_SIZE),
    "YAML": (make_editor(yaml_edits), YAML, YAML_SIZE),
    "JSON": (make_editor(jsonc_edits), JSON, SIZE),
    "TOML": (make_editor(toml_edits), TOML, SIZE),
}
KINDS = [(reader, kind) for reader, (_, kinds, _) in READERS.items() for kind in kinds]


def measure_seconds(read, text):
    """Return the CPU time of reading a string, whether it is rejected or not."""
    gc.disable()
    try:
        start = thread_time()
        with suppress(CommandSyntaxError, FrontmatterError, FileEditError, MarkdownError):
            read(text)
        return thread_time() - start
    finally:
        gc.enable()


def measure_growth(kind, read, make, size):
    """Measure small and large text, and repeat the measurement if it does not seem linear."""
    small, large = make(size), make(size * SIZE_RATIO)
    least = [inf, inf]
    for _ in range(MAX_MEASUREMENTS):
        least = [
            min(before, measure_seconds(read, text))
            for before, text in zip(least, (small, large), strict=True)
        ]
        if Growth(kind, *least).is_linear:
            break
    return Growth(kind, *least)


@pytest.mark.parametrize(("reader", "kind"), KINDS)
def test_reading_takes_linear_time(reader, kind):
    """The time to read a file grows linearly with its size, not quadratically."""
    read, kinds, size = READERS[reader]

    measured = measure_growth(kind, read, kinds[kind], size)

    assert measured.is_linear, (
        f"{measured.small * 1e3:.1f} ms, then {measured.large * 1e3:.1f} ms: {measured.ratio:.0f}x"
    )


def test_quadratic_time_is_detected():
    """The check fails for a quadratic reader, which counts the preceding lines at each character."""
    measured = measure_growth(
        "lines", lambda text: [text.count("\n", 0, at) for at in range(len(text))], repeated("x\n"), 500
    )

    assert not measured.is_linear
