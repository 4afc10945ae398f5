"""
Benchmarks of promptkit, its peers and two baselines, measured in turns in one run.

``python -m benchmarks`` prints tables and writes JSON and plots. Absolute times vary between runs, so
compare the ratios.
"""
