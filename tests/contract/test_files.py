"""Files of any row format: drawn programs write, overwrite and read them, and every driver asks the same and gives back the last write."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.joins.base import JOINS, JoinParameters, plan
from flashsim.core.errors import DamagedFileError, FlashsimError
from flashsim.core.request import Integers
from flashsim.device.file import RealDevice
from flashsim.execution.drivers import needed_size, trace_only
from flashsim.execution.requests import Algorithm, Drop, Emit, Flush, Mode, Phase, Read, Write
from flashsim.storage.heap_file import File, HeapFile, heap_file, ranges
from flashsim.storage.layout import Layout
from flashsim.storage.relation import Relation
from flashsim.storage.rows import Columns, FixedRows, Tuples, key_tuples
from flashsim.storage.source.base import load_pair, open_source
from tests.contract.drivers import run_everywhere, run_on_file
from tests.contract.guide import write_members
from tests.tiers import examples

PAGE = 8192
DIGESTS = FixedRows("digest", {"key": 8, "row": 4})
JOIN_INDEX = FixedRows("join index", {"r_row": 4, "s_row": 6})


@pytest.fixture(scope="module")
def files() -> tuple[HeapFile, HeapFile]:
    relations = load_pair(open_source("do2009:customer@0.01"), open_source("do2009:orders@0.01"), "c_custkey", "o_custkey")
    return heap_file(relations[0], PAGE), heap_file(relations[1], PAGE)


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=examples(15), deadline=None)
def test_drawn_programs_do_the_same_in_all_drivers(files: tuple[HeapFile, HeapFile], seed: int) -> None:
    with TemporaryDirectory() as folder:
        run_everywhere(lambda: _program(files[0], seed, "sqlite"), files, Path(folder))


@pytest.mark.parametrize("page_format", ["columnwise.py", "pax"])
def test_columns_are_read_from_parts_of_pages_in_all_drivers(page_format: str, files: tuple[HeapFile, HeapFile], tmp_path: Path) -> None:
    write_members(tmp_path)
    named = str(tmp_path / page_format) if page_format.endswith(".py") else page_format
    base = heap_file(files[0].relation, PAGE, page_format=named) if page_format == "pax" else files[0]
    for seed in range(5):
        _, _, requests = run_everywhere(lambda: _program(base, seed, named), (base, files[1]), tmp_path, buffered=True)  # noqa: B023
        assert {length for _, _, length, _, label in requests.rows if label.startswith("file 1")} - {PAGE} != set()


def test_minipages_cost_their_sectors_and_no_more(tmp_path: Path) -> None:
    """Some columns of TPC-H's customers, of pages that are apart: the bytes that every driver asked for, and the time that drives took."""
    source = open_source("tpch:customer@0.01")
    file, other = (heap_file(relation, PAGE, page_format="pax") for relation in load_pair(source, source, "c_custkey", "c_custkey"))
    layout, starts = file.layout, np.arange(0, file.pages, 3)
    attributes = ("c_mktsegment", "c_name")
    key, two = layout.parts(("key",)), layout.parts((), attributes)

    def program() -> Algorithm:
        for name, parts, columns, wanted in (("key", key, ("key",), ()), ("two", two, (), attributes), ("all", None, ("key", "row"), ())):
            yield Phase(name)
            found = yield Read(file, starts, np.ones_like(starts), Mode.SERIAL, parts, columns, wanted)
            assert (found is None) == (not columns)
            if isinstance(found, Tuples):
                rows = ranges(file.first_rows[starts], np.diff(file.first_rows)[starts])
                assert np.array_equal(found.keys, file.relation.keys(rows)) and np.array_equal(found.columns.get("row", rows), rows)

    _, runs, requests = run_everywhere(program, (file, other), tmp_path, buffered=True)
    whole = sum(length for _, length in key), sum(length for _, length in two), PAGE
    assert whole[0] < whole[1] < PAGE and len(two) == 2  # they lie apart
    lengths = [length for _, _, length, _, _ in requests.rows]
    wanted = [length for _, length in key] * len(starts) + [length for _, length in two] * len(starts) + [PAGE] * len(starts)
    assert lengths == wanted and requests.bytes == sum(whole) * len(starts)
    for run in runs:
        assert [phase.reads for phase in run.phases] == [len(starts) * len(parts) for parts in (key, two, ((0, PAGE),))]
        assert [phase.pages_read for phase in run.phases] == [len(starts)] * 3
    flash = runs[1].phases
    assert flash[0].io_time < flash[2].io_time < flash[1].io_time  # two requests a page take longer than one of all of it


