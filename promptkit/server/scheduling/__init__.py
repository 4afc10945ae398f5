"""How requests run: which thread reads, which thread works, and how a stuck one is relieved."""
