"""
Benchmarks of promptkit, its peers and two baselines. Each run measures them in turn.

``python -m benchmarks`` prints tables and writes JSON and plots. Absolute times vary between runs, so
compare the ratios.
"""
