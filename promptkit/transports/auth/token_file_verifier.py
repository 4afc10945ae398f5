"""Verification of tokens against a file."""

import time
from collections.abc import Callable
from hashlib import sha256
from typing import Final

from promptkit.protocol.principals import Principal, VerifierUnavailableError
from promptkit.transports.secret_files import InvalidSecretsError, SecretFile

#: The characters of a token.
_TOKEN_BYTES: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/="

#: Minimum length of a token. Shorter ones could be guessed. `secrets.token_urlsafe` makes longer ones.
MIN_TOKEN_CHARACTERS: Final = 32

#: How long tokens stay valid after the file was last read, in seconds. The file can be unreadable while it is
#: being written.
TOKENS_VALID_S: Final = 5.0


def is_token(text: bytes) -> bool:
    """Return whether a token has the syntax of RFC 6750."""
    return bool(text) and not text.translate(None, _TOKEN_BYTES)


class TokenFile:
    """
    Verifies tokens against a file, which is reread while in use, so that removed tokens stop working.

    Args:
        path:
            The file. On POSIX, only its owner and its group may have access, and the group only to read.

        clock:
            Returns a monotonic time, in seconds.

    Raises:
        InvalidSecretsError: If the file or a token in it cannot be read, there is no token, a token could be
            guessed or is repeated, or other users can read, change or replace the file.
    """

    def __init__(self, path: str, clock: Callable[[], float] = time.monotonic) -> None:
        consequence = (
            f"all requests are rejected from {TOKENS_VALID_S:g} s after the last successful read "
            "until this is fixed"
        )
        self._file = SecretFile(path, "tokens", read_tokens, consequence, clock)
        if not self._file.current():
            msg = f"{path}: the file contains no token: write a name and a token on each line"
            raise InvalidSecretsError(msg)

    def verify(self, token: str) -> Principal | None:
        """
        Return the principal of a token; None if the token is not in the file.

        Args:
            token:
                Any text.

        Raises:
            VerifierUnavailableError: If the file has been unreadable for a few seconds.
        """
        tokens = self._file.current()
        if self._file.stale_for > TOKENS_VALID_S:
            raise VerifierUnavailableError
        # The time that this takes depends on the digest, which reveals nothing about a token.
        return tokens.get(sha256(token.encode()).digest())


def read_tokens(text: str) -> dict[bytes, Principal]:
    """
    Parse a token file. Return the principal of each token, by the SHA-256 digest of the token.

    Args:
        text:
            One token per line: a name, the token and any scopes, separated by spaces. A name can have several
            lines. Text after a ``#`` is a comment.

    Raises:
        InvalidSecretsError: If a token cannot be read, could be guessed, or is repeated. Its `valid` contains
            the other tokens, so that a typo neither locks out other callers nor readmits removed ones.
    """
    principals: dict[bytes, Principal] = {}
    errors = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not (words := line.partition("#")[0].split()):
            continue
        message = _find_token_error(words)
        digest = b"" if message else sha256(words[1].encode()).digest()
        if digest in principals:
            message = "this token is also on another line: every principal needs a different one"
        if message:
            errors.append(f"line {number}: {message}")
        else:
            principals[digest] = Principal(words[0], words[2:])
    if errors:
        error = InvalidSecretsError(errors[0])
        error.valid = principals or None
        raise error
    return principals


def _find_token_error(words: list[str]) -> str | None:
    if len(words) == 1:
        return "the line has one word: write a name, a token and any scopes, separated by spaces"
    if not is_token(words[1].encode(errors="surrogateescape")):
        return "the second word is not a token: a token contains only letters, digits and -._~+/="
    if (size := len(words[1].rstrip("="))) < MIN_TOKEN_CHARACTERS:  # the padding of base64 is not secret
        return (
            f"the token has {size} characters and could be guessed: it needs at least {MIN_TOKEN_CHARACTERS}"
        )
    if any("\udc80" <= character <= "\udcff" for character in words[0]):
        return "the name is not UTF-8: save the file in that encoding"
    return None
