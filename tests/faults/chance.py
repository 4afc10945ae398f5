"""Reproducible randomness."""

import os
from random import Random

#: The seed of a run; `FAULTS_SEED` overrides it.
SEED = os.environ.get("FAULTS_SEED", "20261121")


class Chance(Random):
    """A random generator with a fixed seed; it is not used for secrets."""
