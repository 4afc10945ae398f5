"""Who may use a server over HTTP, by the options of `serve`."""

from argparse import Namespace
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from promptkit.errors.distribution import install_command
from promptkit.transports.http.listeners import Listener

if TYPE_CHECKING:
    from promptkit.transports.authorization.authorizer import Authorizer

__all__ = ["asks_for_tokens", "authorizer_of", "contradiction"]


def asks_for_tokens(options: Namespace) -> bool:
    """Return whether each request needs a token."""
    return options.issuer is not None or options.token_file is not None


def contradiction(options: Namespace) -> str | None:
    """Return what is wrong with options that do not go together, or lack a library; None if nothing is."""
    if options.issuer is not None and options.token_file is not None:
        return "--issuer and --token-file do not go together: tokens come from one of them"
    if asks_for_tokens(options) and options.no_auth:
        return "--no-auth does not go together with --issuer or --token-file, which ask for tokens"
    if options.require_scope and not asks_for_tokens(options):
        return "--require-scope is about tokens: name --issuer or --token-file, too"
    if options.scopes is not None and asks_for_tokens(options):
        return "--scopes is for servers without tokens: with --issuer or --token-file, tokens say it"
    if options.issuer is not None and find_spec("joserfc") is None:
        return f"--issuer needs joserfc: {install_command('http,auth')}"
    return None


def authorizer_of(options: Namespace, listening: Sequence[Listener]) -> "Authorizer | None":
    """
    Return what asks for tokens; None if nothing does.

    Args:
        options:
            The command line.

        listening:
            Where clients connect. Without a public URL, tokens are for the only address, if it is of this
            machine.

    Raises:
        ValueError: If a URL, a scope or the file of tokens is not one.
    """
    if not asks_for_tokens(options):
        return None
    from promptkit.transports.authorization.authorizer import protect  # most servers ask nobody

    resource = options.public_url or _only_url(listening)
    if options.issuer is not None and resource is None:
        msg = "--issuer needs --public-url: its tokens are for the URL that clients use"
        raise ValueError(msg)
    scopes = options.require_scope or ()
    return protect(resource=resource, issuer=options.issuer, token_file=options.token_file, scopes=scopes)


def _only_url(listening: Sequence[Listener]) -> str | None:
    if len(listening) != 1 or not listening[0].is_local or not listening[0].url.startswith("http"):
        return None
    return f"{listening[0].url}/mcp"
