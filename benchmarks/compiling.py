"""The time to compile prompts, to convert a request's arguments, and to fill and serve long text."""

from time import perf_counter
from timeit import repeat
from typing import Annotated, Any, Literal

from benchmarks import long_text
from promptkit import Arg, Prompt, prompt
from promptkit.compiler.compilation import compile
from promptkit.loader.recipes import Recipes

PROMPTS = 1000


def create_prompt(number: int) -> Prompt[..., str]:
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


def time_compilation() -> float:
    """Create prompts, and return the time to compile them, in seconds. Each prompt is compiled only once."""
    recipes = Recipes(prompts=tuple(create_prompt(number) for number in range(PROMPTS)))
    started = perf_counter()
    compile(recipes)
    return perf_counter() - started


def measure_best(function: Any, number: int) -> float:
    """Return the shortest time of a call of *function* in five measurements, in seconds."""
    return min(repeat(function, number=number, repeat=5)) / number


def measure() -> dict[str, float]:
    """Return the figures in seconds, keyed by title."""
    arguments = create_prompt(0).compiled.arguments
    texts = {"code": "fn main() {}", "language": "rust", "depth": "3"}
    return {
        f"compile {PROMPTS} prompts of three parameters": min(time_compilation() for _ in range(5)),
        "convert three typed arguments": measure_best(lambda: arguments.read(texts), 50_000),
        **long_text.measure(),
    }
