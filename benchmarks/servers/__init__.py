"""
The servers to compare. Each is a program that speaks MCP over stdio.

All servers offer the same prompts with the same text. ``BENCHMARK_PROMPTS`` sets the number of prompts,
except for promptkit, which serves all prompts in its recipes. ``BENCHMARK_PICTURES`` names the folder of the
image. Each server follows its library's guide.
"""
