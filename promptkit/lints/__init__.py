"""Lints of `promptkit check`: probable mistakes in recipes that can be served."""
