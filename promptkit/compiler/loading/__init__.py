"""Files become recipes: they are found, imported, watched and imported again."""
