"""Verification of tokens against a token file."""

import time
from collections.abc import Callable
from hashlib import sha256
from typing import Final

from promptkit.protocol.principals import Principal, VerifierUnavailableError
from promptkit.transports.secret_files import InvalidSecretsError, SecretFile

#: The characters that a token can contain.
_TOKEN_BYTES: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/="

#: Minimum length of a token, because shorter tokens could be guessed. By default, `secrets.token_urlsafe`
#: returns longer ones.
MIN_TOKEN_CHARACTERS: Final = 32

#: How long tokens stay valid after the last successful read of the file, in seconds. While the file is being
#: written, reading it can fail.
TOKENS_VALID_S: Final = 5.0


def is_token(text: bytes) -> bool:
    """Return whether *text* has the syntax that RFC 6750 defines for tokens."""
    return bool(text) and not text.translate(None, _TOKEN_BYTES)


class TokenFile:
    """
    Verifies tokens against a file, which is reread while in use, so that removed tokens stop working.

    Args:
        path:
            The path of the file. On POSIX, only the file's owner and group may have access, and the group
            must not have write access.

        clock:
            Returns a monotonic time, in seconds.

    Raises:
        InvalidSecretsError: If the file cannot be read, contains no tokens, or contains a token that is
            invalid, could be guessed or is repeated. Also if other users can read, change or replace the
            file.
    """

    def __init__(self, path: str, clock: Callable[[], float] = time.monotonic) -> None:
        consequence = (
            "until this is fixed, all requests are rejected, "
            f"starting {TOKENS_VALID_S:g} s after the last successful read"
        )
        self._file = SecretFile(path, "tokens", parse_tokens, consequence, clock)
        if not self._file.current():
            msg = f"{path}: the file contains no tokens: write a name and a token on each line"
            raise InvalidSecretsError(msg)

    def verify(self, token: str) -> Principal | None:
        """
        Return the principal of a token, or None if the token is not in the file.

        Args:
            token:
                Any text.

        Raises:
            VerifierUnavailableError: If the file has been unreadable for a few seconds.
        """
        tokens = self._file.current()
        if self._file.stale_for > TOKENS_VALID_S:
            raise VerifierUnavailableError
        # How long this takes depends on the digest, which reveals nothing about a token.
        return tokens.get(sha256(token.encode()).digest())


def parse_tokens(text: str) -> dict[bytes, Principal]:
    """
    Parse a token file, and return the principal of each token, keyed by the token's SHA-256 digest.

    Args:
        text:
            One token per line: a name, the token and any scopes, separated by spaces. Several lines can have
            the same name. Text after a ``#`` is a comment.

    Raises:
        InvalidSecretsError: If a line cannot be parsed, or if a token could be guessed or is repeated. The
            error's `valid` contains the other tokens, so that a typo neither locks out other callers nor
            readmits removed ones.
    """
    principals: dict[bytes, Principal] = {}
    errors = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not (words := line.partition("#")[0].split()):
            continue
        message = _find_token_error(words)
        digest = b"" if message else sha256(words[1].encode()).digest()
        if digest in principals:
            message = "this token is also on another line: use a different token for each principal"
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
        return "the line has only one word: write a name, a token and any scopes, separated by spaces"
    if not is_token(words[1].encode(errors="surrogateescape")):
        return "the second word is not a token: a token can contain only letters, digits and -._~+/="
    if (size := len(words[1].rstrip("="))) < MIN_TOKEN_CHARACTERS:  # the padding of base64 is not secret
        return f"the token could be guessed: use at least {MIN_TOKEN_CHARACTERS} characters instead of {size}"
    if any("\udc80" <= character <= "\udcff" for character in words[0]):
        return "the name is not UTF-8: save the file as UTF-8"
    return None
