"""A prompt for every row, by the processes of Dask: ``python dask_frame.py ROWS.jsonl FOLDER``."""

import sys

import dask.dataframe as dd
from tickets import triage

from promptkit.batch import Renderer

if __name__ == "__main__":  # these processes import this file
    renderer = Renderer(triage, to="openai-chat", model="gpt-5")
    table = dd.read_json(sys.argv[1], lines=True, blocksize=1_000_000)
    table.map_partitions(renderer).to_json(sys.argv[2], compute_kwargs={"scheduler": "processes"})
