"""Demand-based page mapping with many short translation pages, so that tiny drives fetch, store and clean them all the time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from flashsim.core.errors import ReadOnlyDeviceError
from flashsim.core.host_queue import one_command_each
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.ftl import dftl
from flashsim.testing.flash_drives import PAGE, check_invariants, drive_for, random_drive, random_workload, serve_all
from tests.property.test_ssd_equality import assert_models_agree
from tests.property.test_ssd_power_cut import test_what_survives as assert_survival
from tests.tiers import seeds


@pytest.fixture(autouse=True)
def short_translation_pages(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A translation page covers eight pages."""
    monkeypatch.setattr(dftl, "STORED_BYTES", PAGE // 8)
    return


@pytest.mark.parametrize("block", range(4))
def test_models_agree(block: int) -> None:
    for seed in range(200 + 10 * block, 210 + 10 * block):
        assert_models_agree(seed, ftl="dftl")


@pytest.mark.deep
@pytest.mark.parametrize("block", range(10))
def test_models_agree_at_length(block: int) -> None:
    for seed in range(3000 + 50 * block, 3050 + 50 * block):
        assert_models_agree(seed, 200, ftl="dftl")


@pytest.mark.parametrize("seed", seeds(0, 10, deep=20))
def test_what_survives_a_power_cut(seed: int) -> None:
    assert_survival(seed, "dftl")


@pytest.mark.parametrize("seed", range(12))
def test_cuts_while_blocks_wear_out(seed: int) -> None:
    """Translation blocks retire like others, and a read-only drive is still in order."""
    parameters = drive_for("dftl", replace(random_drive(seed), endurance=8, write_buffer=0, power_protected=False))
    engine = SsdEngine(parameters)
    for again in range(4):
        requests, at = random_workload(seed + 1000 * again, parameters, 60)
        requests["dependency"] = -1
        engine.submit(requests, one_command_each(requests), np.sort(at) + engine.now)
        with contextlib.suppress(ReadOnlyDeviceError):  # said once for each call that meets refused writes
            engine.advance(engine.now + int(at.max()) // 2 + 100, every=True)
        with contextlib.suppress(ReadOnlyDeviceError):
            engine.advance(engine.now, every=True)
        before = engine.statistics()["read_only"]
        engine.power_cut(engine.now)
        check_invariants(engine)
        assert engine.statistics()["read_only"] == before  # recovery wears nothing out
        serve_all(engine, requests, engine.now)
        check_invariants(engine)
