"""Answers of models: finds the JSON in their text, and converts it to a type."""

from promptkit.answers.parsing import parse_answer
from promptkit.errors import AnswerError, InvalidAnswerPart

__all__ = ["AnswerError", "InvalidAnswerPart", "parse_answer"]
