"""Puts together what asks for tokens, of whichever kind they are."""

from collections.abc import Iterable

from promptkit.protocol.http.bearer import BearerScheme
from promptkit.protocol.principals import TokenVerifier
from promptkit.transports.authorization.authorizer import Authorizer

__all__ = ["protect"]


def protect(
    *,
    resource: str | None = None,
    issuer: str | None = None,
    token_file: str | None = None,
    verifier: TokenVerifier | None = None,
    scopes: Iterable[str] = (),
) -> Authorizer | None:
    """
    Return what asks for tokens; None if nothing does.

    Args:
        resource:
            The URL that clients use, which an issuer makes tokens for.

        issuer:
            Who makes tokens. They are JSON Web Tokens unless there is a verifier.

        token_file:
            A file of tokens.

        verifier:
            Verifies tokens of any other kind.

        scopes:
            What every token has to allow.

    Raises:
        ValueError: If a URL or scope is not one, if the file cannot be read, or if these do not go together.

        ModuleNotFoundError: If tokens of an issuer are to be verified without the extra ``auth``.
    """
    if token_file is not None and (issuer is not None or verifier is not None):
        msg = "tokens come from a file, or from somebody else, but not from both"
        raise ValueError(msg)
    scheme = BearerScheme(resource, issuer, scopes)
    if verifier is None and token_file is not None:
        from promptkit.transports.authorization.token_file import TokenFile  # most servers have none

        verifier = TokenFile(token_file)
    if verifier is None and issuer is not None and resource is not None:
        from promptkit.transports.authorization.issuer import Issuer  # it takes the extra
        from promptkit.transports.authorization.jwt_verifier import JwtVerifier

        verifier = JwtVerifier(Issuer(issuer), resource)
    if verifier is not None:
        return Authorizer(scheme, verifier)
    if scopes:
        msg = "scopes are those of tokens: name an issuer, a file of tokens or a verifier, too"
        raise ValueError(msg)
    return None
