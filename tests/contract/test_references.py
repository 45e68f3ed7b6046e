"""What all generated references have in common: a seed makes them, their number is that which was asked for, and any values are checked."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from flashsim.core.errors import InvalidParameterError, UnknownNameError
from flashsim.core.transactions import BATCH
from traces.references import GENERATORS, generated

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


def asked(name: str) -> str:
    """What a member needs; what it is does not matter of one that is not listed."""
    fields = dataclasses.fields(GENERATORS.load(name).Stream)
    needed = [field for field in fields if field.default is dataclasses.MISSING]
    return _ASKED.get(name) or ",".join(f"{field.name.replace('_', '-')}={max(field.metadata['least'] or 0, 1000)}" for field in needed)


def drawn(text: str) -> tuple[np.ndarray, np.ndarray]:
    batches = list(generated(text).batches())
    assert all(0 < len(batch.pages) <= BATCH for batch in batches)
    writes = [np.zeros(len(batch.pages), np.bool_) if batch.writes is None else batch.writes for batch in batches]
    return np.concatenate([batch.pages for batch in batches]), np.concatenate(writes)


@pytest.mark.parametrize("name", GENERATORS.names())
def test_a_seed_makes_as_many_references_as_are_asked_for(name: str) -> None:
    count = BATCH + 1000
    text = f"{name}:references={count},{asked(name)}"
    pages, writes = drawn(text)
    assert len(pages) == len(writes) == count
    assert pages.dtype == np.int64 and pages.min() >= 0
    again = drawn(f"{text},seed=0")
    assert np.array_equal(again[0], pages) and np.array_equal(again[1], writes)
    if name != "loop":
        assert not np.array_equal(drawn(f"{text},seed=1")[0], pages)


@pytest.mark.parametrize("name", sorted(set(GENERATORS.names()) - {"ycsb"}))
def test_fewer_references_are_the_first_of_more(name: str) -> None:
    many, few = (drawn(f"{name}:references={count},{asked(name)}") for count in (BATCH + 1000, 5000))
    assert np.array_equal(many[0][:5000], few[0])


@pytest.mark.parametrize("name", GENERATORS.names())
def test_every_parameter_is_declared_and_checked(name: str) -> None:
    member = GENERATORS.load(name)
    assert member.TITLE
    for field in dataclasses.fields(member.Stream):
        assert field.metadata["meaning"]
        option = field.name.replace("_", "-")
        others = ",".join(part for part in asked(name).split(",") if not part.startswith(f"{option}="))
        for wrong in ("-1", "x", "1e30", "nan"):
            if field.metadata["type"] is bool and wrong == "x":
                continue
            with pytest.raises((InvalidParameterError, UnknownNameError)) as refused:
                generated(f"{name}:{others},{option}={wrong}")
            assert "\n" not in str(refused.value)


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
        generated(text)
