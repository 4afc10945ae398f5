"""Text and JSON become typed values, and typed values become text and JSON."""
