"""TPC-H's power test and throughput test on the thesis's systems."""

from collections.abc import Mapping
from typing import Any

from experiments.runs.pools import HOUR, PoolSetup, pool_run
from flashsim.core.errors import FlashsimError
from flashsim.core.units import SECONDS
from traces.transactions import TransactionWorkload


def run_tests(setup: Mapping[str, Any], scale: float, seed: int) -> dict[str, Any]:
    """Run power test and throughput test: their figures, when each kind of transaction ended, and what was counted; JSON-ready."""
    whole = PoolSetup(**setup)
    run, until, _ = pool_run(whole, scale, seed)
    now, step = 0, round(HOUR * scale)
    while not run.is_over:
        if now >= until:
            raise FlashsimError(f"{whole.workload}: it has not ended after {whole.hours:g} h")
        now += step
        run.run(now)
    test = whole.transactions(scale, seed)
    assert isinstance(test, TransactionWorkload)
    ended = {kind: time / SECONDS for kind, time in run.ended.items()}
    return {"figures": test.figures(ended), "ended": ended, "counts": run.counts}
