"""The lines of batch files beside the types that the vendors publish."""

import json

import pytest

from promptkit import cache_point, system, user
from promptkit.batch.lines import LINE_FORMATS
from tests.exports.test_requests import Review
from tests.exports.vendors import validate_request

TURNS = system("Be brief.") + user("Why?")
