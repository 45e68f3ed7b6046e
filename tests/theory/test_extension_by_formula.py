"""Designs by formula, which rests on no run, against runs of the same transactions for as many hours, from cold."""

from __future__ import annotations

import pytest

from flashsim.core.errors import InvalidParameterError
from flashsim.core.kernel import compiled
from flashsim.core.units import SECONDS
from flashsim.pools.devices import DISKS_3_1, SSD_3_1
from flashsim.pools.setup import PoolSetup
from flashsim.studies.formulas.extension import Formula, TransactionReferences, service
from traces.transactions import workload

TPC_C, TPC_E = {"partitions": 16}, {"partitions": 16, "work": 727_000, "dirty_limit": 1}


def both(setup: PoolSetup) -> tuple[float, float]:
    """Transactions a second over the last fifth of the time, by formula and by simulation."""
    stream = setup.stream()
    formula = Formula(setup.system(stream.pages), service(DISKS_3_1), service(SSD_3_1))
    _, found = formula.after(TransactionReferences(stream), setup.time / SECONDS * setup.scale)
    return found.throughput, setup.build().result().rate("transactions", slice(-setup.intervals // 5, None))


@pytest.mark.skipif(not compiled(), reason="takes minutes uncompiled")
@pytest.mark.parametrize("design", ["none", "cw", "dw", "tac", "lc"])
def test_tpc_c_by_formula_is_within_six_percent(design: str) -> None:
    formula, simulated = both(PoolSetup("tpc-c:warehouses=2000", design, options=TPC_C, scale=0.001 if design == "lc" else 0.005))
    assert formula == pytest.approx(simulated, rel=0.06)


@pytest.mark.deep
@pytest.mark.skipif(not compiled(), reason="takes minutes uncompiled")
@pytest.mark.parametrize("design", ["none", "cw", "dw", "tac", "lc"])
@pytest.mark.parametrize(("text", "given"), [("tpc-c:warehouses=4000", TPC_C), ("tpc-e:database=230GiB", TPC_E)])
def test_large_databases_by_formula(text: str, given: dict[str, int], design: str) -> None:
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
