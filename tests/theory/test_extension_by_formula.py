"""Designs by formula, which rests on no run, against runs of the same transactions for as many hours, from cold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from flashsim.core.errors import InvalidParameterError
from flashsim.core.kernel import is_compiled
from flashsim.core.units import MICROSECONDS, SECONDS
from flashsim.experiments.formulas.extension import Formula, TransactionReferences, predict_system, service
from flashsim.pools import PoolOptions
from flashsim.pools.devices import DISKS_3_1, SSD_3_1
from flashsim.pools.setup import PoolSetup
from traces.transactions import workload

TPC_C, TPC_E = PoolOptions(partitions=16), PoolOptions(partitions=16, work=727_000, dirty_limit=1)


def both(setup: PoolSetup) -> tuple[float, float]:
    """Transactions a second over the last fifth of the time, by formula and by simulation."""
    stream = setup.stream()
    formula = Formula(setup.system(stream.pages), service(DISKS_3_1), service(SSD_3_1))
    _, found = formula.after(TransactionReferences(stream), setup.time / SECONDS * setup.scale)
    return found.throughput, setup.build().result().rate("transactions", slice(-setup.intervals // 5, None))


@pytest.mark.skipif(not is_compiled(), reason="takes minutes uncompiled")
@pytest.mark.parametrize("design", ["none", "cw", "dw", "tac", "lc"])
def test_tpc_c_by_formula_is_within_six_percent(design: str) -> None:
    formula, simulated = both(PoolSetup("tpc-c:warehouses=2000", design, options=TPC_C, scale=0.001 if design == "lc" else 0.005))
    assert formula == pytest.approx(simulated, rel=0.06)


@pytest.mark.deep
@pytest.mark.skipif(not is_compiled(), reason="takes minutes uncompiled")
@pytest.mark.parametrize("design", ["none", "cw", "dw", "tac", "lc"])
@pytest.mark.parametrize(("text", "given"), [("tpc-c:warehouses=4000", TPC_C), ("tpc-e:database=230GiB", TPC_E)])
def test_large_databases_by_formula(text: str, given: PoolOptions, design: str) -> None:
    formula, simulated = both(PoolSetup(text, design, options=given, scale=0.01))
    assert formula == pytest.approx(simulated, rel=0.15)


def test_formulas_are_refused_what_they_do_not_know() -> None:
    with pytest.raises(InvalidParameterError, match="formulas are of references to single pages"):
        TransactionReferences(workload("tpc-h:scale=0.01")).until(1000)


def test_seconds_after_the_last_reference_change_nothing() -> None:
    setup = PoolSetup("zipf:pages=20000,references=50000,write-share=0.3,each=5", "dw", 24 * 2**20, 40 * 2**20, options=TPC_C)
    stream = workload(setup.workload)
    formula = Formula(setup.system(stream.pages), service(DISKS_3_1), service(SSD_3_1))
    told = TransactionReferences(stream)
    whole = formula.steady(told.until(10**9), 5.0)
    assert told.each == 5 and formula.after(TransactionReferences(stream), 1e9) == whole
    assert 0 < formula.after(TransactionReferences(stream), 1.0)[1].throughput < whole[1].throughput


@pytest.mark.parametrize(
    ("unknown", "is_known"),
    [
        ({}, True),
        ({"policy": "lru"}, True),
        ({"policy": "clock"}, False),
        ({"design": "face"}, False),
        ({"devices": {"disk": "toshiba-5400-320gb", "ssd": "rates"}}, False),
        ({"devices": {"disk": "rates", "ssd": "rates", "log": "rates:read=1000,write=1000"}}, False),
        ({"options": PoolOptions(clients=4, checkpoint=SECONDS)}, False),
        ({"workload": "tpc-h:scale=0.01"}, False),
        ({"time": 100 * MICROSECONDS}, False),  # no reference
        ({"time": 1000 * SECONDS}, False),  # too many references
    ],
)
def test_systems_have_a_formula_where_all_is_known(unknown: dict[str, Any], is_known: bool) -> None:
    setup = PoolSetup("zipf:pages=2000,write-share=0.3,each=5", "dw", 4 * 2**20, 8 * 2**20, SECONDS, options=PoolOptions(clients=4))
    assert (predict_system(replace(setup, **unknown), 10_000) is not None) == is_known
