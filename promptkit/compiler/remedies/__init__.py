"""What to do about a recipe that cannot be imported."""
