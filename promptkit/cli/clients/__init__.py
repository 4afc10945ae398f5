"""Clients and their configuration: where it lies, how it is written, and how it is changed safely."""