def test_a_damaged_minipage_is_refused_when_its_column_is_wanted(tmp_path: Path) -> None:
    source = open_source("tpch:nation@0.01")
    file = heap_file(load_pair(source, source, "n_nationkey", "n_nationkey")[0], PAGE, page_format="pax")
    parts = file.layout.parts((), ("n_name",))

    def program(attributes: tuple[str, ...]) -> Algorithm:
        data = (tmp_path / "device").read_bytes()
        place = data.index(b"ALGERIA")
        (tmp_path / "device").write_bytes(data[:place] + b"\xff" + data[place + 1 :])
        yield Read(file, np.array([0]), np.array([1]), parts=parts, columns=(), attributes=attributes)

    for attributes in ((), ("n_name",)):
        with RealDevice(tmp_path / "device", needed_size([file]), allow_write=True, replace=True, buffered=True) as device:
            if not attributes:
                run_on_file(program(attributes), [file], device)
                continue
            with pytest.raises(DamagedFileError, match=r"holds other pages than nation has: relation nation: a text is not valid UTF-8$"):
                run_on_file(program(attributes), [file], device)


@pytest.mark.parametrize(
    ("parts", "attributes", "message"),
    [
        (((0, 512),), ("c_name",), "read: columns c_name of parts of customer's pages, but they take bytes"),
        (None, ("c_nam",), "column of relation customer: 'c_nam' is unknown; did you mean c_name"),
        (((0, 512),), ("c_nam",), "column of relation customer: 'c_nam' is unknown; did you mean c_name"),
    ],
)
def test_columns_that_are_not_stored_or_not_read_are_refused(parts: Any, attributes: tuple[str, ...], message: str) -> None:
    source = open_source("tpch:customer@0.01")
    file = heap_file(load_pair(source, source, "c_custkey", "c_custkey")[0], PAGE, page_format="pax")

    def program() -> Algorithm:
        yield Read(file, np.array([0]), np.array([1]), parts=parts, columns=(), attributes=attributes)

    with pytest.raises(FlashsimError, match=message):
        trace_only(program(), [file])


