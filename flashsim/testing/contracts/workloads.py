"""The contracts of what is generated: references, transactions, and requests to devices; a seed makes them, and any values are checked."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from flashsim.core.errors import InvalidParameterError, UnknownNameError
from flashsim.core.request import READ, WRITE, Integers
from flashsim.core.transactions import BATCH, COUNT, CREATES, FIRST, MARKS, SCANS, WRITES, Transactions
from flashsim.core.units import GIB, KIB, MIB
from flashsim.testing.contract import Contract
from traces.references.base import GENERATORS, generated_trace
from traces.transactions.base import WORKLOADS, TransactionWorkload, scale_stream, workload
from traces.workload.base import FAMILY, WorkloadRun, WorkloadSpace

__all__ = ["ReferencesContract", "TransactionContract", "WorkloadContract"]


def needed_values(declared: type[Any]) -> str:
    """Values of the parameters that have no default: a thousand, or the least."""
    fields = [field for field in dataclasses.fields(declared) if field.default is dataclasses.MISSING]
    return ",".join(f"{field.name.replace('_', '-')}={max(field.metadata.get('least') or 0, 1000)}" for field in fields)


def check_declared(declared: type[Any], values: str, made: Callable[[str], object]) -> None:
    """Each parameter says what it means, and refuses what it cannot be, given with others, in one line."""
    for field in dataclasses.fields(declared):
        assert field.metadata.get("meaning"), f"{field.name} is not declared with flashsim.core.parameters, or has no meaning"
        kind, option = field.metadata["type"], field.name.replace("_", "-")
        others = [part for part in values.split(",") if not part.startswith(f"{option}=")]
        for wrong in ("-1", "x", "1e30", "nan"):
            if (kind is bool and wrong == "x") or (kind is str and not field.metadata["parse"]):
                continue
            refusal = ""
            try:
                made(",".join([*others, f"{option}={wrong}"]))
            except (InvalidParameterError, UnknownNameError) as problem:
                refusal = str(problem)
            assert refusal and "\n" not in refusal, f"{option}={wrong} is not refused in one line: {refusal}"


def draw_references(text: str) -> tuple[Integers, npt.NDArray[np.bool_]]:
    """All pages that are asked for, and which of the references write."""
    batches = list(generated_trace(text).batches())
    assert all(0 < len(batch.pages) <= BATCH for batch in batches), f"a batch is empty, or has more than {BATCH} references"
    writes = [np.zeros(len(batch.pages), np.bool_) if batch.writes is None else batch.writes for batch in batches]
    return np.concatenate([batch.pages for batch in batches]), np.concatenate(writes)


class ReferencesContract(Contract):
    """Properties of generated references (`traces.references.base`)."""

    FAMILY = GENERATORS

    @property
    def values(self) -> str:
        """Parameters of small references."""
        return needed_values(GENERATORS.load(self.name).Stream)

    def text(self, more: str) -> str:
        """How references are asked for."""
        return f"{self.name}:{','.join(each for each in (self.values, more) if each)}"

    def test_a_seed_makes_as_many_references_as_are_asked_for(self) -> None:
        """In more than one batch, the same ones every time, of pages below the most that there are."""
        count = BATCH + 1000
        pages, writes = draw_references(self.text(f"references={count}"))
        assert len(pages) == len(writes) == count, f"{count} references are asked for, and {len(pages)} made"
        assert pages.dtype == np.int64 and writes.dtype == np.bool_, f"pages are {pages.dtype}, writes {writes.dtype}"
        most = generated_trace(self.text(f"references={count}")).stream.most_pages
        assert pages.min() >= 0 and (most is None or pages.max() < most), f"pages {pages.min()} to {pages.max()} of {most}"
        again = draw_references(self.text(f"references={count},seed=0"))
        assert np.array_equal(again[0], pages) and np.array_equal(again[1], writes), "the same seed makes other references"

    def test_another_seed_makes_other_references(self) -> None:
        first, second = (draw_references(self.text(f"references=5000,seed={seed}"))[0] for seed in (0, 1))
        if np.array_equal(first, second):
            pytest.skip("nothing is drawn: seeds 0 and 1 make the same")

    def test_fewer_references_are_the_first_of_more(self) -> None:
        texts = [self.text(f"references={count}") for count in (BATCH + 1000, 5000)]
        if len({generated_trace(text).stream.most_pages for text in texts}) > 1:
            pytest.skip("its pages grow with the references")
        many, few = map(draw_references, texts)
        assert all(np.array_equal(one[:5000], other) for one, other in zip(many, few, strict=True)), "5000 are not the first of more"

    def test_every_parameter_is_declared_and_checked(self) -> None:
        member = GENERATORS.load(self.name)
        assert member.TITLE, "it has no title"
        check_declared(member.Stream, self.values, lambda values: generated_trace(f"{self.name}:{values}"))


#: Transactions that are looked at.
_SOME = 5000


def first(batches: Iterator[Transactions], transactions: int = _SOME) -> Transactions:
    """So many transactions in one batch."""
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


class TransactionContract(Contract):
    """Properties of a workload of transactions (`traces.transactions.base`)."""

    FAMILY = WORKLOADS

    @property
    def values(self) -> str:
        """Parameters of a small one."""
        return needed_values(WORKLOADS.load(self.name).Workload)

    def stream(self, more: str = "") -> TransactionWorkload:
        made = workload(f"{self.name}:{','.join(each for each in (self.values, more) if each)}")
        assert isinstance(made, TransactionWorkload), "Workload is not derived from TransactionWorkload"
        return made

    def test_a_seed_makes_the_same_in_batches_of_any_size(self) -> None:
        usual = first(self.stream().batches())
        for more in ("batch=7", "seed=0"):
            pairs = zip(first(self.stream(more).batches()), usual, strict=True)
            assert all(np.array_equal(one, other) for one, other in pairs), f"other transactions with {more}"
        assert all(len(batch.ends) <= 7 for batch in islice(self.stream("batch=7").batches(), 100)), "batches are larger than asked for"
        assert not np.array_equal(first(self.stream("seed=1").batches()).references, usual.references), (
            "another seed makes the same references"
        )

    def test_references_are_within_the_database_and_transactions_in_order(self) -> None:
        stream = self.stream()
        made = first(stream.batches())
        pages, counts, marks = (made.references[:, each] for each in (FIRST, COUNT, MARKS))
        assert all(each.dtype == np.int64 for each in made), f"they are of types {[str(each.dtype) for each in made]}"
        assert pages.min() >= 0 and (pages + counts).max() <= stream.pages, f"pages {pages.min()} to {pages.max()} of {stream.pages}"
        assert marks.min() >= 0 and marks.max() <= WRITES | SCANS | CREATES, f"marks {marks.min()} to {marks.max()}"
        assert (counts[marks & SCANS == 0] == 1).all() and counts.min() >= 1, "a reference that is no scan is to one page"
        assert (np.diff(made.ends, prepend=0) > 0).all() and made.ends[-1] == len(made.references), "a transaction has no references"
        assert set(made.kinds.tolist()) <= set(range(len(stream.kinds))), f"kinds {set(made.kinds.tolist())} of {stream.kinds}"
        if metric := stream.METRIC:
            share = (made.kinds == stream.kinds.index(metric.kind)).mean()
            assert abs(share - metric.share) < 4 * (metric.share / _SOME) ** 0.5, f"{share:.1%} of all are {metric.kind}"
            assert metric.of(120, metric.period // 2) == 240

    def test_every_parameter_is_declared_and_checked(self) -> None:
        member = WORKLOADS.load(self.name)
        assert member.TITLE, "it has no title"
        check_declared(member.Workload, self.values, lambda values: workload(f"{self.name}:{values}"))

    def test_a_workload_is_scaled(self) -> None:
        stream = self.stream()
        assert stream.SCALES and scale_stream(stream, 1) == stream, "SCALES is empty, or scaling by 1 changes it"
        pages = scale_stream(stream, 8).pages
        assert abs(pages - 8 * stream.pages) <= 0.8 * stream.pages, f"eight times {stream.pages} pages are {pages}"


_SPACES = (
    WorkloadSpace(4 * MIB),
    WorkloadSpace(GIB, quick=True),
    WorkloadSpace(GIB, least=4096, write=False, count=100),
    WorkloadSpace(5 * GIB + 32 * KIB, count=1),
)


class WorkloadContract(Contract):
    """Properties of a device workload (`traces.workload.base`)."""

    FAMILY = FAMILY

    def runs(self, space: WorkloadSpace = _SPACES[1]) -> list[WorkloadRun]:
        runs: Iterator[WorkloadRun] = FAMILY.load(self.name).runs(space)
        return list(runs)

    def test_requests_stay_in_the_area_on_multiples_of_the_unit(self) -> None:
        """In a small area and in large ones, and without a write where there may be none."""
        for space in _SPACES:
            runs = self.runs(space)
            assert runs, f"there are no runs in {space}"
            for run in runs:
                requests, what = run.requests(1), f"{run} in {space}"
                offset, length = requests["offset"], requests["length"]
                assert len(requests) == space.count, f"{len(requests)} requests instead of {space.count}: {what}"
                assert (offset >= 0).all() and (offset + length <= space.size).all(), f"requests leave the area: {what}"
                assert (offset % space.least == 0).all() and (length % space.least == 0).all(), f"no multiples of {space.least} B: {what}"
                assert (length > 0).all() and np.isin(requests["operation"], (READ, WRITE)).all(), f"not all are reads and writes: {what}"
                assert space.write or not run.writes, f"nothing may be written: {what}"
                assert run.writes or (requests["operation"] == READ).all(), f"it says that it does not write: {what}"

    def test_a_process_has_one_request_at_a_time(self) -> None:
        for run in self.runs():
            requests = run.requests(1)
            for stream in np.unique(requests["stream"]):
                rows = np.flatnonzero(requests["stream"] == stream)
                assert requests["dependency"][rows].tolist() == [-1, *rows[:-1]], f"a request does not wait for the one before: {run}"
                assert requests["think"][rows[0]] == 0, f"the first request waits: {run}"

    def test_the_seed_decides_and_runs_differ_by_their_parameter(self) -> None:
        first, again = ([run.requests(1) for run in self.runs()] for _ in range(2))
        same = len(first) == len(again) and all(np.array_equal(one, other) for one, other in zip(first, again, strict=True))
        assert same, "the same seed makes other requests"
        runs = self.runs(WorkloadSpace(GIB))
        assert len({(run.name, run.value) for run in runs}) == len(runs), "two runs have the same name and value"
        for pattern in {run.name for run in runs}:
            values = [run.value for run in runs if run.name == pattern]
            assert values == sorted(values) and len(values) > 1, f"values of {pattern} do not ascend, or there is one: {values}"

    def test_its_parameter_has_a_name_and_a_unit(self) -> None:
        member = FAMILY.load(self.name)
        assert member.PARAMETER and member.UNIT in ("bytes", "ns", "count"), f"PARAMETER is {member.PARAMETER!r}, UNIT {member.UNIT!r}"
