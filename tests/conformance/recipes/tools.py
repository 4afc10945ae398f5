"""The tools that the conformance suite calls."""

import time
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Literal, TypeAlias

from promptkit import Audio, Context, EmbeddedResource, Image, PromptError, Tool, prompt, user

from ._samples import PNG, WAV

#: A recipe that is written while the server runs, which reloads it.
_WRITTEN = Path(__file__).with_name("written.py")


@prompt
def test_simple_text():
    """Return a text."""
    return "This is a simple text response for testing."


@prompt
def test_image_content():
    """Return an image."""
    return Image(PNG)


@prompt
def test_audio_content():
    """Return an audio clip."""
    return Audio(WAV)


@prompt
def test_embedded_resource():
    """Return an embedded resource."""
    text = "This is an embedded resource content."
    return EmbeddedResource("test://embedded-resource", text=text, mime_type="text/plain")


@prompt
def test_multiple_content_types():
    """Return a text, an image and an embedded resource."""
    data = EmbeddedResource(
        "test://mixed-content-resource", text='{"test":"data","value":123}', mime_type="application/json"
    )
    return user("Multiple content types test:", Image(PNG), data)


@prompt
def test_error_handling():
    """Always fail."""
    msg = "This tool intentionally returns an error for testing"
    raise PromptError(msg)


@prompt
def test_tool_with_progress(context: Context):
    """Report progress."""
    for step in (0, 50, 100):
        context.report_progress(step, 100)
        time.sleep(0.05)
    return "It is done."


@prompt
def test_logging_tool():
    """Return a text without logging to the client."""
    return "Nothing was logged."


@prompt
def test_missing_capability(context: Context):
    """Require a capability that few clients have."""
    context.require("sampling")
    return "The client can do it."


@prompt(elicit=True)
def test_streaming_elicitation(answer: str):
    """Ask for an answer."""
    return f"The answer was {answer}."


@prompt(elicit=True)
def test_input_required_result_elicitation(name: str):
    """Ask for a name."""
    return f"Hello, {name}!"


@prompt(elicit=True)
def test_input_required_result_request_state(ok: bool):  # noqa: FBT001 (the suite's argument)
    """Ask for a confirmation, and check the returned state."""
    return f"state-ok: {ok}"


@prompt(elicit=True)
def test_input_required_result_tampered_state(ok: bool):  # noqa: FBT001 (the suite's argument)
    """Ask for a confirmation, and reject an altered state."""
    return f"It was not changed: {ok}"


@prompt(elicit=True)
def test_input_required_result_multi_round(color: str):
    """Ask for a color, again if the first answer is incomplete."""
    return f"The color is {color}."


@prompt(elicit=True)
def test_input_required_result_capabilities(answer: str):
    """Ask only clients with forms."""
    return f"The answer was {answer}."


@prompt(elicit=True)
def test_elicitation(message: str, username: str, email: str):
    """Ask for a name and an address."""
    return f"{message}: {username}, {email}"


class Titled(Enum):
    """Choices with meanings."""

    VALUE1 = "value1"
    "The first option"

    VALUE2 = "value2"
    "The second option"


Untitled: TypeAlias = Literal["option1", "option2", "option3"]


@prompt(elicit=True)
def test_elicitation_sep1330_enums(
    untitledSingle: Untitled,  # noqa: N803 (the suite's names)
    titledSingle: Titled,  # noqa: N803
    untitledMulti: list[Untitled],  # noqa: N803
    titledMulti: list[Titled],  # noqa: N803
):
    """Ask for choices with and without titles, one and several."""
    return f"{untitledSingle}, {titledSingle}, {untitledMulti}, {titledMulti}"


@prompt(name="test_elicitation_sep1034_defaults", elicit="always")
def elicitation_defaults(
    name: str = "John Doe",
    age: int = 30,
    score: float = 95.5,
    status: Literal["active", "inactive", "pending"] = "active",
    verified: bool = True,  # noqa: FBT001, FBT002 (the suite's argument)
):
    """Ask for values, and show their defaults."""
    return f"{name}, {age}, {score}, {status}, {verified}"


@dataclass
class address:  # noqa: N801 (the suite's name)
    """An address with a forwarding address: only recursive types become definitions."""

    street: str = ""
    city: str = ""
    forwarding: "address | None" = None


@prompt
def json_schema_2020_12_tool(
    name: str = "",
    address: address | None = None,
    contactMethod: Literal["phone", "email"] = "phone",  # noqa: N803 (the suite's name)
):
    """Accept arguments whose schema has definitions."""
    return f"{name}, {address}, by {contactMethod}"


def _write_a_recipe() -> str:
    number = time.time_ns()  # also differs after a reload
    lines = ("from promptkit import prompt", "@prompt", "def written():", f'    """Version {number}."""')
    _WRITTEN.write_text("\n".join((*lines, '    return "It was written."', "")))
    return f"Version {number} is written."


@prompt(tool=Tool(read_only=False, idempotent=False))
def test_trigger_tool_change():
    """Change the list of tools."""
    return _write_a_recipe()


@prompt(tool=Tool(read_only=False, idempotent=False))
def test_trigger_prompt_change():
    """Change the list of prompts."""
    return _write_a_recipe()
