"""
The servers to compare. Each is a program that speaks MCP over stdio.

All servers offer the same prompts with the same text. ``BENCHMARK_PROMPTS`` sets the number of prompts,
except for promptkit, which serves all prompts in its recipes. ``BENCHMARK_PICTURES`` is the folder that
contains the image. Each server is written as the guide of its library recommends.
"""
