"""Runs of TPC-H's tests, until they are over."""

from collections.abc import Mapping
from typing import Any

from flashsim.core.errors import FlashsimError
from flashsim.core.units import HOURS, SECONDS
from flashsim.pools.setup import PoolSetup


def run_tests(setup: Mapping[str, Any]) -> dict[str, Any]:
    """Run TPC-H's power test and throughput test: figures, when each kind of transaction ended, and what was counted; JSON-ready."""
    whole = PoolSetup.of(setup)
    run, now, until = whole.build(), 0, whole.time * whole.scale
    while not run.is_over:
        if now >= until:
            raise FlashsimError(f"{whole.workload}: it has not ended after {whole.time / HOURS:g} h")
        now += round(HOURS * whole.scale)
        run.run(now)
    ends = {kind: time / SECONDS for kind, time in run.ended.items()}
    return {"figures": run.figures(), "ended": ends, "counts": run.counts}
