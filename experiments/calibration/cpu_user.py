"""What flashsim's own operations on real tuples cost in user time on this machine.

A call handles many tuples.  Of its repeats the least CPU time of the thread counts: what else happens on the machine only ever adds to it.
"""

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from algorithms.blocks import extents
from algorithms.hashing import TABLE_SALT, HashTable, hash_keys
from algorithms.results import cross
from algorithms.sorting import Selection
from algorithms.temporaries import Output, temporary_files
from flashsim.core.protocols import Progress
from flashsim.core.units import KIB, NEVER
from flashsim.execution.requests import Work, Write
from flashsim.storage.heap_file import heap_file
from flashsim.storage.layout import Layout
from flashsim.storage.rows import keyed
from flashsim.storage.source import load_pair
from flashsim.storage.source.do2009 import KEYS, PaperRecords
from flashsim.storage.volume import Volume

_PAGE = 8 * KIB
#: TPC-H's scale factor of the tuples: 150,000 customers make a table that is larger than most caches.
_SCALE = 1
#: Orders that a call handles.
_ORDERS = 1 << 17
#: Output buffers that tuples are divided among, and the pages of each.
_BUFFERS, _BUFFER_PAGES = 8, 64
#: A sort's memory holds this part of its input.
_SORTED = 4
#: At least so many repeats, however long they take.
_REPEATS = 5


@dataclass(frozen=True)
class Price:
    """One price: ns, how far the repeats spread (a share of it), and how it was measured."""

    name: str
    value: float
    spread: float
    source: str


@dataclass(frozen=True)
class Timed:
    """The least ns of a call, and how far the median lies above it, as a share."""

    least: float
    spread: float


def user_prices(duration: int, seed: int, progress: Progress | None = None) -> list[Price]:
    """The price of every kind of work, measured for about `duration` ns in all."""
    operations = _Operations(seed)
    calls = operations.calls()
    timed: dict[str, Timed] = {}
    for name, call in calls.items():
        if progress is not None:
            progress(len(timed), len(calls), name)
        timed[name] = repeat(call, duration // len(calls))
    return operations.prices(timed)


def repeat(call: Callable[[], object], duration: int) -> Timed:
    """Repeat a call for about `duration` ns, once more than is counted: the first may compile, and fills caches."""
    call()
    times: list[int] = []
    end = time.perf_counter_ns() + duration
    while len(times) < _REPEATS or time.perf_counter_ns() < end:
        begin = time.thread_time_ns()
        call()
        times.append(time.thread_time_ns() - begin)
    least = min(times)
    return Timed(least, float(np.median(times)) / least - 1)


class _Operations:
    """Customers and orders of do2009, and calls that do one kind of work on them."""

    def __init__(self, seed: int) -> None:
        records = [PaperRecords(name, _SCALE, seed) for name in ("customer", "orders")]
        customer, orders = load_pair(records[0], records[1], KEYS["customer"], KEYS["orders"])
        rows = np.arange(_ORDERS)
        self.layout = Layout(orders, _PAGE)
        tuples = keyed(orders.keys(rows), rows)
        self.tuples = replace(tuples, pages=self.layout.pack(tuples))
        self.pages = self.layout.encode(self.tuples)
        self.sizes = self.layout.cell_sizes(self.tuples)
        keys = customer.codes.astype(np.int64)
        self.customers = keyed(keys, np.arange(len(keys)))
        self.customer_hashes = hash_keys(keys, TABLE_SALT)
        self.table = HashTable(self.customers, self.customer_hashes)
        strangers = self.tuples.keys + (keys.max() + 1)
        self.strangers = keyed(strangers, self.tuples.rows, self.tuples.pages)
        self.stranger_hashes = hash_keys(strangers, TABLE_SALT)
        files = temporary_files("calibration", "bucket", _BUFFERS, self.layout, 0)
        self.output = Output(files, _BUFFER_PAGES, page_io=False)
        self.buffers = rows % _BUFFERS
        self.compared = 0
        self.file = heap_file(orders, _PAGE)
        self.volume = Volume([NEVER])
        self.volume.add(self.file)
        self.extents = extents(0, self.file.pages, page_io=True)

    def calls(self) -> Mapping[str, Callable[[], object]]:
        return {
            "read_tuple": lambda: self.layout.decode(self.pages),
            "write_tuple": self._write,
            "page": lambda: self.volume.locate(self.file, *self.extents),
            "hash": lambda: hash_keys(self.tuples.keys, 0),
            "build": lambda: HashTable(self.customers, self.customer_hashes),
            "probe": lambda: deque(self.table.matches(self.strangers, self.stranger_hashes), maxlen=0),
            "compare": self._sort,
            "emit": lambda: deque(cross(self.tuples.rows[:2], self.tuples.rows[: _ORDERS // 2]), maxlen=0),
        }

    def _write(self) -> None:
        for request in self.output.append(self.tuples, self.buffers):
            if isinstance(request, Write):
                self.layout.encode(request.tuples)

    def _sort(self) -> None:
        selection = Selection(int(self.sizes.sum()) // _SORTED, _ORDERS)
        deque(selection.feed(self.tuples, self.sizes, last=True), maxlen=0)
        self.compared = selection.compared()

    def prices(self, timed: Mapping[str, Timed]) -> list[Price]:
        """Ns a unit of each kind of work, in the order of `Work`."""
        units = {
            Work.READ_TUPLE: (_ORDERS, "decoded from SQLite pages of 8 KiB"),
            Work.WRITE_TUPLE: (_ORDERS, "copied to output buffers and encoded on pages"),
            Work.HASH: (_ORDERS, "keys hashed"),
            Work.BUILD: (len(self.customers), f"a table built of {len(self.customers):,} customers"),
            Work.PROBE: (_ORDERS, "orders looked up that join with none of them"),
            Work.COMPARE: (self.compared, f"a comparison of {_ORDERS:,} orders sorted into runs by replacement selection"),
            Work.EMIT: (_ORDERS, "pairs of row ids made"),
            Work.PAGE: (self.file.pages, "where a page lies, looked up"),
        }
        return [Price(kind.value, timed[kind.value].least / units[kind][0], timed[kind.value].spread, units[kind][1]) for kind in Work]
