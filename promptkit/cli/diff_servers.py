"""The sides of a comparison of two servers, or of the lists in a file with a server."""

from argparse import Namespace
from typing import Any, Final

import msgspec
from msgspec import Struct

from promptkit.catalog.catalog import Catalog
from promptkit.cli.calls import saved_calls
from promptkit.cli.diff_sides import Answer, Calls, ItemState, SentCall, answer_of, key_of
from promptkit.cli.servers import open_named_server
from promptkit.errors.exceptions import LoadError
from promptkit.files.reading import read_named_file
from promptkit.foreign.catalog import catalog_of
from promptkit.foreign.listing import SERVER, parse_listing
from promptkit.server.lookup import name_of

#: Limit for a file with lists and texts, in bytes.
_MAX_BYTES: Final = 64 * 1024 * 1024

_NO_CASE: Final = "it has no case in cases.toml"


class _Texts(Struct):
    """The texts of cases in a file, by prompt and case."""

    texts: dict[str, dict[str, str]] = {}


def compare_servers(options: Namespace) -> tuple[list[Answer], list[Answer]]:
    """
    Return the answers of the old and of the new side, for the cases in ``cases.toml``.

    Args:
        options:
            One or two servers, and the file of the old side if there is only one.

    Raises:
        LoadError: If a server cannot be reached, or the file cannot be read.
    """
    has_two = len(options.servers) > 1
    with open_named_server(options, len(options.servers) - 1) as new:
        calls: Calls = {
            key_of(item): {call.case_name: SentCall(call.sent, "case") for call in saved_calls(item)}
            for item in new.catalog.declared
        }
        new_answer = _answer(new.catalog, calls)
    if has_two:
        with open_named_server(options, 0) as old:
            return [_answer(old.catalog, calls)], [new_answer]
    for key, state in new_answer.items.items():
        if key.startswith("skill "):  # a file has only the digests
            state.files = {path: (digest, None) for path, (digest, _) in state.files.items()}
    return [_answer_in_file(options.revision)], [new_answer]


def _answer(catalog: Catalog, calls: Calls) -> Answer:
    answer = answer_of(catalog, calls)
    for state in answer.items.values():
        state.without_calls = _NO_CASE if state.without_calls else None
    answer.calls = {key: cases for key, cases in calls.items() if cases}
    answer.outcomes = {key: texts for key, texts in answer.outcomes.items() if texts}
    return answer


def _answer_in_file(path: str) -> Answer:
    """Return the answer of the server whose lists and texts are in a file."""
    try:
        data: Any = msgspec.json.decode(read_named_file(path, _MAX_BYTES))
        texts = msgspec.convert(data, _Texts).texts
        listing = parse_listing(data)
    except OSError as error:
        raise LoadError(path, error.strerror or str(error)) from None
    except (ValueError, RecursionError) as error:
        reason = f"it was not written by promptkit list --json --texts: {error}"
        raise LoadError(path, reason) from None
    catalog = catalog_of(listing)
    answer = _answer(catalog, {})
    for item in catalog.declared:
        if cases := texts.get(name_of(item)):
            answer.outcomes[key_of(item)] = cases
            answer.calls[key_of(item)] = {name: SentCall("", "case") for name in cases}
    for skill in listing.skills:
        folder = skill.uri.rpartition("/")[0]
        files = skill.resources if isinstance(skill.resources, list) else []
        digests = {
            file.uri.removeprefix(f"{folder}/"): (file.digest.removeprefix("sha256:"), None) for file in files
        }
        state = ItemState((SERVER.file, 0), {}, [], {}, dict(digests))
        answer.items[f"skill {skill.uri!r}"] = state
    return answer
