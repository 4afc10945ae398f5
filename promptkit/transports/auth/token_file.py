"""A file of tokens, for small teams: who bears which one."""

import time
from collections.abc import Callable
from hashlib import sha256
from hmac import compare_digest
from typing import Final

from promptkit.protocol.principals import Principal, VerifierUnavailableError
from promptkit.transports.auth.bearer_header import is_token
from promptkit.transports.secret_files import InvalidSecretsError, SecretFile

#: Shorter tokens could be guessed. `secrets.token_urlsafe` makes longer ones.
MIN_TOKEN: Final = 32

#: How long tokens are valid after the file was read, in seconds: while it is written, it may be unreadable.
VALID_S: Final = 5.0


def read_tokens(text: str) -> tuple[tuple[bytes, Principal], ...]:
    """
    Return the SHA-256 digest of each token in a text, and who bears it.

    Args:
        text:
            A name, a token and any scopes on each line, with blanks between them. A name may come several
            times. What follows a ``#`` is a comment.

    Raises:
        InvalidSecretsError: If one cannot be read, could be guessed, or comes twice. Its `rest` is what
            others say: a slip keeps nobody else out, and lets in nobody who is in the file no more.
    """
    found: dict[bytes, Principal] = {}
    faults = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not (words := line.partition("#")[0].split()):
            continue
        fault = _fault(words)
        digest = b"" if fault else sha256(words[1].encode()).digest()
        if digest in found:
            fault = "this token stands on another line, too: everybody needs one of their own"
        if fault:
            faults.append(f"line {number}: {fault}")
        else:
            found[digest] = Principal(words[0], words[2:])
    if faults:
        error = InvalidSecretsError(faults[0])
        error.rest = tuple(found.items()) or None
        raise error
    return tuple(found.items())


def _fault(words: list[str]) -> str | None:
    if len(words) == 1:
        return "there is one word: write a name, a token and any scopes, with blanks between them"
    if not is_token(words[1].encode(errors="surrogateescape")):
        return "the second word is no token: one has letters, digits and -._~+/= alone"
    if (size := len(words[1].rstrip("="))) < MIN_TOKEN:  # what fills up base64 is no secret
        return f"the token has {size} characters and could be guessed: it needs {MIN_TOKEN}"
    if any("\udc80" <= character <= "\udcff" for character in words[0]):
        return "the name is no UTF-8: write the file in that encoding"
    return None


class TokenFile:
    """
    Verifies the tokens of a file. The file is read again and again: who is taken out of it is let in no more.

    Args:
        path:
            The file. On POSIX, nobody but its owner and group may have access, and its group may only read.

        clock:
            Returns a time that never goes back, in seconds.

    Raises:
        InvalidSecretsError: If it cannot be read, holds no token, or if others may read, change or replace
            it.
    """

    def __init__(self, path: str, clock: Callable[[], float] = time.monotonic) -> None:
        until_mended = f"{VALID_S:g} s after it was read last, nobody is let in until this is mended"
        self._file = SecretFile(path, "tokens", read_tokens, until_mended, clock)
        if not self._file.current():
            msg = f"{path}: there is no token: write a name and a token on each line"
            raise InvalidSecretsError(msg)

    def verify(self, token: str) -> Principal | None:
        """
        Return who bears a token; None if it is not in the file.

        Args:
            token:
                Any text.

        Raises:
            VerifierUnavailableError: If no line of the file could be read for some seconds.
        """
        tokens = self._file.current()
        if self._file.stale_for > VALID_S:
            raise VerifierUnavailableError
        digest, bearer = sha256(token.encode()).digest(), None
        # All are compared, each in constant time: how long this takes says nothing about any of them.
        for known, principal in tokens:
            if compare_digest(known, digest):
                bearer = principal
        return bearer
