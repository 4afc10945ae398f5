"""Cases for a server's prompts, which are saved in ``cases.toml``."""

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

#: The name of the file with saved cases, which is in the current folder.
CASES_FILE: Final = "cases.toml"


def read_cases(file: Path) -> dict[str, tuple[Case, ...]]:
    """
    Return the cases in a file, keyed by prompt name; ``{}`` if the file does not exist.

    Each table ``[PROMPT."case name"]`` in the file contains the arguments of one case, as text.

    Raises:
        LoadError: If the file cannot be read, or does not consist of such tables.
    """
    try:
        tables = parse_toml(read_regular_file(file, MAX_SOURCE_BYTES))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise LoadError(file.name, error.strerror or str(error)) from None
    except ValueError as error:
        raise LoadError(file.name, f"it is not valid TOML: {error}") from None
    return {
        prompt: tuple(
            _build_case(file, prompt, name, arguments)
            for name, arguments in _require_table(file, f"[{prompt}]", cases).items()
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


def _build_case(file: Path, prompt: str, name: str, arguments: Any) -> Case:
    for argument, value in _require_table(file, f"[{prompt}.{name!r}]", arguments).items():
        if not isinstance(value, str):
            reason = f"the argument {argument!r} of the case {name!r} is not text: write it in quotes"
            raise LoadError(file.name, reason)
    return Case(name, Location(str(file)), partial(dict, arguments), None)


def _require_table(file: Path, header: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise LoadError(
            file.name, f'{header} must be a table: write [PROMPT."case name"] above its arguments'
        )
    return value
