"""A prompt for every row, by Polars as a stream: ``python polars_stream.py ROWS.jsonl FILE``."""

import sys

import polars as pl
from tickets import triage

from promptkit.batch import Renderer

renderer = Renderer(triage, to="openai-chat", model="gpt-5")
kind = pl.Struct({"request": pl.String, "error": pl.String})
said = pl.struct(pl.all()).map_batches(renderer, return_dtype=kind, is_elementwise=True)
pl.scan_ndjson(sys.argv[1]).with_columns(said.struct.unnest()).sink_ndjson(sys.argv[2])
