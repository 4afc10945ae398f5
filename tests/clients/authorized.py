"""The official Python client gets a token from an issuer, and further tokens if the server requires them."""

from urllib.parse import parse_qsl, urlsplit

import anyio
import httpx2
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata, OAuthToken

#: Timeout for the whole run, in seconds.
RUNNING = 50


class _Storage:
    """Storage for the client's registration and tokens, which records the scopes of each new token."""

    def __init__(self, token):
        self.client = None
        self.tokens = token and OAuthToken(access_token=token, scope="read")
        self.granted = []

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens
        self.granted.append(tokens.scope)

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client_info):
        self.client = client_info


def run(url: str, mode: str, token: str | None) -> dict:
    """
    Return the prompt names, a rendered prompt's text, the revision, and the scopes of each token.

    Args:
        url:
            The server.

        mode:
            ``legacy``, ``auto`` or a revision, as the client accepts it.

        token:
            The client's first token, with one scope, or None.
    """
    return anyio.run(_run, url, mode, token)


async def _run(url, mode, token):
    storage, answers = _Storage(token), []

    async def browse(address):
        """Follow the redirect, as a browser would after the user has consented."""
        async with httpx2.AsyncClient() as browser:
            response = await browser.get(address)
        answers.append(dict(parse_qsl(urlsplit(response.headers["location"]).query)))

    async def return_code():
        return AuthorizationCodeResult(**answers.pop())

    redirect = "http://127.0.0.1:1/callback"
    metadata = OAuthClientMetadata(client_name="script", redirect_uris=[redirect])
    auth = OAuthClientProvider(url, metadata, storage, browse, return_code)
    with anyio.fail_after(RUNNING):
        async with (
            httpx2.AsyncClient(auth=auth) as http,
            Client(streamable_http_client(url, http_client=http), mode=mode) as client,
        ):
            listed = await client.list_prompts()
            got = await client.get_prompt("greet", {"name": "Ada"})
            revision = client.protocol_version
    return {
        "prompts": [prompt.name for prompt in listed.prompts],
        "text": got.messages[0].content.text,
        "revision": revision,
        "granted": storage.granted,
    }
