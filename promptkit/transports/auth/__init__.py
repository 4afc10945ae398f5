"""Who may send requests over HTTP: bearers of tokens that were verified."""
