"""The thesis's runs on simulated drives: what drives count is what the pool asked for, and the order of designs survives."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from flashsim.apps.papers.do2012.devices import steady
from flashsim.apps.papers.do2012.runs import LAST, PUBLISHED, tpc_c
from flashsim.apps.papers.do2012.simulations import PARTS, measure_rates, run_on_drives
from flashsim.core.kernel import is_compiled
from flashsim.pools.setup import PoolResult

pytestmark = pytest.mark.skipif(not is_compiled(), reason="takes minutes uncompiled")


@pytest.fixture(scope="module")
def runs() -> dict[str, dict[str, Any]]:
    begun = steady({}, 1000)
    return {
        design: run_on_drives(replace(tpc_c(2000, design, PUBLISHED), scale=0.001, seed=1).as_dict(), {}, {}, begun)
        for design in ("none", "dw", "lc")
    }


def test_drives_do_what_the_pool_asks_for(runs: dict[str, dict[str, Any]]) -> None:
    for design, found in runs.items():
        series = PoolResult.of(found)
        asked = sum(series.total(what) for what in ("disk_reads", "disk_writes", "ssd_reads", "ssd_writes", "cleaner_reads"))
        assert found["requests"] == pytest.approx(asked, rel=0.02)  # some are outstanding at the end
        assert series.total("flash_written") == pytest.approx(8192 * series.total("ssd_writes"), rel=0.02)
        for mean, median, slow, slowest in found["responses"].values():
            assert 0 < median <= slow <= slowest and mean <= slowest
        assert ("SSD read" in found["responses"]) == (design != "none")


def test_disks_serve_no_more_than_alone_and_the_ssd_collects_from_the_first_write_on(runs: dict[str, dict[str, Any]]) -> None:
    alone = measure_rates(steady({}, PARTS), 1)["8 disks, the outer 200 GB"]
    series = {design: PoolResult.of(found) for design, found in runs.items()}
    busy = series["none"].rate("disk_reads", LAST) / alone[0] + series["none"].rate("disk_writes", LAST) / alone[1]
    assert 0.9 < busy < 1.1
    programmed, written = (np.array(series["lc"].counts[name][1:]) for name in ("flash_programmed", "flash_written"))
    assert (programmed > 1.5 * written).all()
    none, dw, lc = (series[design].rate("transactions", LAST) for design in ("none", "dw", "lc"))
    assert none < dw < lc
