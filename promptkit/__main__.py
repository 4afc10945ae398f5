"""The entry point of ``python -m promptkit``, which does the same as the command ``promptkit``."""

import sys

from promptkit.cli import main

sys.exit(main())
