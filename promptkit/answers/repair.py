"""
Repair of malformed JSON with json-repair, the extra ``answers``.

The library tries several interpretations of a malformed text, which can take quadratic time or worse. It
reads the text character by character, so a limit on the characters that it reads also limits its time. The
time to build one long string still grows with the square of its length, so the length is limited as well.
"""

import json
from typing import Any, Final, Self, SupportsIndex

import msgspec

#: The maximum length of malformed JSON, in characters.
_MAX_LENGTH: Final = 128 * 1024

#: The maximum number of characters that the library reads for one answer. For usual mistakes, it reads each
#: character twice.
_MAX_READ: Final = 8 * _MAX_LENGTH


class RepairError(Exception):
    """Malformed JSON cannot be repaired unambiguously, or not within the limit."""


class Repairer:
    """Repairs the values in one answer. All share one limit."""

    def __init__(self) -> None:
        self._left = _MAX_READ

    def read(self, length: int) -> None:
        """Count that *length* characters are read. Raises `RepairError` above the limit."""
        self._left -= length
        if self._left < 0:
            msg = "too many interpretations"
            raise RepairError(msg)

    def repair(self, text: str) -> Any:
        """
        Return the value that is probably meant by malformed JSON.

        Values that are missing are not invented.

        Raises:
            RepairError: If there is no such value.

            ModuleNotFoundError: If the library is not installed.
        """
        import json_repair  # an extra

        if len(text) > _MAX_LENGTH:
            msg = f"more than {_MAX_LENGTH:,} characters"
            raise RepairError(msg)
        try:
            value = json_repair.loads(_MeteredText(text, self), skip_json_loads=True, strict=True)
            return msgspec.json.decode(json.dumps(value))  # rejects lone surrogates
        except Exception as error:  # noqa: BLE001 (the library has bugs, such as failing assertions)
            raise RepairError(str(error)) from None


class _MeteredText(str):
    """A text that reports how many characters of it are read."""

    __slots__ = ("_repairer",)
    _repairer: Repairer

    def __new__(cls, text: str, repairer: Repairer) -> Self:
        metered = super().__new__(cls, text)
        metered._repairer = repairer
        return metered

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        part = super().__getitem__(key)
        self._repairer.read(len(part))
        return part if len(part) == 1 else _MeteredText(part, self._repairer)

    def __add__(self, other: str) -> str:
        return _MeteredText(super().__add__(other), self._repairer)
