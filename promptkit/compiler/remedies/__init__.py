"""Remedies: what an author can do about a recipe that cannot be imported."""
