"""A workflow with all kinds of content, for tools with a class for each."""

import wave
from io import BytesIO

from promptkit import Audio, EmbeddedResource, Image, ResourceLink, Workflow, assistant, system, user

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108020000009077"
    "53de0000000c4944415478da63f8cfc0000003010100f70341430000000049454e44ae426082"
)


def record_silence() -> bytes:
    """Return a tenth of a second of silence."""
    buffer = BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(b"\0\0" * 800)
    return buffer.getvalue()


WORKFLOW: Workflow = (
    system("Be brief.")
    + user("Look, and listen.", Image(PIXEL), Audio(record_silence()))
    + user(EmbeddedResource("docs://a.pdf", blob=b"%PDF-1.7\n%%EOF\n"))
    + user(ResourceLink("https://example.com/b.png", name="b", mime_type="image/png"))
    + user(EmbeddedResource("docs://notes", text="Notes."))
    + assistant("I see.")
    + user("What?")
)
