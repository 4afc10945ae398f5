"""Parsing of models' answers: `parse_answer` finds the JSON in an answer and converts it to a type."""

from promptkit.answers.parsing import parse_answer
from promptkit.errors import AnswerError, InvalidAnswerPart

__all__ = ["AnswerError", "InvalidAnswerPart", "parse_answer"]
