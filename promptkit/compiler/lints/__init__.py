"""What is wrong with recipes though each part of them is valid: warnings of `promptkit check`."""
