"""
Benchmarks of promptkit, of other servers and of baselines. Each round measures all servers in turn.

``python -m benchmarks`` prints tables, and writes JSON and plots. Absolute times vary between runs, so
compare the ratios.
"""
