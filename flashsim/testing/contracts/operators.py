"""The contracts of partition methods and query programs: every row once, in its bucket, however rows are cut into batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from algorithms.expressions.expression import Column, FunctionCall, Literal
from algorithms.files import temporary_files
from algorithms.partitioning.base import PARTITIONING, PartitionBuffers, PartitionParameters, Put, bucket_layouts, check_buffers, distribute
from algorithms.programs.aggregation import Aggregate
from algorithms.programs.base import PROGRAMS, Operator, one_batch, through
from algorithms.programs.top_k import Order
from flashsim.core.errors import InvalidParameterError
from flashsim.core.request import Integers
from flashsim.execution.drivers import trace_only
from flashsim.execution.requests import Algorithm, Drop, Emit, Phase, Psync, Read, Request, Write, rewrite
from flashsim.execution.run import Run
from flashsim.storage.heap_file import File, HeapFile
from flashsim.storage.keys import NULL_KEY
from flashsim.storage.rows import Tuples
from flashsim.testing.contract import Contract, examples
from flashsim.testing.strict_driver import relation_file

__all__ = ["PartitionContract", "ProgramContract"]


class FilePass:
    """One pass over a file of drawn rows, and what it may hold in memory.

    Parameters
    ----------
    stay
        Tuples of a key go to bucket ``key % (buckets + stay)``, and what has no bucket stays in memory.
    """

    def __init__(self, rows: int, buffers: PartitionBuffers, parameters: PartitionParameters, stay: int = 0) -> None:
        random = np.random.default_rng(rows)
        self.file = relation_file("r", random.integers(0, 1000, rows), record=random.integers(4, 300, rows))
        self.buffers, self.parameters, self.stay = buffers, parameters, stay
        (layout,) = bucket_layouts([self.file], buffers, parameters)
        self.files = temporary_files("made", "bucket", buffers.buckets, layout, 0)
        self.seen, self.held = 0, 0

    def algorithm(self) -> Algorithm:
        """Partition, then read the buckets and hand out each tuple with its bucket's number."""
        yield Phase("partition")
        yield from self._count_held(distribute(self.file, self.files, self.buffers, self._route, self.parameters))
        assert self.seen == self.file.pages, f"{self.seen} of {self.file.pages} pages are routed"
        assert self.held == 0, "not all that was read is written at the end"
        for number, file in enumerate(self.files):
            for page in range(file.pages):
                tuples = yield Read(file, np.array([page]), np.array([1]))
                assert isinstance(tuples, Tuples) and len(tuples)
                yield Emit(tuples.rows, np.full(len(tuples), number))
            if file.pages:
                yield Drop(file)

    def _route(self, tuples: Tuples, pages: int, put: Put) -> Algorithm:
        self.seen += pages
        numbers = tuples.keys % (len(self.files) + self.stay)
        goes = numbers < len(self.files)
        self.held += self._bytes(self.file, tuples.select(goes)) if self.files else 0
        yield from put(tuples.select(goes), numbers[goes])

    def _count_held(self, algorithm: Algorithm) -> Algorithm:
        """The same requests; what is read and not written yet fits in the buffers, whenever something is asked for."""

        def check(request: Request) -> Request:
            writes = request.requests if isinstance(request, Psync) else [request]
            assert self.held <= self.buffers.pages * self.file.layout.room, f"more is in memory than {self.buffers.pages} pages hold"
            self.held -= sum(self._bytes(write.file, write.tuples) for write in writes if isinstance(write, Write))
            return request

        return rewrite(algorithm, check)

    @staticmethod
    def _bytes(file: File, tuples: Tuples) -> int:
        return int(file.layout.cell_sizes(tuples).sum())

    def expected_rows(self) -> Integers:
        """Rows and their buckets, by row."""
        keys = self.file.relation.keys(slice(None))
        rows = np.flatnonzero((keys != NULL_KEY) & (keys % (len(self.files) + self.stay) < len(self.files)))
        return np.stack([rows, keys[rows] % (len(self.files) + self.stay)], axis=1)


def ran(one: FilePass) -> tuple[Integers, Run]:
    """Rows with their buckets, by row, and what a pass cost."""
    found: list[Integers] = [np.zeros((0, 2), np.int64)]
    files: Sequence[HeapFile] = [one.file]
    run = trace_only(one.algorithm(), files, results=lambda *rows: found.append(np.stack(rows, axis=1)))
    pairs = np.concatenate(found)
    return pairs[np.lexsort(pairs.T[::-1])], run


def accepted_options(name: str, **options: int) -> dict[str, Any]:
    """Options that a method takes, of those given."""
    return {option: value for option, value in options.items() if option in PARTITIONING.load(name).OPTIONS}


