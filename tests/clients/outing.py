"""The prompt of the table in docs/clients.md, and the values that a person enters."""

from typing import Final

RECIPE: Final = '''
from typing import Literal

from promptkit import prompt


@prompt(elicit=True)
def outing(topic: str, tone: Literal["warm", "plain"], days: int):
    """Plan an outing."""
    return f"Plan {topic} in {days:03} days, {tone}."
'''

#: Words, quotes and punctuation stay as they are.
ENTERED: Final = {"topic": 'bees and "trees", at noon', "tone": "plain", "days": 3}

PLAN: Final = 'Plan bees and "trees", at noon in 003 days, plain.'

#: The fields of the form.
FIELDS: Final = {
    "topic": {"type": "string"},
    "tone": {"type": "string", "enum": ["warm", "plain"]},
    "days": {"type": "integer", "description": "a whole number"},
}
