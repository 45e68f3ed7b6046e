"""Random numbers: a name and a seed give one stream, and other names give others."""

from __future__ import annotations

import numpy as np
import pytest

from flashsim.core.errors import InvalidParameterError
from flashsim.core.rng import generator


def draws(seed: int, *names: object) -> list[int]:
    return generator(seed, *names).integers(2**62, size=8).tolist()


def test_streams_are_named() -> None:
    named = [draws(1, "keys"), draws(1, "order"), draws(2, "keys"), draws(1, "keys", 0), draws(1, "keys0"), draws(1)]
    assert len({tuple(stream) for stream in named}) == len(named)
    assert draws(1, "keys", 0) == draws(1, "keys", "0")


def test_streams_of_two_names_do_not_correlate() -> None:
    one, other = (generator(3, name).random(20_000) for name in ("r", "s"))
    assert abs(np.corrcoef(one, other)[0, 1]) < 5 / np.sqrt(len(one))


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(InvalidParameterError, match="seed: -1, but it must be at least 0"):
        generator(-1, "keys")
