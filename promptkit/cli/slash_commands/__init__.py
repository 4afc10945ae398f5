"""Slash commands of other clients: files that hold one prompt each, with holes in a dialect of their own."""
