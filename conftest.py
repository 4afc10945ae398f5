"""Every Python block of the README runs as a test, from top to bottom in one namespace."""

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


pytest_collect_file = Sybil(
    parsers=[CodeBlockParser(language="python", evaluator=Evaluator())],
    patterns=["README.md"],
).pytest()
