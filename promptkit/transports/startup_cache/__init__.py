"""The start-up cache: lists kept on disk, which clients are sent before any recipe is imported."""
