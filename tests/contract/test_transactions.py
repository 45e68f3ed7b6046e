"""Every workload of transactions, and what is asked for wrongly."""

from __future__ import annotations

import pytest

from flashsim.core.errors import InvalidParameterError, MissingFileError, UnknownNameError
from flashsim.testing.contracts.workloads import TransactionContract
from tests.contract.members import each_of
from traces.transactions import WORKLOADS, scale_stream, workload

#: What each member needs.
_ASKED = {"tpc-c": "warehouses=0.2", "tpc-e": "database=20MB", "tpc-h": "scale=0.02"}


@each_of(WORKLOADS)
class TestTransactions(TransactionContract):
    """Every member."""

    @property
    def values(self) -> str:
        return _ASKED.get(self.member) or super().values


def test_a_workload_is_not_scaled_to_nothing() -> None:
    with pytest.raises(InvalidParameterError, match="above 0"):
        scale_stream(workload("tpc-h:scale=0.02"), 0)


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("tpc_c", UnknownNameError, "workload of transactions: 'tpc_c' is unknown; did you mean tpc-c"),
        ("ziph:pages=9", UnknownNameError, "did you mean zipf"),
        ("tpc-c:warehouse=3", UnknownNameError, "parameter of tpc-c: 'warehouse' is unknown; did you mean warehouses"),
        ("tpc-c", InvalidParameterError, "warehouses: missing"),
        ("zipf:pages=9,each=0", InvalidParameterError, "each: 0"),
        ("none/at/all.csv", MissingFileError, "no file"),
    ],
)
def test_what_is_asked_for_wrongly_is_one_line(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as refused:
        workload(text)
    assert "\n" not in str(refused.value)
