"""Seeded random numbers: one stream a name, so that a draw added in one place moves no other."""

import hashlib

import numpy as np

from flashsim.core.errors import check_least


def generator(seed: int, *names: object) -> np.random.Generator:
    """A random generator for one named purpose under a seed.

    Raises InvalidParameterError: a negative seed.

    >>> bool(generator(1, "keys").integers(9) == generator(1, "keys").integers(9))
    True
    """
    check_least(0, seed=seed)
    digest = hashlib.sha256("\0".join(str(name) for name in names).encode()).digest()
    return np.random.default_rng(np.random.SeedSequence([seed, int.from_bytes(digest[:8], "little")]))
