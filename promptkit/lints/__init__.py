"""The lints of `promptkit check`, which find probable mistakes in recipes that can be served."""
