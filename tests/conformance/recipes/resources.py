"""The resources that the conformance suite reads."""

import json

from promptkit import resource

from ._samples import PNG


@resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    """A text."""
    return "This is the content of the static text resource."


@resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """A picture."""
    return PNG


@resource("test://template/{id}/data", mime_type="application/json")
def template(id: str) -> str:  # noqa: A002 (the suite's name)
    """A document for each id."""
    return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


@resource("test://watched-resource", mime_type="text/plain")
def watched_resource() -> str:
    """A text to subscribe to."""
    return "This is watched."
