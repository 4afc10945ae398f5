"""The loader: finds, imports and watches recipe files, and imports them again."""
