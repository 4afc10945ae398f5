"""
Batches: a prompt, rendered for every row of a table.

`Renderer` renders on engines that people run already, and ``promptkit batch`` writes files for the batch
interfaces of vendors. Neither pyarrow nor an engine is imported by promptkit.
"""

from promptkit.batch.renderer import Renderer
from promptkit.batch.rows import ColumnError, RowError

__all__ = ["ColumnError", "Renderer", "RowError"]
