"""Every Python block of the README runs as a test, from top to bottom in one namespace."""

import pytest
from sybil import Example, Sybil
from sybil.evaluators.python import PythonEvaluator
from sybil.parsers.markdown import CodeBlockParser


class Evaluator(PythonEvaluator):
    """
    Runs a block, and every test that it defines.
    """

    def __call__(self, example: Example) -> None:
        """
        Run one block.
        """
        before = set(example.namespace)
        super().__call__(example)
        for name in example.namespace.keys() - before:
            if name.startswith("test_"):
                example.namespace[name]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """
    Add the option that has the fault tests do everything.
    """
    parser.addoption(
        "--whole",
        action="store_true",
        help="run the fault tests and the laws of types whole, which takes minutes, and not shortened",
    )


pytest_collect_file = Sybil(
    parsers=[CodeBlockParser(language="python", evaluator=Evaluator())],
    patterns=["README.md"],
).pytest()
