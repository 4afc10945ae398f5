"""Cases for the prompts of a server, from ``cases.toml``."""

import tomllib
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

from promptkit.catalog.cases import Case
from promptkit.errors.diagnostics import Diagnostic, Location, Owner
from promptkit.errors.exceptions import LoadError
from promptkit.errors.rules import Rule
from promptkit.errors.suggestions import nearest
from promptkit.files.reading import MAX_SOURCE_BYTES, read_regular_file
from promptkit.files.toml import parse_toml

#: The file of saved cases, in the current folder.
CASES_FILE: Final = "cases.toml"


def read_cases(file: Path) -> dict[str, tuple[Case, ...]]:
    """
    Return the cases in a file, by the name of their prompt; ``{}`` if the file does not exist.

    Each table ``[PROMPT."case name"]`` has the arguments of one case, as text.

    Raises:
        LoadError: If the file cannot be read, or does not consist of such tables.
    """
    try:
        data = read_regular_file(file, MAX_SOURCE_BYTES)
        tables = parse_toml(data)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise LoadError(file.name, error.strerror or str(error)) from None
    except ValueError as error:
        raise LoadError(file.name, f"it is not TOML: {error}") from None
    lines = dict(_table_headers(data.decode("utf-8-sig")))
    return {
        prompt: tuple(
            _case(file, lines, (prompt, name), arguments)
            for name, arguments in _table(file, f"[{prompt}]", cases).items()
        )
        for prompt, cases in tables.items()
    }


def lint_cases_file(
    cases: Mapping[str, tuple[Case, ...]], prompts: Mapping[str, Any]
) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each prompt that has cases but does not exist on the server."""
    for name, own_cases in cases.items():
        if name not in prompts and own_cases:
            similar = nearest(name, prompts)
            hint = f"did you mean {similar!r}?" if similar else "remove its cases, or correct the name"
            owner = Owner(f"prompt {name!r}", own_cases[0].location)
            yield owner.diagnostic(Rule.BAD_CASE, "the server has no such prompt", hint)


def _case(file: Path, lines: Mapping[tuple[str, ...], int], key: tuple[str, str], arguments: Any) -> Case:
    name = key[1]
    for argument, value in _table(file, f"[{key[0]}.{name!r}]", arguments).items():
        if not isinstance(value, str):
            reason = f"the argument {argument!r} of the case {name!r} is not text: write it in quotes"
            raise LoadError(file.name, reason)
    return Case(name, Location(str(file), lines.get(key, 0)), partial(dict, arguments), None)


def _table(file: Path, header: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise LoadError(file.name, f'{header} is not a table: write [PROMPT."case name"] above its arguments')
    return value


def _table_headers(text: str) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield the keys of each table header, and the line of the header."""
    for number, line in enumerate(text.splitlines(), 1):
        if not line.lstrip().startswith("["):
            continue
        try:
            table: Any = tomllib.loads(line)
        except ValueError:  # a line of a list, or of a multi-line string
            continue
        keys: list[str] = []
        while isinstance(table, dict) and table:
            key, table = next(iter(table.items()))
            keys.append(key)
        yield tuple(keys), number
