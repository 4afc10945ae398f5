"""A prompt for every row of a relation of DuckDB: ``python duckdb_relation.py ROWS.jsonl FILE``."""

import sys

import duckdb
from tickets import triage

from promptkit.batch import Renderer

renderer = Renderer(triage, to="openai-chat", model="gpt-5")
rendered = renderer(duckdb.read_json(sys.argv[1]))  # a Table of pyarrow, which DuckDB reads by its name
duckdb.sql(f"COPY rendered TO '{sys.argv[2]}' (FORMAT json)")
