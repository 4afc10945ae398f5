"""
Batches: one prompt rendered for every row of a table.

`Renderer` renders on existing data engines, and ``promptkit batch`` writes files for the batch APIs of
vendors. promptkit imports neither pyarrow nor an engine.
"""

from promptkit.batch.columns import ColumnError, RowError
from promptkit.batch.renderer import Renderer

__all__ = ["ColumnError", "Renderer", "RowError"]
