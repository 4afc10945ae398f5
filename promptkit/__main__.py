"""Runs the console script, for ``python -m promptkit``."""

import sys

from promptkit.cli import main

sys.exit(main())
