"""How long compiling takes, converting the arguments of one request, and long text, in one process."""

from enum import Enum
from time import perf_counter
from timeit import repeat
from typing import Annotated, Any, Literal

from benchmarks import long_text
from promptkit import Arg, Prompt, prompt
from promptkit.compiler.compilation import compile
from promptkit.loader.recipes import Recipes

PROMPTS = 1000


class Tone(Enum):
    """How to say it."""

    PLAIN = "plain"
    STRICT = "strict"


def make(number: int) -> Prompt[..., str]:
    """Return one of many prompts with three parameters."""

    @prompt(name=f"review_{number}")
    def review(
        code: Annotated[str, Arg("The code")],
        language: Literal["python", "rust", "go"] = "python",
        depth: int = 1,
    ) -> str:
        """Review a piece of code."""
        return f"{code}{language}{depth}"

    return review


def compile_new() -> float:
    """Return how long it takes to compile prompts, in seconds. They are new: each is compiled only once."""
    recipes = Recipes(prompts=tuple(make(number) for number in range(PROMPTS)))
    started = perf_counter()
    compile(recipes)
    return perf_counter() - started


def best(work: Any, number: int) -> float:
    """Return the shortest time of five that *work* took, in seconds a call."""
    return min(repeat(work, number=number, repeat=5)) / number


def measure() -> dict[str, float]:
    """Return each figure by what it is, in seconds."""
    arguments = make(0).compiled.arguments
    given = {"code": "fn main() {}", "language": "rust", "depth": "3"}
    return {
        f"compile {PROMPTS} prompts of three parameters": min(compile_new() for _ in range(5)),
        "convert three typed arguments": best(lambda: arguments.read(given), 50_000),
        **long_text.measure(),
    }
