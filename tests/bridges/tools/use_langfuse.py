"""Store prompts with Langfuse's client, whose server is a function here, and fill them with its code."""

import json

import httpx
from langfuse import Langfuse
from langfuse_prompt import store
from tickets import triage

from promptkit import prompt
from promptkit.bridges.langfuse import template


def serve(request: httpx.Request) -> httpx.Response:
    """Answer like the server: with the stored prompt as version 1."""
    sent = {name: value for name, value in json.loads(request.content).items() if value is not None}
    stored = {"type": "text", "version": 1, "config": {}, "tags": [], **sent}
    return httpx.Response(201, json=stored)


def main() -> None:
    """Print the stored prompt, and the client's rendering of it, as JSON."""
    http = httpx.Client(transport=httpx.MockTransport(serve))
    client = Langfuse(
        public_key="pk",
        secret_key="sk",  # noqa: S106 (a dummy)
        base_url="http://127.0.0.1:9",
        httpx_client=http,
        tracing_enabled=False,
    )
    stored = store(client)
    texts = {"product": "a {{ticket}} bank", "ticket": "\\1 {{x}}\nlog in"}
    print(  # noqa: T201 (the test reads it)
        json.dumps(
            {
                "stored": [stored.name, stored.version, stored.labels, stored.tags, stored.variables],
                "form": stored.config["response_format"]["json_schema"]["name"],
                "compiled": stored.compile(**texts),
                "rendered": [
                    {"role": turn.role, "content": str(turn.content)} for turn in triage.render(**texts).shown
                ],
                "text": client.create_prompt(**template(greet)).compile(name="Ann {{name}}"),
            }
        )
    )


@prompt
def greet(name: str) -> str:
    """Greet a person."""
    return f"Say {{hello}} to {name}}}."


if __name__ == "__main__":
    main()
