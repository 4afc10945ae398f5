"""
Measurements, side by side in one run with the peers and with two floors.

``python -m benchmarks`` prints tables, and writes JSON and plots. Machines are noisy, so read the ratios.
"""
