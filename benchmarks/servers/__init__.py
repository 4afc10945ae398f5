"""The servers that promptkit is measured beside, each a program that speaks on its pipes."""
