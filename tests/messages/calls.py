"""Calls that raise an exception, by package."""

from pathlib import Path
from typing import Annotated, Literal

from promptkit import Arg, Audio, EmbeddedResource, asgi, assistant, prompt, resource, system, user
from promptkit.catalog.uri_templates import URITemplate
from promptkit.exports import MESSAGE_FUNCTIONS
from promptkit.protocol.key_ring import KeyRing
from promptkit.protocol.limits import Limits
from promptkit.protocol.principals import Principal
from promptkit.testing import Client

#: A wave file without samples.
WAV = b"RIFF\x24\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0data\0\0\0\0"


def returning(value):
    """Return a call that renders a prompt which returns a value."""

    @prompt
    def returns():
        return value

    return returns.render


def yielding(*values):
    """Return a call that renders a prompt which yields values."""

    @prompt
    def yields():
        yield from values

    return yields.render


@prompt
def review(
    code: str,
    depth: int = 1,
    tone: Literal["kind", "curt"] = "kind",
    team: Annotated[str, Arg(env="PROMPTKIT_NO_SUCH_VARIABLE")] = "core",
):
    """Ask for a review."""
    return f"{code} {depth} {tone} {team}"


@prompt
def required(team: Annotated[str, Arg(env="PROMPTKIT_NO_SUCH_VARIABLE")]):
    """Take a required argument from the environment."""
    return team


@resource("docs://number")
def number() -> str:
    """Return another type."""
    return 1


#: Renderings that no vendor can represent.
UNSUPPORTED = {
    "an archive": user(EmbeddedResource("docs://zip", blob=b"PK", mime_type="application/zip")),
    "assistant audio": user("x") + assistant(Audio(WAV)),
}

#: For each package, calls by a label.
CALLS = {
    "catalog": {
        "returns an int": returning(5),
        "returns a list with an int": returning(["x", 5]),
        "returns nothing": returning(None),
        "yields an int": yielding("x", 5),
        "only a system part": returning(system("Be brief.")),
        "missing": review.render_wire,
        "unknown, near": lambda: review.render_wire({"code": "x", "dept": "1"}),
        "unknown": lambda: review.render_wire({"code": "x", "nothing": "1"}),
        "another type": lambda: review.render_wire({"code": "x", "depth": "many"}),
        "another choice": lambda: review.render_wire({"code": "x", "tone": "kidn"}),
        "several": lambda: review.render_wire({"depth": "many", "tone": ""}),
        "environment": required.render_wire,
        "resource of another type": number.embed,
        "no template": lambda: URITemplate("x:{a b}"),
        "no text of a refusal": lambda: review.case("a", "x").refused(3),
    },
    "protocol": {
        "limit of 0": lambda: Limits(line=0),
        "short key": lambda: KeyRing([b"short"]),
        "subject with a surrogate": lambda: Principal("\ud800"),
    },
    "exports": {
        f"{form}: {label}": lambda form=form, workflow=workflow: MESSAGE_FUNCTIONS[form](workflow)
        for label, workflow in UNSUPPORTED.items()
        for form in MESSAGE_FUNCTIONS
    },
    "transports": {
        "public URL": lambda: asgi.app("recipes", public_url="prompts.example"),
        "origin": lambda: asgi.app("recipes", origins=["chat.example"]),
        "scopes without tokens": lambda: asgi.app("recipes", required_scopes=["read"]),
        "issuer without URL": lambda: asgi.app("recipes", issuer="https://a.example"),
        "issuer and file": lambda: asgi.app("recipes", issuer="https://a.example", token_file=Path("tokens")),
        "issuer without TLS": lambda: asgi.app(
            "recipes", issuer="http://a.example", public_url="https://prompts.example/mcp"
        ),
        "token file": lambda: asgi.app("recipes", token_file=Path("nothing")),
    },
    "testing": {
        "no target": lambda: Client("nothing"),
        "revision": lambda: Client("recipes", revision="2025-6-18"),
        "unknown prompt": lambda: Client("recipes").get_prompt("riview"),
        "unknown resource": lambda: Client("recipes").read_resource("docs://pag"),
        "closed": lambda: _closed_client().list_prompts(),
    },
}


def _closed_client():
    with Client("recipes") as client:
        return client
