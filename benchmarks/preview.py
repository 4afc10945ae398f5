"""
The preview in a browser: first paint with many prompts and cases, response to key presses, and page weight.

``python -m benchmarks.preview`` prints medians, and exits with 1 if a median exceeds its budget.
"""

import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Final

import attrs
from playwright.sync_api import Browser, Page
from rich.console import Console
from rich.table import Table

from benchmarks.browser import NoBrowserError, chromium, serve_preview

PROMPTS: Final = 1_000
CASES: Final = 20
ROUNDS: Final = 20
_RECIPES: Final = Path(__file__).parents[1] / "recipes"

#: The parts of a recipe file with ten prompts.
_FILE: Final = "from typing import Annotated, Literal\nfrom promptkit import Arg, prompt\n"
_PROMPT: Final = '''
@prompt(title="Prompt {number}", tags=["group-{group}"])
def prompt_{number}(
    text: Annotated[str, Arg("The subject")], depth: int = 3, tone: Literal["warm", "cold"] = "warm"
):
    """Write about a subject, with a depth and a tone."""
    return f"# Write\\n\\nWrite about **{{text}}** to depth {{depth}} in a {{tone}} tone.\\n\\n" + RULES
'''
_CASES: Final = "".join(
    f'prompt_7.case("case {number}", "subject {number}", depth={number})\n' for number in range(CASES)
)
_RULES: Final = "\nRULES = '\\n'.join(f'- Rule {number}: use *different* words' for number in range(20))\n"

#: The size of the data that a page has loaded over the network, in kB. Cached files count as 0.
_LOADED: Final = """
() => [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
  .reduce((sum, entry) => sum + entry.transferSize, 0) / 1000
"""

#: The time from the request for the page to its first paint, in milliseconds.
_PAINTED: Final = """
() => new Promise((done) => new PerformanceObserver((list, observer) => {
  for (const entry of list.getEntriesByName("first-contentful-paint")) {
    observer.disconnect();
    done(entry.startTime - performance.getEntriesByType("navigation")[0].fetchStart);
  }
}).observe({ type: "paint", buffered: true }))
"""

#: The times from the input event of a key press until the conversation contains the character, and until it
#: is painted.
_TYPED: Final = """
([character]) => new Promise((done) => {
  const conversation = document.getElementById("conversation");
  const field = document.getElementById("argument-text");
  let started = 0;
  field.addEventListener("input", (event) => (started = event.timeStamp), { once: true });
  const observer = new MutationObserver(() => {
    if (!started || !conversation.textContent.includes(character)) return;
    observer.disconnect();
    const changed = performance.now() - started;
    requestAnimationFrame(() => setTimeout(() => done([changed, performance.now() - started])));
  });
  observer.observe(conversation, { childList: true, subtree: true, characterData: true });
})
"""


@attrs.frozen
class Figure:
    """
    A measured figure, with an optional budget.

    Args:
        title:
            The title of the figure.

        values:
            The measured values.

        budget:
            The maximum of the median; None if there is no budget.

        unit:
            The unit of the values.
    """

    title: str
    values: list[float]
    budget: float | None = None
    unit: str = "ms"

    @property
    def is_within_budget(self) -> bool:
        """
        Whether the median is within the budget.
        """
        return self.budget is None or median(self.values) <= self.budget


def main() -> int:
    """
    Measure, print a table, and return the exit code.
    """
    parser = ArgumentParser("python -m benchmarks.preview", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="number of rounds (default: %(default)s)")
    rounds = parser.parse_args().rounds
    with TemporaryDirectory() as scratch:
        folder = Path(scratch) / "recipes"
        _write(folder)
        try:
            with serve_preview(folder) as address, chromium() as browser:
                figures = list(_measure(browser, address, rounds))
            with serve_preview(_RECIPES) as address, chromium() as browser:
                figures += _weigh(browser, address)
        except NoBrowserError as error:
            Console(stderr=True).print(str(error), markup=False)
            return 2
    _print(figures)
    return 0 if all(figure.is_within_budget for figure in figures) else 1


def _write(folder: Path) -> None:
    folder.mkdir()
    for group in range(PROMPTS // 10):
        prompts = (_PROMPT.format(number=10 * group + index, group=group) for index in range(10))
        cases = "" if group else _CASES
        (folder / f"group_{group}.py").write_text(_FILE + _RULES + "".join(prompts) + cases)


def _measure(browser: Browser, address: str, rounds: int) -> Iterator[Figure]:
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto(address)
    origin = address.partition("/?")[0]
    yield Figure(
        f"the gallery of {PROMPTS:,} prompts, first paint", _measure_paints(page, origin, "/", rounds), 300
    )
    for path, title in (
        ("/prompts/prompt_7?text=a", f"a prompt of {PROMPTS:,}"),
        ("/prompts/prompt_7", f"a prompt with {CASES} cases"),
        ("/prompts/prompt_7?open-tab=cases", f"{CASES} cases"),
    ):
        yield Figure(f"{title}, first paint", _measure_paints(page, origin, path, rounds), 300)
    page.goto(f"{origin}/prompts/prompt_7?text=a", wait_until="networkidle")
    changed, painted = zip(*_measure_keys(page, rounds), strict=True)
    yield Figure("a key press, until the conversation has changed", list(changed), 50)
    yield Figure("a key press, until the change is painted", list(painted))


def _weigh(browser: Browser, address: str) -> Iterator[Figure]:
    """Yield the weights of the pages, measured when static files are already cached."""
    page = browser.new_page()
    page.goto(address, wait_until="networkidle")
    origin = address.partition("/?")[0]
    for path, title in (("/", "the gallery"), ("/prompts/code_review", "a prompt")):
        page.goto(origin + path, wait_until="networkidle")
        yield Figure(f"{title} of the recipes, loaded", [page.evaluate(_LOADED)], 30, "kB")


def _measure_paints(page: Page, origin: str, path: str, rounds: int) -> list[float]:
    times = []
    for _ in range(rounds):
        page.goto("about:blank")
        page.goto(origin + path, wait_until="commit")
        times.append(page.evaluate(_PAINTED))
    page.wait_for_load_state()
    return times


def _measure_keys(page: Page, rounds: int) -> list[tuple[float, float]]:
    """
    Type characters, each after the previous one was painted, and return two times for each character.

    These are the time until the page changed, and the time until the change was painted.
    """
    times = []
    page.locator("#argument-text").press("End")
    text = "a"
    for number in range(rounds):
        text += chr(ord("b") + number % 20)
        seen = page.evaluate_handle(f"(text) => ({{ seen: ({_TYPED})([text]) }})", text)
        page.keyboard.type(text[-1])
        changed, painted = seen.evaluate("({ seen }) => seen")
        times.append((changed, painted))
    return times


def _print(figures: list[Figure]) -> None:
    table = Table("in a browser", "median", "best", "worst", "budget", title=None)
    for figure in figures:
        times = (each(figure.values) for each in (median, min, max))
        budget = (
            ""
            if figure.budget is None
            else f"{figure.budget:.0f}{'' if figure.is_within_budget else ', MISSED'}"
        )
        table.add_row(figure.title, *(f"{time:.0f} {figure.unit}" for time in times), budget)
    Console(width=100).print(table)


if __name__ == "__main__":
    sys.exit(main())
