"""The compiled set: what clients list, kept on disk, so that it is told before any recipe is imported."""
