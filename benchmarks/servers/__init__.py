"""
The servers that are compared, each a program that serves over stdio.

All serve the same prompts with the same text. ``BENCHMARK_PROMPTS`` sets their number, except for promptkit,
where the recipes do. ``BENCHMARK_PICTURES`` names the folder of the image. Each server follows the guide of
its library.
"""
