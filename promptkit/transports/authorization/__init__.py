"""Who may send requests over HTTP: whoever bears a token that somebody has verified."""
