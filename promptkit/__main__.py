"""``python -m promptkit`` is the console script."""

import sys

from promptkit.cli import main

sys.exit(main())
