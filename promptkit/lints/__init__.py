"""Lints of `promptkit check`: what can be served, but is probably a mistake."""
