"""Hypothesis strategies of what storage software is tried on; each shrinks towards the smallest case of its kind."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from algorithms.page_access.graph import PageGraph
from flashsim.core.request import FLUSH, FORCE_UNIT_ACCESS, READ, SECTOR, TRIM, WRITE, Integers, Requests, make_requests
from flashsim.experiments.crashing.histories import CHECKPOINTS, EXTENSIONS, CrashHistory
from flashsim.hdd.parameters import HddParameters
from flashsim.hdd.scheduler.base import FAMILY as SCHEDULERS
from flashsim.ssd.gc.base import FAMILY as COLLECTORS
from flashsim.ssd.parameters import SsdParameters
from flashsim.storage.columns import mixed_array
from flashsim.storage.heap_file import HeapFile
from flashsim.storage.keys import NULL_KEY
from flashsim.storage.relation import Relation
from flashsim.storage.source.base import TableRecords, load_pair
from flashsim.testing import disks, flash_drives
from flashsim.testing.strict_driver import relation_file
from traces.file.schema import make_batch

__all__ = ["crash_histories", "disk_drives", "edges", "geometries", "key_codes", "page_graphs", "relations"]
__all__ += ["request_streams", "ssd_drives", "tables", "traces"]

#: Keys at the ends of what is allowed.
EXTREME_KEYS = [NULL_KEY, NULL_KEY + 1, -(1 << 40), -1, 0, 1, (1 << 31) - 1, 1 << 53, (1 << 63) - 2, (1 << 63) - 1]


@st.composite
def geometries(draw: st.DrawFn) -> dict[str, int]:
    """Flash geometries, as parameters of `flashsim.ssd.parameters.SsdParameters`: of one die or some, whose blocks are few."""
    reserve = draw(st.integers(2, 3))
    return {
        "channels": draw(st.integers(1, 3)),
        "packages_per_channel": draw(st.integers(1, 2)),
        "dies_per_package": draw(st.integers(1, 2)),
        "planes_per_die": draw(st.integers(1, 2)),
        "pages_per_block": draw(st.integers(2, 6)),
        "blocks_per_plane": reserve + 1 + draw(st.integers(4, 9)),
        "gc_reserve": reserve,
    }


@st.composite
def ssd_drives(draw: st.DrawFn) -> SsdParameters:
    """Small flash drives whose garbage collection is always at work; all times are multiples of 10 ns, so that events fall together."""
    geometry = draw(geometries())
    pools = int(np.prod([geometry[name] for name in ("channels", "packages_per_channel", "dies_per_package", "planes_per_die")]))
    pages = pools * (geometry["blocks_per_plane"] - geometry["gc_reserve"] - 1) * geometry["pages_per_block"]
    return flash_drives.drive(
        **geometry,
        capacity=max(1, pages * draw(st.integers(5, 9)) // 10 - 1) * flash_drives.PAGE,
        queue_depth=draw(st.sampled_from([1, 2, 8, 32])),
        gc=draw(st.sampled_from(["greedy", *COLLECTORS.names()]).filter("none".__ne__)),
        allocation=draw(st.sampled_from(["round-robin", "dynamic"])),
        erase=draw(st.sampled_from([100, 10, 1000])),
    )


@st.composite
def disk_drives(draw: st.DrawFn) -> HddParameters:
    """Small disks of one to three zones, with and without a cache, by any scheduler; all times are round."""
    single = draw(st.sampled_from([100, 400, 777]))
    return disks.small_drive(
        capacity=0,
        heads=draw(st.integers(1, 3)),
        zones=draw(st.lists(st.tuples(st.integers(2, 20), st.integers(4, 60)), min_size=1, max_size=3)),
        rotation=draw(st.sampled_from([3000, 6000, 5999])),
        seek_single=single,
        seek_average=3 * single,
        seek_full=6 * single,
        read_ahead=SECTOR * draw(st.sampled_from([0, 1, 8, 40])),
        write_behind=SECTOR * draw(st.sampled_from([0, 1, 8, 40])),
        queue_depth=draw(st.sampled_from([1, 2, 8])),
        scheduler=draw(st.sampled_from(SCHEDULERS.names())),
    )


@st.composite
def request_streams(draw: st.DrawFn, capacity: int, most: int = 30, longest: int = 16) -> Requests:
    """Up to `most` requests of all kinds and at most `longest` sectors to `capacity` bytes, some of which wait for earlier ones."""
    sectors = capacity // SECTOR
    rows = draw(
        st.lists(
            st.tuples(
                st.sampled_from([READ, WRITE, WRITE, TRIM, FLUSH]), st.integers(0, sectors - 1), st.integers(1, longest), st.integers(0, 9)
            ),
            max_size=most,
        )
    )
    operations, offsets, lengths, thinks = np.array(rows, np.int64).reshape(-1, 4).T
    requests = make_requests(operations, offsets * SECTOR, np.minimum(lengths, sectors - offsets) * SECTOR, think=10 * thinks)
    for row in range(len(rows)):
        requests["dependency"][row] = draw(st.integers(-1, row - 1)) if row else -1
        requests["stream"][row] = draw(st.integers(0, 4))
        if operations[row] == WRITE:
            requests["flags"][row] = draw(st.sampled_from([0, 0, FORCE_UNIT_ACCESS]))
    return requests


@st.composite
def traces(draw: st.DrawFn, capacity: int = 1 << 20, most: int = 30) -> pa.RecordBatch:
    """Recorded requests as `traces.file.schema` has them: reads and writes in order of arrival, timed."""
    requests = draw(request_streams(capacity, most))
    requests = requests[(requests["operation"] == READ) | (requests["operation"] == WRITE)]
    arrival = np.cumsum(draw(st.lists(st.integers(0, 10**6), min_size=len(requests), max_size=len(requests))), dtype=np.int64)
    columns = {name: requests[name] for name in ("operation", "offset", "length", "stream", "flags")}
    return make_batch(columns | {"arrival": arrival})


@st.composite
def key_codes(draw: st.DrawFn, most: int = 160) -> Integers:
    """Keys of a relation: duplicates, heavy skew, NULLs, negative and huge codes, or none at all."""
    rows = draw(st.integers(0, most))
    domain = draw(st.sampled_from([1, 3, 40, 1000]))
    seed = draw(st.integers(0, 1 << 20))
    rng = np.random.default_rng(seed)
    codes: Integers = rng.integers(-domain // 2, domain, rows)
    codes = np.where(rng.random(rows) < draw(st.sampled_from([0, 0.1, 0.9])), draw(st.sampled_from(EXTREME_KEYS)), codes)
    return np.sort(codes)[::-1].copy() if draw(st.booleans()) else codes


def relations(name: str = "r", most: int = 160, **layout: Any) -> st.SearchStrategy[HeapFile]:
    """Files of relations with keys of every kind; `layout` as `flashsim.testing.strict_driver.relation_file` takes it."""
    return key_codes(most).map(lambda codes: relation_file(name, codes, **layout))


def edges(pages: int = 10, most: int = 30) -> st.SearchStrategy[list[tuple[int, int]]]:
    """Pairs of different pages, of which some may stand several times."""
    page = st.integers(0, pages - 1)
    return st.lists(st.tuples(page, page).filter(lambda ends: ends[0] != ends[1]), max_size=most)


def page_graphs(pages: int = 10, most: int = 30) -> st.SearchStrategy[PageGraph]:
    """Graphs of pages that must meet in memory."""
    return edges(pages, most).map(lambda ends: PageGraph.of([u for u, _ in ends], [v for _, v in ends], pages))


@st.composite
def crash_histories(
    draw: st.DrawFn, restart: str = "mmr", extension: str = "", checkpoints: str = "", without: tuple[str, ...] = ()
) -> CrashHistory:
    """Histories of transactions to crash, by one restart design; of extensions and checkpoints any where none is named.

    A crash point is an event of such a history: `flashsim.experiments.crashing.injection.Injection` tries all of them.
    """
    reference = st.tuples(st.integers(0, 5), st.booleans())
    transactions = draw(st.lists(st.lists(reference, min_size=1, max_size=3).map(tuple), min_size=1, max_size=15))
    seed, extension = draw(st.integers(0, 3)), extension or draw(st.sampled_from(EXTENSIONS))
    return CrashHistory(seed, extension, restart, checkpoints or draw(st.sampled_from(CHECKPOINTS)), tuple(transactions), without)


WHOLE = (
    st.integers(-(2**63), 2**63 - 1)
    | st.integers(-300, 300)
    | st.sampled_from([0, 1, 127, 128, -128, -129, 2**47 - 1, 2**47, -(2**47) - 1])
)
DOUBLES = st.floats() | st.integers(-(2**50), 2**50).map(float) | st.sampled_from([-0.0, 2.0**47, -(2.0**47)])
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
BLOBS = st.binary(max_size=40)
COLUMNS = [
    (pa.int64(), WHOLE),
    (pa.int8(), st.integers(-128, 127)),
    (pa.uint32(), st.integers(0, 2**32 - 1)),
    (pa.uint64(), st.integers(0, 2**64 - 1)),
    (pa.float64(), DOUBLES),
    (pa.float32(), st.floats(width=32)),
    (pa.string(), TEXTS),
    (pa.large_string(), TEXTS.map(lambda text: text * 3)),
    (pa.binary(), BLOBS),
    (pa.bool_(), st.booleans()),
    (pa.date32(), st.dates()),
    (pa.time64("us"), st.times()),
    (pa.timestamp("us"), st.datetimes()),
    (pa.decimal128(20, 4), st.integers(-(10**18), 10**18).map(lambda value: Decimal(value) / 10_000)),
    (pa.null(), st.none()),
]


@st.composite
def mixed_column(draw: st.DrawFn, rows: int) -> pa.Array:
    """A column of several storage classes."""
    classes = np.array(draw(st.lists(st.integers(0, 3), min_size=rows, max_size=rows)), np.int8)
    values = [
        (WHOLE | st.none(), pa.int64()),
        (st.floats(allow_nan=False), pa.float64()),
        (TEXTS, pa.large_string()),
        (BLOBS, pa.large_binary()),
    ]
    return mixed_array(classes, *(pa.array(draw(st.lists(kind, min_size=rows, max_size=rows)), type_) for kind, type_ in values))


@st.composite
def tables(draw: st.DrawFn, max_rows: int = 30, max_columns: int = 4) -> pa.Table:
    """A table with columns of all types, NULLs, and awkward names."""
    rows = draw(st.integers(0, max_rows))
    names = draw(
        st.lists(
            st.sampled_from(["a", "B", "select", 'quo"te', "two words", "ß", "1", "x,y", "c)"]),
            min_size=1,
            max_size=max_columns,
            unique=True,
        )
    )
    columns = []
    for _ in names:
        if draw(st.integers(0, 5)) == 0:
            columns.append(draw(mixed_column(rows)))
        else:
            kind, values = draw(st.sampled_from(COLUMNS))
            columns.append(pa.array(draw(st.lists(values | st.none(), min_size=rows, max_size=rows)), kind))
    return pa.table(columns, names=names)


def relation_of(table: pa.Table, column: int = 0, name: str = "t") -> Relation:
    """A table as a relation whose key is one of its columns."""
    records = TableRecords(name, table)
    return load_pair(records, records, table.column_names[column], table.column_names[column])[0]
