"""What all generated references have in common: a seed makes them, their number is that which was asked for, and any values are checked."""

from __future__ import annotations

import numpy as np
import pytest

from flashsim.core.errors import InvalidParameterError, UnknownNameError
from flashsim.testing.contracts.workloads import ReferencesContract, draw_references
from tests.contract.members import each_of
from traces.references import GENERATORS, generated_trace

#: What each member needs.
_ASKED = {
    "loop": "pages=7000",
    "mixture": "pages=9000,scanned=500,every=100,length=30",
    "scan": "pages=9000,length=70",
    "tpch": "scale=0.01",
    "uniform": "pages=9000",
    "ycsb": "workload=e,records=9000",
    "zipf": "pages=9000",
}


@each_of(GENERATORS)
class TestReferences(ReferencesContract):
    """Every member; of all but a loop something is drawn."""

    @property
    def values(self) -> str:
        return _ASKED.get(self.member) or super().values

    def test_another_seed_makes_other_references(self) -> None:
        first, second = (draw_references(self.text(f"references=5000,seed={seed}"))[0] for seed in (0, 1))
        assert np.array_equal(first, second) == (self.member == "loop")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("zip:pages=3", "generated references: 'zip' is unknown; did you mean zipf"),
        ("zipf:page=3", "parameter of zipf: 'page' is unknown; did you mean pages"),
        ("zipf", "pages: missing"),
        ("zipf:pages", "NAME=VALUE; it has references, seed, write-share, pages, skew, scrambled"),
        ("zipf:pages=3.5", "it must be a whole number"),
        ("scan:pages=3,length=4", "length: 4, but it must be at most the 3 pages"),
        ("ycsb:workload=g,records=3", "workload of YCSB: 'g' is unknown"),
    ],
)
def test_what_is_asked_for_wrongly_is_one_line(text: str, message: str) -> None:
    with pytest.raises((InvalidParameterError, UnknownNameError), match=message):
        generated_trace(text)
