"""Slash commands of other clients: one prompt a file, with placeholders in each client's syntax."""
