"""
Measurements, side by side in one run with peers and with a bare loop.

``python -m benchmarks`` prints a table. Machines are noisy, so read the ratios.
"""
