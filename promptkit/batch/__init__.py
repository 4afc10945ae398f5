"""
Batches: one prompt rendered for every row of a table.

`Renderer` renders the rows inside an existing data engine, and ``promptkit batch`` writes request files for
vendors' batch APIs. Importing this package imports neither pyarrow nor a data engine.
"""

from promptkit.batch.columns import ColumnError, RowError
from promptkit.batch.renderer import Renderer

__all__ = ["ColumnError", "Renderer", "RowError"]
