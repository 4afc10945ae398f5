"""
Benchmarks of promptkit, its peers and two baselines, which are measured in turn in each run.

``python -m benchmarks`` prints tables and writes JSON and plots. Absolute times vary between runs, so
compare the ratios.
"""
