"""A file of tokens, for small teams: who bears which one."""

import time
from collections.abc import Callable
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path
from typing import Final

from promptkit.errors.standard_error import say
from promptkit.protocol.principals import Principal
from promptkit.transports.secret_files import InvalidSecretFile, read_secret_file

__all__ = ["MIN_TOKEN", "InvalidTokens", "TokenFile", "read_tokens"]

#: Shorter tokens could be guessed. `secrets.token_urlsafe` makes longer ones.
MIN_TOKEN: Final = 32

_CHARACTERS: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/=")

#: How often it is looked whether the file has changed, in seconds.
_LOOK_EVERY_S: Final = 1.0


class InvalidTokens(ValueError):
    """
    Tokens that cannot be read. The message says where and why, and never shows one.
    """


def read_tokens(text: str) -> tuple[tuple[bytes, Principal], ...]:
    """
    Return the SHA-256 digest of each token in a text, and who bears it.

    Args:
        text:
            A name, a token and any scopes on each line, with blanks between them. A name may come several
            times. What follows a ``#`` is a comment.

    Raises:
        InvalidTokens: If there is none, or one cannot be read, could be guessed, or comes twice.
    """
    found: dict[bytes, Principal] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not (words := line.partition("#")[0].split()):
            continue
        if (fault := _fault(words)) is not None:
            msg = f"line {number}: {fault}"
            raise InvalidTokens(msg)
        digest = sha256(words[1].encode()).digest()
        if digest in found:
            msg = f"line {number}: this token stands on another line, too: everybody needs one of their own"
            raise InvalidTokens(msg)
        found[digest] = Principal(words[0], words[2:])
    if not found:
        msg = "there is no token: write a name and a token on each line"
        raise InvalidTokens(msg)
    return tuple(found.items())


def _fault(words: list[str]) -> str | None:
    if len(words) == 1:
        return "there is one word: write a name, a token and any scopes, with blanks between them"
    if not _CHARACTERS.issuperset(words[1]):
        return "the second word is no token: one has letters, digits and -._~+/= alone"
    if len(words[1]) < MIN_TOKEN:
        return f"the token has {len(words[1])} characters and could be guessed: it needs {MIN_TOKEN}"
    return None


class TokenFile:
    """
    Verifies the tokens of a file. The file is read again when it has changed.

    Args:
        path:
            The file. On POSIX, nobody but its owner and group may have access, and its group may only read.

        clock:
            Returns a time that never goes back, in seconds.

    Raises:
        InvalidTokens: If it cannot be read, or if others may read or change it.
    """

    def __init__(self, path: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._looked = clock()
        self._seen = self._stamp()
        self._tokens = self._read()

    def verify(self, token: str) -> Principal | None:
        """
        Return who bears a token; None if it is not in the file.

        Args:
            token:
                Any text.
        """
        self._look()
        digest, bearer = sha256(token.encode()).digest(), None
        # All are compared, each in constant time: how long this takes says nothing about any of them.
        for known, principal in self._tokens:
            if compare_digest(known, digest):
                bearer = principal
        return bearer

    def _look(self) -> None:
        """Read the file again if it has changed. What cannot be read does not take the place of what was."""
        if self._clock() - self._looked < _LOOK_EVERY_S:
            return
        self._looked = self._clock()
        if (stamp := self._stamp()) == self._seen:
            return
        self._seen = stamp
        try:
            self._tokens = self._read()
        except InvalidTokens as error:
            say(f"{error}; the tokens of before are valid until it is mended")

    def _read(self) -> tuple[tuple[bytes, Principal], ...]:
        try:
            return read_tokens(read_secret_file(self._path, "tokens"))
        except InvalidSecretFile as error:
            raise InvalidTokens(str(error)) from None
        except InvalidTokens as error:
            msg = f"{self._path}: {error}"
            raise InvalidTokens(msg) from None

    def _stamp(self) -> tuple[int, int, int, int] | None:
        try:
            found = Path(self._path).stat()
        except OSError:
            return None
        return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
