"""Demand-based page mapping with many short translation pages, so that tiny drives fetch, store and clean them all the time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from flashsim.ssd.ftl import dftl
from tests.flashsim.ssd.drives import PAGE
from tests.property.test_ssd_equality import assert_models_agree
from tests.property.test_ssd_power_cut import test_what_survives as assert_survival


@pytest.fixture(autouse=True)
def short_translation_pages(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A translation page covers eight pages."""
    monkeypatch.setattr(dftl, "STORED_BYTES", PAGE // 8)
    return


@pytest.mark.parametrize("block", range(4))
def test_models_agree(block: int) -> None:
    for seed in range(200 + 10 * block, 210 + 10 * block):
        assert_models_agree(seed, ftl="dftl")


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_models_agree_at_length(block: int) -> None:
    for seed in range(3000 + 50 * block, 3050 + 50 * block):
        assert_models_agree(seed, 200, ftl="dftl")


@pytest.mark.parametrize("seed", range(100, 130))
def test_what_survives_a_power_cut(seed: int) -> None:
    assert_survival(seed, "dftl")
