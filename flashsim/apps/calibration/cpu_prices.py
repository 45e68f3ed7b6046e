"""The CPU prices of the machine that this runs on: a preset for ``--cpu``, and a table of how they were measured.

User prices are those of flashsim's own operations on real tuples.  A call handles many; of its repeats the least CPU time of the thread
counts: what else happens on the machine only ever adds to it.  Only a virtual machine's clock may also lose time, which its host took
from others: so the least hundredth of the repeats is left out.  A long measurement is made in rounds, so that each kind of work has its
share of the quiet times.

The kernel's prices of a call, a request and a byte are those of reads and writes on a temporary file.  Requests of two sizes tell a byte;
the smaller ones, by a call each and by one call for many, tell a call and a request.  The system's clocks of user and system time only
tick, so the thread's CPU time is taken, less that of as many requests without bytes.
"""

import fcntl
import os
import platform
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from algorithms.files import Output, cross, extents, temporary_files
from algorithms.hashing.table import TABLE_SALT, HashTable, hash_keys
from algorithms.sorting.runs import ReplacementSelection
from flashsim.core.errors import FlashsimError, RefusedError, printable
from flashsim.core.processes import cores as available_cores
from flashsim.core.protocols import Progress
from flashsim.core.request import READ, WRITE
from flashsim.core.units import KIB, MIB, NEVER, SECONDS, format_size
from flashsim.device.aio import KernelQueue, in_sets
from flashsim.device.batch import Batch, aligned_buffer
from flashsim.execution.cpu import DEFAULT, KINDS, CpuModel, mean_price
from flashsim.execution.requests import HOST, Work, Write
from flashsim.experiments.presentation.tables import Table
from flashsim.storage.heap_file import heap_file
from flashsim.storage.layout import Layout
from flashsim.storage.rows import key_tuples
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
#: The least number of repeats, however long they take.
_REPEATS = 5
#: The share of the repeats that may be less than the least that counts.
_LEFT_OUT = 0.01
#: About the ns of a round over all calls.
_ROUND = 15 * SECONDS
#: Sizes of requests: none, a page, and the largest command.
_SIZES = (0, 4 * KIB, 128 * KIB)
#: Reads and writes that are timed at a time, at places as far apart as the largest, and the file that holds them.
_REQUESTS = 128
_AREA = _REQUESTS * _SIZES[-1]
#: Calls that hand over as many requests: a set of reads, and one of writes.
_SETS = 2
_COMMENTS = (
    "Measured on one machine by flashsim device calibrate --cpu: its own operations on tuples, and requests to a file.",
    "The kernel's prices are those of that file's device, for either kind.",
)


@dataclass(frozen=True)
class CpuPrice:
    """A price: ns, the spread of the repeats as a share of it, and its source."""

    name: str
    value: float
    spread: float
    source: str


@dataclass(frozen=True)
class CallTimes:
    """The least ns of a call, and how far the median lies above it, as a share."""

    least: float
    spread: float

    @classmethod
    def of_rounds(cls, rounds: Sequence["CallTimes"]) -> "CallTimes":
        """The least of all rounds, and how far the median of their medians lies above it."""
        if len(rounds) == 1:
            return rounds[0]
        least = min(each.least for each in rounds)
        return cls(least, float(np.median([each.least * (1 + each.spread) for each in rounds])) / least - 1)


def user_prices(duration: int, seed: int, progress: Progress | None = None) -> list[CpuPrice]:
    """The price of every kind of work, measured for about `duration` ns in all."""
    operations = _Operations(seed)
    calls = operations.calls()
    times = _repeat_all({kind.value: call for kind, (call, _) in calls.items()}, duration, progress)
    units = dict.fromkeys(Work, _ORDERS)
    units |= {Work.BUILD: len(operations.customers), Work.COMPARE: operations.comparisons, Work.PAGE: operations.file.pages}
    pairs = zip(calls, times.values(), strict=True)
    return [CpuPrice(kind.value, one.least / units[kind], one.spread, calls[kind][1]) for kind, one in pairs]


