"""Chance that can be repeated."""

import os
from random import Random

#: From what the chances of a run are drawn; another one may be given.
SEED = os.environ.get("FAULTS_SEED", "20261121")


class Chance(Random):
    """Draws the same again for the same seed; it keeps no secrets."""
