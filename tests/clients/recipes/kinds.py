"""A prompt for each kind of content, and one with several turns."""

from promptkit import Audio, Image, assistant, prompt, user

from ._samples import PNG, WAV
from .shelf import cover, notice


@prompt
def text():
    """Greet the world."""
    return "Say hello to 世界 🌍."


@prompt
def image():
    """Show a picture."""
    return Image(PNG)


@prompt
def audio():
    """Play a sound."""
    return Audio(WAV)


@prompt
def embedded_text():
    """Attach a text."""
    return notice.embed()


@prompt
def embedded_blob():
    """Attach bytes."""
    return cover.embed()


@prompt
def link():
    """Link to a text."""
    return notice.link()


@prompt
def turns():
    """Talk for a while."""
    yield user("Knock, knock.")
    yield assistant("Who's there?")
    yield user("A picture:", Image(PNG))
