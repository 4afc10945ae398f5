"""Models' answers: functions that find the JSON in an answer, and convert it to a type."""

from promptkit.answers.parsing import parse_answer
from promptkit.errors import AnswerError, InvalidAnswerPart

__all__ = ["AnswerError", "InvalidAnswerPart", "parse_answer"]
