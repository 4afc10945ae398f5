"""Authorization of HTTP requests by bearer tokens."""
