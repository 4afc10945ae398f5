"""Syntax of other template systems, which a text does not fill in."""

import re
from collections.abc import Collection, Iterator
from typing import Final

from promptkit.language.placeholders import name_in

#: Kinds of syntax of Jinja, Handlebars, Mustache and the commands of Claude Code, Gemini CLI and VS Code.
#: Where several kinds match, the first one counts.
_SYNTAX: Final = re.compile(
    r"""
    (?P<condition>
        \{%-?[ \t]*(?:if|elif|else|endif)\b[^%\n]*%\}
        | \{\{~?[ \t]*(?:[\#^/][ \t]*(?:if|unless)\b|else\b)[^{}\n]*\}\}
    )
    | (?P<loop>
        \{%-?[ \t]*(?:for|endfor)\b[^%\n]*%\}
        | \{\{~?[ \t]*(?:[\#/][ \t]*each\b[^{}\n]*|(?:this\b|@)[\w.]*|\.)[ \t]*~?\}\}
    )
    | (?P<unescaped>(?<![{\\\w])\{\{\{[ \t]*[^\W\d]\w*[ \t]*\}\}\}(?!\})|\{\{&[ \t]*\w+[ \t]*\}\})
    | (?P<comment>\{\#-?[ \t][^{}\n]*?\#\}|\{\{![^{}\n]*?\}\})
    | (?P<other>
        \{%-?[ \t]*(?:set|include|macro|block|extends)\b[^%\n]*%\}
        | \{\{~?[\#^/>?][^{}\n]*\}\}
        | \{\{[-~]?[ \t]*\w+[ \t]*[.|][^{}\n]*\}\}
        | \{\{[-~]?[ \t]*\w+[ \t]+(?:or|and|if)\b[^{}\n]*\}\}
        | \{\{[-~]?[ \t]*(?:\w+[ \t]+)?(?:'[^'\n]*'|"[^"\n]*")[^{}:\n]*\}\}
        | \$ARGUMENTS\b | !\{[^{}\n]*\} | \$\{input:[^{}\n]*\}
    )
    """,
    re.VERBOSE,
)

#: What to write for each kind.
_HINTS: Final = {
    "condition": "write {{#name}} and {{/name}}, or {{^name}} for 'else', each alone on its line",
    "loop": "text is never repeated: insert the items as one value, such as bullets(...) or lines(...)",
    "unescaped": "write {{name}}: values are never escaped",
    "comment": "remove the comment",
    "other": "write {{name}} instead, and give it a value: name=...",
}

#: Words of Handlebars that look like the name of a placeholder or a mark.
FOREIGN_WORDS: Final = frozenset(("each", "else", "if", "this", "unless"))


def find_template_syntax(text: str, names: Collection[str]) -> Iterator[tuple[str, int, str]]:
    """
    Yield the first use of each kind of syntax of other template systems: its text, its start, and a hint.

    Args:
        text:
            The text.

        names:
            The names of placeholders and marks, which are not reported.
    """
    reported = set[str]()
    for match in _SYNTAX.finditer(text):
        kind = match.lastgroup or ""
        if kind not in reported and name_in(match[0]) not in names:
            reported.add(kind)
            yield match[0], match.start(), _HINTS[kind]