@pytest.mark.parametrize("join", JOINS.names())
def test_joins_run_on_pages_of_any_format(join: str, files: tuple[HeapFile, HeapFile], tmp_path: Path) -> None:
    """A page of columns holds many tuples where whole rows do not matter: the same pairs come of fewer pages."""
    write_members(tmp_path)
    narrow = [heap_file(file.relation, 512, page_format=str(tmp_path / "columnwise.py")) for file in files]
    assert all(few.pages < file.pages * PAGE // 512 / 4 for few, file in zip(narrow, files, strict=True))
    sides = narrow[0], narrow[1]
    pairs, _, _ = run_everywhere(lambda: plan(join, *sides, JoinParameters(memory=40)), sides, tmp_path, buffered=True)
    assert np.array_equal(files[0].relation.keys(pairs[:, 0]), files[1].relation.keys(pairs[:, 1]))
    assert len(np.unique(pairs, axis=0)) == len(pairs) == len(files[1].relation)  # every order has one customer


def test_what_another_program_wrote_over_is_refused_in_one_line(files: tuple[HeapFile, HeapFile], tmp_path: Path) -> None:
    def program() -> Algorithm:
        digests = File("digests", Layout(DIGESTS, PAGE))
        yield Write(digests, np.array([0]), np.array([1]), Tuples({"key": np.arange(9), "row": np.arange(9)}, np.array([0, 9])))
        data = (tmp_path / "device").read_bytes()
        place = data.rindex(bytes([3, 6, 4]))  # the header of a digest
        (tmp_path / "device").write_bytes(data[:place] + b"\xff" + data[place + 1 :])
        yield Read(digests, np.array([0]), np.array([1]))

    size = needed_size(files[:1])
    with (
        RealDevice(tmp_path / "device", size, allow_write=True, replace=True, buffered=True) as device,
        pytest.raises(DamagedFileError, match=r"^device: .*device holds other pages than digests has: row format digest: .*$"),
    ):
        run_on_file(program(), files[:1], device)


@pytest.mark.parametrize(
    "step", ["uneven columns", "uneven extents", "no such row", "no such row before", "not loaded", "drop of a relation", "dropped"]
)
def test_what_cannot_be_is_refused_in_one_line(files: tuple[HeapFile, HeapFile], step: str) -> None:
    def program() -> Algorithm:
        one, digests = (np.array([0]), np.array([1])), File("digests", Layout(DIGESTS, PAGE))
        if step == "uneven columns":
            yield Write(digests, *one, Tuples({"key": np.arange(9), "row": np.arange(1)}, np.array([0, 9])))
        elif step == "uneven extents":
            yield Read(files[0], np.array([0, 1]), np.array([1]))
        elif step.startswith("no such row"):
            row = -1 if step.endswith("before") else len(files[0].relation)
            yield Write(File("copy", files[0].layout), *one, key_tuples(np.array([1]), np.array([row]), np.array([0, 1])))
        elif step == "not loaded":
            yield Read(heap_file(files[0].relation, PAGE), *one)
        elif step == "drop of a relation":
            yield Drop(files[0])
        else:
            yield Write(digests, *one, key_tuples(np.arange(9), np.arange(9), np.array([0, 9])))
            yield Drop(digests)
            yield Read(digests, *one)

    with pytest.raises(FlashsimError, match=r"^.+, but .+$"):
        trace_only(program(), files)


def test_a_file_that_was_dropped_is_empty_and_may_be_written_again(files: tuple[HeapFile, HeapFile], tmp_path: Path) -> None:
    def program() -> Algorithm:
        digests, one = File("digests", Layout(DIGESTS, PAGE)), (np.array([0]), np.array([1]))
        for begin in (0, 100):
            yield Write(digests, *one, key_tuples(np.arange(9) + begin, np.arange(9), np.array([0, 9])))
            found = yield Read(digests, *one)
            assert isinstance(found, Tuples) and np.array_equal(found.keys, np.arange(9) + begin)
            yield Drop(digests)
            assert digests.pages == 0

    run_everywhere(program, files, tmp_path)


def _program(base: HeapFile, seed: int, page_format: str) -> Algorithm:
    """Writes, reads and flushes in drawn order; every read is held against what was written last."""
    random = np.random.default_rng(seed)
    layouts = [base.layout, Layout(DIGESTS, PAGE, page_format), Layout(JOIN_INDEX, 2 * PAGE, page_format)]
    files = [base, *(File(f"file {number}", layout) for number, layout in enumerate(layouts))]
    held = [[base.run(page, page + 1).columns for page in range(base.pages)], *([] for _ in layouts)]
    yield Phase("all")
    for _ in range(30):
        chosen = int(random.integers(len(files)))
        file, pages = files[chosen], held[chosen]
        mode = Mode.BATCH if random.random() < 0.3 else Mode.SERIAL
        step = random.choice(["write", "write", "read", "read", "part", "flush", "drop"])
        if step == "write":
            starts, counts = _extents(random, file, appends=file.temporary, twice=mode is Mode.SERIAL)
            more = [_page(random, file) for _ in range(counts.sum())]
            yield Write(file, starts, counts, _tuples(file, more), mode)
            pages += [{}] * (file.pages - len(pages))
            for page, columns in zip(ranges(starts, counts).tolist(), more, strict=True):
                pages[page] = columns
        elif step == "flush":
            yield Flush(file)
        elif step == "drop" and file.temporary and pages:
            yield Drop(file)
            files[chosen], held[chosen] = File(file.name + "'", file.layout), []
        elif pages:
            starts, counts = _extents(random, file, appends=False, twice=True)
            if step == "part":
                answer = yield Read(file, starts, counts, mode, parts=((4096, 4096), (0, 4096)), columns=())
                assert answer is None
                continue
            names = file.layout.row_format.columns[: random.integers(1, 3)]
            parts = file.layout.parts(names) if random.random() < 0.5 else None
            tuples = yield Read(file, starts, counts, mode, parts, names)
            expected = _tuples(file, [pages[page] for page in ranges(starts, counts)])
            assert isinstance(tuples, Tuples) and set(tuples.columns) == set(names)
            assert np.array_equal(tuples.pages, expected.pages)
            for name in names:
                assert np.array_equal(tuples.columns[name], expected.columns[name])
            if len(tuples):
                yield Emit(*(tuples.columns[names[place]] for place in (0, -1)))


def _extents(random: np.random.Generator, file: File, *, appends: bool, twice: bool) -> tuple[Integers, Integers]:
    """Runs of pages of a file, the last of them perhaps new; no page twice, unless that may be."""
    extents = []
    if file.pages:
        cuts = np.unique(random.integers(0, file.pages + 1, 4))
        extents = [(begin, end - begin) for begin, end in pairwise(cuts) if end - begin <= 20]
        random.shuffle(extents)
        extents += [extents[0]] if twice and extents else []
    if appends:
        extents.append((file.pages, int(random.integers(1, 4))))
    if not extents:
        extents = [(0, 1)]
    starts, counts = np.array(extents, np.int64).T
    return starts, counts


def _page(random: np.random.Generator, file: File) -> Columns:
    """Tuples for one page, as few as none and as many as fit."""
    rows = file.layout.row_format
    if isinstance(rows, Relation):
        chosen = random.integers(0, len(rows), 1000)
        columns = {"key": rows.keys(chosen), "row": chosen}
    else:
        assert isinstance(rows, FixedRows)
        bounds = [(-(1 << (8 * width - 1)), (1 << (8 * width - 1)) - 1) for width in rows.widths.values()]
        columns = {name: random.integers(*bound, 2000, endpoint=True) for name, bound in zip(rows.columns, bounds, strict=True)}
    fits = int(file.layout.pack(Tuples(columns))[1])
    count = random.choice([0, int(random.integers(fits)), fits])
    return {name: column[:count] for name, column in columns.items()}


def _tuples(file: File, pages: list[Columns]) -> Tuples:
    names = file.layout.row_format.columns
    lengths = [len(page[names[0]]) for page in pages]
    columns = {name: np.concatenate([np.zeros(0, np.int64), *(page[name] for page in pages)]) for name in names}
    return Tuples(columns, np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]))