def _repeat_all(calls: Mapping[str, Callable[[], object]], duration: int, progress: Progress | None) -> dict[str, CallTimes]:
    rounds, times = max(1, duration // _ROUND), dict[str, list[CallTimes]]()
    for number in range(rounds):
        for done, (name, call) in enumerate(calls.items()):
            if progress is not None:
                progress(number * len(calls) + done, rounds * len(calls), name)
            times.setdefault(name, []).append(repeat(call, duration // rounds // len(calls)))
    return {name: CallTimes.of_rounds(each) for name, each in times.items()}


def repeat(call: Callable[[], object], duration: int) -> CallTimes:
    """Repeat a call for about `duration` ns, once more than is counted: the first may compile, and fills caches."""
    call()
    times: list[int] = []
    end = time.perf_counter_ns() + duration
    while len(times) < _REPEATS or time.perf_counter_ns() < end:
        begin = time.thread_time_ns()
        call()
        times.append(time.thread_time_ns() - begin)
    least = max(1.0, float(np.quantile(times, _LEFT_OUT, method="lower")))
    return CallTimes(least, float(np.median(times)) / least - 1)


class _Operations:
    """Customers and orders of do2009, and calls that do one kind of work on them."""

    def __init__(self, seed: int) -> None:
        records = [PaperRecords(name, _SCALE, seed) for name in ("customer", "orders")]
        customer, orders = load_pair(records[0], records[1], KEYS["customer"], KEYS["orders"])
        rows = np.arange(_ORDERS)
        self.layout = Layout(orders, _PAGE)
        tuples = key_tuples(orders.keys(rows), rows)
        self.tuples = replace(tuples, pages=self.layout.pack(tuples))
        self.pages = self.layout.encode(self.tuples)
        self.sizes = self.layout.cell_sizes(self.tuples)
        keys = customer.codes.astype(np.int64)
        self.customers = key_tuples(keys, np.arange(len(keys)))
        self.customer_hashes = hash_keys(keys, TABLE_SALT)
        self.table = HashTable(self.customers, self.customer_hashes)
        strangers = self.tuples.keys + (keys.max() + 1)
        self.strangers = key_tuples(strangers, self.tuples.rows, self.tuples.pages)
        self.stranger_hashes = hash_keys(strangers, TABLE_SALT)
        files = temporary_files("calibration", "bucket", _BUFFERS, self.layout, 0)
        self.output = Output(files, _BUFFER_PAGES, page_io=False)
        self.buffers = rows % _BUFFERS
        self.comparisons = 0
        self.file = heap_file(orders, _PAGE)
        self.volume = Volume([NEVER])
        self.volume.add(self.file)
        self.extents = extents(0, self.file.pages, page_io=True)

    def calls(self) -> dict[Work, tuple[Callable[[], object], str]]:
        """A call that does one kind of work, and its unit in words."""
        runs = f"a comparison of {_ORDERS:,} orders sorted into runs by replacement selection"
        pairs = self.tuples.rows[:2], self.tuples.rows[: _ORDERS // 2]
        probe = partial(self.table.matches, self.strangers, self.stranger_hashes)
        return {
            Work.READ_TUPLE: (lambda: self.layout.decode(self.pages), "decoded from SQLite pages of 8 KiB"),
            Work.WRITE_TUPLE: (self._write, "copied to output buffers and encoded on pages"),
            Work.HASH: (lambda: hash_keys(self.tuples.keys, 0), "keys hashed"),
            Work.BUILD: (lambda: HashTable(self.customers, self.customer_hashes), f"a table built of {len(self.customers):,} customers"),
            Work.PROBE: (lambda: deque(probe(), maxlen=0), "orders looked up that join with none of them"),
            Work.COMPARE: (self._sort, runs),
            Work.EMIT: (lambda: deque(cross(*pairs), maxlen=0), "pairs of row ids made"),
            Work.PAGE: (lambda: self.volume.locate(self.file, *self.extents), "where a page lies, looked up"),
        }

    def _write(self) -> None:
        for request in self.output.append(self.tuples, self.buffers):
            if isinstance(request, Write):
                self.layout.encode(request.tuples)

    def _sort(self) -> None:
        selection = ReplacementSelection(int(self.sizes.sum()) // _SORTED, _ORDERS)
        deque(selection.feed(self.tuples, self.sizes, last=True), maxlen=0)
        self.comparisons = selection.take_comparisons()


def kernel_prices(folder: Path, duration: int, progress: Progress | None = None) -> list[CpuPrice]:
    """The price of a request, of a byte and of a call, measured for about `duration` ns in all; without sets of requests no call's.

    A file without a name is made in `folder`.
    """
    with _file(folder) as (file, how), ExitStack() as stack:
        calls = {f"requests of {format_size(size)}": partial(_serve, file, aligned_buffer(size).data, size) for size in _SIZES}
        with suppress(OSError):  # a kernel without such queues
            queue = stack.enter_context(closing(KernelQueue(_REQUESTS)))
            calls["sets of requests"] = partial(_serve_at_once, queue, file, _SIZES[1])
        empty, small, large, *sets = _repeat_all(calls, duration, progress).values()
    alone, long = ((one.least - empty.least) / _REQUESTS for one in (small, large))
    per_byte = max(0.0, (long - alone) / (_SIZES[2] - _SIZES[1]))
    per_request = max(0.0, alone - per_byte * _SIZES[1])
    source = f"CPU time of reads and writes of {' and '.join(map(format_size, _SIZES[1:]))} {how}"
    prices = [CpuPrice("per_request", per_request, small.spread, source), CpuPrice("per_byte", per_byte, large.spread, source)]
    if sets:
        saving = (_REQUESTS * alone - sets[0].least) / (_REQUESTS - _SETS)
        per_call = min(max(0.0, saving), per_request)
        how = f"CPU time that {_REQUESTS} reads and writes of {format_size(_SIZES[1])} save by {_SETS} calls instead of one each, {how}"
        prices[0] = replace(prices[0], value=per_request - per_call)
        prices.append(CpuPrice("per_call", per_call, sets[0].spread, how))
    return prices


@contextmanager
def _file(folder: Path) -> Iterator[tuple[int, str]]:
    """A file without a name, written once; past the page cache where the file system allows that, and how in words."""
    if not hasattr(os, "O_DIRECT"):
        raise RefusedError("cpu: it times reads and writes past the page cache, which are made on Linux alone")
    try:
        with tempfile.TemporaryFile(dir=folder) as temporary:
            file = temporary.fileno()
            os.posix_fallocate(file, 0, _AREA)
            try:
                fcntl.fcntl(file, fcntl.F_SETFL, fcntl.fcntl(file, fcntl.F_GETFL) | os.O_DIRECT)
                os.pwritev(file, [aligned_buffer(_SIZES[1]).data], 0)
                how = "by O_DIRECT"
            except OSError:
                fcntl.fcntl(file, fcntl.F_SETFL, fcntl.fcntl(file, fcntl.F_GETFL) & ~os.O_DIRECT)
                how = "through the page cache, since the file system has no O_DIRECT"
            for offset in range(0, _AREA, MIB):
                os.pwritev(file, [aligned_buffer(MIB).data], offset)
            yield file, how
    except OSError as problem:
        raise FlashsimError(f"cpu: a temporary file in {folder}: {problem.strerror}") from problem


def _serve(file: int, memory: memoryview, size: int) -> None:
    for place in range(0, _REQUESTS, 2):
        os.preadv(file, [memory[:size]], place * _SIZES[-1])
        os.pwritev(file, [memory[:size]], (place + 1) * _SIZES[-1])


def _serve_at_once(queue: KernelQueue, file: int, size: int) -> None:
    places, memory = np.arange(0, _AREA, _SETS * _SIZES[-1]), aligned_buffer(size)
    for number, operation in enumerate((READ, WRITE)):
        in_sets(queue, Batch(file, operation, places + number * _SIZES[-1], np.full(len(places), size), memory), len(places))


@dataclass(frozen=True)
class CpuPrices:
    """All prices of this machine, and its CPU's model as the system names it."""

    name: str
    prices: Sequence[CpuPrice]
    processor: str = "a CPU whose model is not known"

    def model(self) -> CpuModel:
        value = {price.name: float(f"{price.value:.4g}") for price in self.prices}
        source = {price.name: f"measured: {price.source}; spread {price.spread:.1%}" for price in self.prices}
        kernel = {part: dict.fromkeys(KINDS, value[part]) for part in ("per_request", "per_byte", "per_call") if part in value}
        user = {kind.value: value[kind] for kind in Work}
        sources = {f"user.{kind}": source[kind] for kind in Work}
        sources |= {f"kernel.{kind}.{part}": source[part] for kind in KINDS for part in kernel}
        sources[f"user.{DEFAULT}"] = "measured: the geometric mean of the prices a tuple"
        prices = user | {DEFAULT: mean_price(user)}
        cores, per_call = {HOST: available_cores()}, kernel.get("per_call", {})
        return CpuModel(self.name, prices, kernel["per_request"], kernel["per_byte"], sources, cores, per_call=per_call)

    def text(self) -> str:
        return self.model().as_toml([f"{self.processor}.", *_COMMENTS])

    def table(self) -> Table:
        columns = {"price": "name", "ns": "value", "spread": ("spread", "{:.1%}".format), "source": "source"}
        return Table.of(map(vars, self.prices), columns, digits=3)

    def as_dict(self) -> dict[str, Any]:
        prices = {price.name: {"nanoseconds": price.value, "spread": price.spread, "source": price.source} for price in self.prices}
        return {"name": self.name, "processor": self.processor, "prices": prices}


def processor() -> str:
    """The model of this machine's CPU, and what tells models of one name apart."""
    with suppress(OSError):
        lines = (line.partition(":") for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines())
        says = {name.strip(): printable(value.strip()) for name, _, value in lines}
        if "model name" in says:
            return ", ".join([says["model name"], *(f"{name} {says[name]}" for name in ("cpu family", "model") if name in says)])
    return platform.processor() or platform.machine()


def measure(name: str, folder: Path, *, duration: int, seed: int = 0, progress: Progress | None = None) -> CpuPrices:
    """Measure every price of this machine for about `duration` ns: half of that user prices, half the kernel's.

    The temporary file of 16 MiB in `folder` has no name, so nothing is left of it whatever happens; `seed` is that of the tuples.
    """
    kernel = kernel_prices(folder, duration // 2, progress)  # first, so that a folder that cannot be written is refused at once
    return CpuPrices(name, [*user_prices(duration // 2, seed, progress), *kernel], processor())
