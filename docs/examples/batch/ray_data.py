"""A prompt for every row, on Ray Data: ``python ray_data.py ROWS.jsonl FOLDER``."""

import sys

import ray
from tickets import triage

from promptkit.batch import Renderer

renderer = Renderer(triage, to="openai-chat", model="gpt-5")
table = ray.data.read_json(sys.argv[1], lines=True)
table.map_batches(renderer, batch_format="pyarrow").write_json(sys.argv[2])
