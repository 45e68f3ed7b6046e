"""What all workloads of transactions have in common: a seed makes them, in batches of any size, within the pages that they say."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from itertools import islice

import numpy as np
import pytest

from flashsim.core.errors import InvalidParameterError, MissingFileError, UnknownNameError
from flashsim.core.transactions import COUNT, CREATES, FIRST, MARKS, SCANS, WRITES, Transactions
from traces.transactions import WORKLOADS, TransactionWorkload, scaled, workload

#: What each member needs.
_ASKED = {"tpc-c": "warehouses=0.2", "tpc-e": "database=20MB", "tpc-h": "scale=0.02"}


def asked(name: str, more: str = "") -> TransactionWorkload:
    """A small one; what it is does not matter of one that is not listed."""
    fields = dataclasses.fields(WORKLOADS.load(name).Workload)
    needed = [field for field in fields if field.default is dataclasses.MISSING]
    usual = ",".join(f"{field.name.replace('_', '-')}={max(field.metadata['least'] or 0, 1000)}" for field in needed)
    made = workload(f"{name}:{_ASKED.get(name, usual)}{more}")
    assert isinstance(made, TransactionWorkload)
    return made


def first(batches: Iterator[Transactions], transactions: int) -> Transactions:
    """So many transactions in one."""
    taken, count = list[Transactions](), 0
    for batch in batches:
        taken.append(batch)
        count += len(batch.ends)
        if count >= transactions:
            break
    begins = np.cumsum([0, *(len(batch.references) for batch in taken)])
    ends = np.concatenate([batch.ends + begin for batch, begin in zip(taken, begins, strict=False)])[:transactions]
    references = np.concatenate([batch.references for batch in taken])[: ends[-1]]
    return Transactions(references, ends, np.concatenate([batch.kinds for batch in taken])[:transactions])


@pytest.mark.parametrize("name", WORKLOADS.names())
def test_a_seed_makes_the_same_in_batches_of_any_size(name: str) -> None:
    stream = asked(name)
    usual = first(stream.batches(), 5000)
    for text in (",batch=7", ",seed=0"):
        again = first(asked(name, text).batches(), 5000)
        assert all(np.array_equal(one, other) for one, other in zip(usual, again, strict=True))
    assert all(len(batch.ends) <= 7 for batch in islice(asked(name, ",batch=7").batches(), 100))
    assert not np.array_equal(first(asked(name, ",seed=1").batches(), 5000).references, usual.references)


@pytest.mark.parametrize("name", WORKLOADS.names())
def test_references_are_within_the_database_and_transactions_in_order(name: str) -> None:
    stream = asked(name)
    made = first(stream.batches(), 5000)
    references = made.references
    assert all(each.dtype == np.int64 for each in made)
    assert references[:, FIRST].min() >= 0 and (references[:, FIRST] + references[:, COUNT]).max() <= stream.pages
    assert references[:, MARKS].min() >= 0 and references[:, MARKS].max() <= WRITES | SCANS | CREATES
    assert (references[references[:, MARKS] & SCANS == 0, COUNT] == 1).all() and references[:, COUNT].min() >= 1
    assert (np.diff(made.ends, prepend=0) > 0).all() and made.ends[-1] == len(references)
    assert set(made.kinds.tolist()) <= set(range(len(stream.kinds)))
    metric = stream.METRIC
    if metric:
        share = (made.kinds == stream.kinds.index(metric.kind)).mean()
        assert abs(share - metric.share) < 4 * (metric.share / 5000) ** 0.5
        assert metric.of(120, metric.period // 2) == 240


@pytest.mark.parametrize("name", WORKLOADS.names())
def test_every_parameter_is_declared_and_checked(name: str) -> None:
    assert WORKLOADS.load(name).TITLE
    for field in dataclasses.fields(asked(name)):
        assert field.metadata["meaning"]
        for wrong in ("-1", "x", "1e30", "nan"):
            if field.metadata["type"] is bool and wrong == "x":
                continue
            with pytest.raises((InvalidParameterError, UnknownNameError)) as refused:
                asked(name, f",{field.name.replace('_', '-')}={wrong}")
            assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", WORKLOADS.names())
def test_a_workload_is_scaled(name: str) -> None:
    stream = asked(name)
    assert stream.SCALES
    assert scaled(stream, 1) == stream
    assert scaled(stream, 8).pages == pytest.approx(8 * stream.pages, rel=0.1)
    with pytest.raises(InvalidParameterError, match="above 0"):
        scaled(stream, 0)


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
