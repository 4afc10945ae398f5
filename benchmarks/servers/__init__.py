"""
The servers that are compared, each a program that serves over stdio.

All serve the same prompts with the same text. ``BENCHMARK_PROMPTS`` sets the number of prompts, except for
promptkit, which serves all prompts in its recipes. ``BENCHMARK_PICTURES`` names the folder of the image. Each
server follows the guide of its library.
"""
