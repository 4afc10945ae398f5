"""Types of arguments: text and JSON are converted to typed values, and back."""
