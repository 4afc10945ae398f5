"""Parsers of clients' slash commands: one prompt per file, with placeholders in the syntax of the client."""
