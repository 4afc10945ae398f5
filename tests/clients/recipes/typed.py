"""A prompt with typed arguments and completions, which asks for nothing."""

from typing import Annotated, Literal

from promptkit import Arg, prompt


def models(_, arguments):
    """Return the models that suit the chosen language."""
    return ["crab", "ferris"] if arguments.get("language") == "rust" else ["guido", "monty"]


@prompt(title="Write functions", elicit=False)
def typed(
    count: Annotated[int, Arg("How many functions to write")],
    language: Annotated[Literal["python", "ruby", "rust"], Arg("What to write them in")] = "python",
    model: Annotated[str, Arg("Which model writes them", complete=models)] = "guido",
):
    """Ask for functions."""
    return f"{model}, write {count:d} functions in {language}."