class PartitionContract(Contract):
    """Properties of a partition method (`algorithms.partitioning.base`)."""

    FAMILY = PARTITIONING

    @examples(30)
    @given(
        rows=st.integers(0, 400),
        buckets=st.integers(1, 7),
        sizes=st.tuples(st.integers(1, 5), st.integers(1, 6)),
        page_io=st.booleans(),
        in_series=st.booleans(),
        stay=st.integers(0, 2),
        options=st.fixed_dictionaries({"sub_buffer": st.sampled_from([0, 512, 700, 1024, 4096]), "strands": st.integers(1, 4)}),
    )
    @example(400, 1, (1, 1), False, True, 0, {"sub_buffer": 0, "strands": 1})
    @example(0, 3, (1, 1), False, False, 0, {"sub_buffer": 0, "strands": 2})
    @example(400, 2, (4, 4), True, False, 0, {"sub_buffer": 0, "strands": 1})
    def test_every_tuple_once_in_its_bucket_within_its_memory(
        self, rows: int, buckets: int, sizes: tuple[int, int], page_io: bool, in_series: bool, stay: int, options: dict[str, int]
    ) -> None:
        """Of rows of all lengths, some of which stay in memory; by whole buffers, and a page a request."""
        parameters = PartitionParameters(self.name, **accepted_options(self.name, **options), page_io=page_io, in_series=in_series)
        one = FilePass(rows, PartitionBuffers(*sizes, buckets), parameters, stay)
        found, run = ran(one)
        if in_series:
            singly = ran(FilePass(rows, one.buffers, replace(parameters, in_series=False), stay))[1]
            same = all(getattr(run.total(), what) == getattr(singly.total(), what) for what in ("reads", "writes", "pages"))
            assert same, "other requests are made in series than one by one"
        assert np.array_equal(found, one.expected_rows()), "a tuple is lost, doubled, or in another bucket"
        phase = run.total()
        assert phase.pages_read == one.file.pages + phase.pages_written, "not every page is read once"
        assert not page_io or phase.requests == phase.pages, "a request is longer than a page"

    def test_without_buckets_everything_is_read_and_nothing_written(self) -> None:
        one = FilePass(200, PartitionBuffers(3, 0, 0), PartitionParameters(self.name), stay=1)
        found, run = ran(one)
        assert len(found) == 0 and run.total().pages_written == 0 and run.total().pages_read == one.file.pages

    def test_an_empty_file_costs_nothing(self) -> None:
        _, run = ran(FilePass(0, PartitionBuffers(2, 2, 3), PartitionParameters(self.name)))
        assert run.total().requests == 0

    def test_what_a_method_does_not_take_is_refused(self) -> None:
        file = relation_file("r", np.arange(50))
        for option, told in (("sub_buffer", "sub-buffer: 512 B"), ("strands", "strands: 512")):
            asked: dict[str, Any] = {option: 512}
            parameters = PartitionParameters(self.name, **asked)
            if option not in PARTITIONING.load(self.name).OPTIONS:
                with pytest.raises(InvalidParameterError, match=f"{told}, but partition method .* does not take it"):
                    check_buffers([file], PartitionBuffers(1, 1, 1), parameters)


ROWS = pa.RecordBatch.from_pydict(
    {
        "k": pa.array([None if number % 11 == 0 else number % 40 for number in range(500)], pa.int64()),
        "x": pa.array([number * 0.5 for number in range(500)]),
    }
)
BUILD = pa.RecordBatch.from_pydict({"b": pa.array([3, 5, 5, None, 77], pa.int64())})
TWICE = FunctionCall("*", (Column("k"), Literal(pa.scalar(2))))
#: Parameters of each member; those of a file of one's own are none.
PARAMETERS: dict[str, dict[str, Any]] = {
    "selection": {"predicate": FunctionCall("<", (TWICE, Literal(pa.scalar(40))))},
    "projection": {"columns": {"twice": TWICE}},
    "aggregation": {"keys": ["k"], "aggregates": [Aggregate("sum", "k", "s"), Aggregate("max", "x", "m"), Aggregate("count", None, "c")]},
    "top-k": {"orders": [Order("x", descending=True)], "limit": 7},
    "hash-join": {"build": BUILD, "probe": "k", "key": "b"},
    "semi-join": {"build": BUILD, "probe": "k"},
    "partitioning": {"by": "k", "parts": "4", "block": "16"},
}


def start_operator(name: str, **more: int) -> Operator:
    return PROGRAMS.load(name).start(ROWS.schema, **PARAMETERS.get(name, {}), **more)


def outcome(name: str, cuts: int, drives: int, **more: int) -> Counter[tuple[Any, ...]]:
    """The rows of a program over batches that are dealt to drives."""
    size = -(-ROWS.num_rows // cuts)
    batches = [ROWS.slice(first, size) for first in range(0, ROWS.num_rows, size)]
    parts: list[pa.RecordBatch] = []
    for drive in range(drives):
        operator = start_operator(name, **more)
        parts += through([operator], batches[drive::drives])
    whole = operator.whole()
    rows = one_batch((whole or operator).schema, through([whole], parts) if whole else parts)
    return Counter(tuple(row.values()) for row in rows.to_pylist())


class ProgramContract(Contract):
    """Properties of a query program (`algorithms.programs.base`); one of a file of its own is started without parameters."""

    FAMILY = PROGRAMS

    def test_rows_do_not_depend_on_batches_and_drives(self) -> None:
        """Five hundred rows in up to 500 batches, on up to three drives whose parts are made whole."""
        expected = outcome(self.name, 1, 1)
        assert expected, "there are no rows"
        for cuts, drives in ((7, 1), (500, 1), (20, 3), (2, 2)):
            assert outcome(self.name, cuts, drives) == expected, f"other rows by {cuts} batches on {drives} drives"

    def test_work_is_counted_and_no_rows_give_no_error(self) -> None:
        operator = start_operator(self.name)
        operator.step(ROWS)
        left = operator.finish()
        assert not left or PROGRAMS.load(self.name).BLOCKING, "BLOCKING is False, but rows are handed on after the last batch"
        work: Any = operator.work.values()
        assert all(isinstance(count, int | np.integer) and count >= 0 for count in work), "work is negative, or not whole"
        assert any(work), "no work is counted"
        nothing = list(through([start_operator(self.name)], [ROWS.slice(0, 0)]))
        assert sum(each.num_rows for each in nothing) == 0, "rows are made of none"
