"""A prompt for every row of a frame of pandas: ``python pandas_frame.py ROWS.jsonl FILE``."""

import sys

import pandas as pd
from tickets import triage

from promptkit.batch import Renderer

renderer = Renderer(triage, to="openai-chat", model="gpt-5")
table = pd.read_json(sys.argv[1], lines=True)
renderer(table).to_json(sys.argv[2], orient="records", lines=True)
