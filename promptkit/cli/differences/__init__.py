"""``promptkit diff``: the changes that clients see since an earlier revision of the recipes."""
