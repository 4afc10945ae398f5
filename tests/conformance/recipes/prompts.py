"""The prompts that the conformance suite asks for."""

from promptkit import EmbeddedResource, Image, prompt, user

from ._samples import PNG


@prompt
def test_simple_prompt():
    """A prompt without arguments."""
    return "This is a simple prompt for testing."


@prompt
def test_prompt_with_arguments(arg1: str, arg2: str):
    """A prompt with two arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@prompt
def test_prompt_with_embedded_resource(resourceUri: str):  # noqa: N803 (the suite's name)
    """A prompt with an embedded resource."""
    text = "Embedded resource content for testing."
    yield user(EmbeddedResource(resourceUri, text=text, mime_type="text/plain"))
    yield user("Please process the embedded resource above.")


@prompt
def test_prompt_with_image():
    """A prompt with an image."""
    yield user(Image(PNG))
    yield user("Please analyze the image above.")


@prompt(elicit=True)
def test_input_required_result_prompt(context: str):
    """A prompt that asks for its argument."""
    return f"Use this context: {context}"
