"""Transports: the only code that reads, writes or waits."""
