"""
The servers that are measured beside each other, each a program that speaks on its pipes.

All offer the same prompts and say the same: as many as ``BENCHMARK_PROMPTS`` names (promptkit: as many as its
recipes are), with the pictures that lie in ``BENCHMARK_PICTURES``. Each is written as its library's own guide
has it.
"""
