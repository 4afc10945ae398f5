"""A prompt for every row, on Spark: ``python spark.py ROWS.jsonl FOLDER``."""

import sys
from pathlib import Path

from pyspark.sql import SparkSession
from tickets import triage

from promptkit.batch import Renderer

renderer = Renderer(triage, to="openai-chat", model="gpt-5", key="id")
spark = SparkSession.builder.getOrCreate()
spark.sparkContext.addPyFile(str(Path(__file__).with_name("tickets.py")))  # the workers import it
spark.read.json(sys.argv[1]).mapInArrow(renderer.batches, renderer.schema).write.json(sys.argv[2])
