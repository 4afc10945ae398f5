"""``promptkit diff``: what clients would see differently from an earlier revision of the recipes."""
