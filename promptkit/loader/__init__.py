"""The loader: finds, imports, watches and reloads recipe files."""
