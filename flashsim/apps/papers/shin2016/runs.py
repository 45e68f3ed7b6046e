"""The paper's runs: TPC-H's orders are read and partitioned once, and all three drives serve what that asks for in one pass.

Those of the benchmark of section 2.4 are writes that are handed over at once.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from algorithms.files import temporary_files
from algorithms.hashing.buckets import partition
from algorithms.partitioning.base import PartitionBuffers, PartitionParameters, bucket_layouts
from flashsim.core.request import Integers
from flashsim.core.units import KIB, MIB, SECONDS
from flashsim.device import presets
from flashsim.device.device import Device
from flashsim.execution import cpu as cpus
from flashsim.execution.drivers import run
from flashsim.execution.machine import Machine
from flashsim.execution.requests import Algorithm, Blocks, Phase, Read, Request, rewrite
from flashsim.experiments.bench import aio
from flashsim.experiments.bench.aio import FILE, Grid
from flashsim.experiments.bench.targets import SimulatedTarget
from flashsim.experiments.bench.uflip import Method
from flashsim.experiments.runs.drives import DriveInUse, TimedDrive
from flashsim.experiments.runs.jobs import Job, Settings
from flashsim.ssd.parameters import SsdParameters
from flashsim.storage.attributes import Attribute
from flashsim.storage.columns import column_of
from flashsim.storage.heap_file import HeapFile, heap_file
from flashsim.storage.relation import Relation
from flashsim.storage.source.do2009 import PaperRecords
from models.allocation.divisions import grace_hash

DEVICES = {"ioDrive": "iodrive-slc-160gb", "P300": "micron-p300", "Vertex 3": "ocz-vertex-3"}
CPU = "hexacore-2016"
TRADITIONAL, N_HASH = METHODS = ("traditional", "n-hash")
LABELS = {TRADITIONAL: "original", N_HASH: "N-Hash"}
PAGE_SIZE = 8192
#: Section 4.1: orders at scale factor 10, and the one number of pages with which equations (1) to (3) give all of table 1's rows.
SCALE_FACTOR, PAGES, TUPLES = 10, 268_000, 15_000_000
#: Pages of memory a MB of table 1: of 128 pages of 8 KiB a fortieth is withheld, in every row.
PER_MB, SHARE = 128, 0.975
#: Bytes of all columns but the key, from the least on, with which rows are as long as TPC-H's orders with keys of 8 bytes.  What varies is
#: a comment of 19 to 78 letters; of more letters than the most, PostgreSQL would store the length in 4 bytes.
_LEAST, _LENGTHS, _MOST = 76, 60, 126


@dataclass(frozen=True)
class BucketSetup:
    """One run: a method, how many buckets, and the buffers in pages, but sub-buffers in bytes, or 0 for the paper's rule.

    With `page_io` every write is of one page; a read is of the input buffer all the same.
    """

    method: str
    buckets: int
    output: int
    input: int
    page_io: bool = False
    sub_buffer: int = 0

    @property
    def name(self) -> str:
        kind = ", page-sized I/O" if self.page_io else ""
        return f"{LABELS[self.method]}, {self.buckets} partitions, buffers of {self.output} and {self.input} pages{kind}"

    def by(self, method: str) -> "BucketSetup":
        return replace(self, method=method)

    def job(self, settings: Settings) -> Job:
        """The run; it takes long where buffers are small, and requests many."""
        job = Job.of(run_partition, self.name, setup=vars(self), scale=settings.scale, seed=settings.seed)
        return replace(job, weight=1 / self.input + 1 / self.output)


def grace_setup(memory: float, pages: int = PAGES, share: float = SHARE) -> BucketSetup:
    """The original method with Grace hash's buffers for `memory` MB of memory (equations 1 to 3), of which a share is used."""
    division = grace_hash(pages, pages, int(memory * PER_MB * share))
    return BucketSetup(TRADITIONAL, division.buckets, division.output, division.input)


class Orders(PaperRecords):
    """TPC-H's orders: the foreign key, and padding as long as all other columns."""

    def attributes(self) -> tuple[Attribute, ...]:
        key, padding = self.types
        return Attribute("o_custkey", key, key.bit_width // 8), Attribute("padding", padding, _MOST, varies=True)

    def take(self, rows: Integers) -> pa.Table:
        lengths = np.minimum(_MOST, _LEAST + (np.asarray(rows, np.int64) * 2_654_435_761 >> 8) % _LENGTHS)
        ends = np.concatenate([[0], np.cumsum(lengths)])
        letters = pa.py_buffer(np.full(ends[-1], ord("x"), np.uint8))
        padding = pa.LargeStringArray.from_buffers(len(lengths), pa.py_buffer(ends), letters)
        return pa.table({"o_custkey": column_of(self.keys[rows]), "padding": padding})


@lru_cache(maxsize=1)
def orders(scale: float, seed: int) -> HeapFile:
    """The relation on PostgreSQL's pages: its foreign keys as TPC-H's generator draws them."""
    records = Orders("orders", SCALE_FACTOR * scale, seed)
    return heap_file(Relation("orders", "o_custkey", records.keys.astype(np.int32), records), PAGE_SIZE, page_format="postgresql")


def run_partition(setup: Mapping[str, Any], scale: float, seed: int, devices: Mapping[str, str] = DEVICES) -> dict[str, Any]:
    """One run, JSON-ready: by drive the seconds of reads, writes, CPU work and all; and how many requests there were."""
    return on_drives(BucketSetup(**setup), {drive: presets.load(preset) for drive, preset in devices.items()}, scale, seed)


def on_drives(setup: BucketSetup, drives: Mapping[str, presets.Preset], scale: float, seed: int) -> dict[str, Any]:
    file, cpu = orders(scale, seed), cpus.load(CPU)
    timed = {name: TimedDrive(preset) for name, preset in drives.items()}
    machines = [Machine([drive], cpu, name=name) for name, drive in timed.items()]
    by_drive: dict[str, Any] = {}
    for cost in run(lambda: algorithm_of(setup, file, in_series=True), [file], machines):
        total, drive = cost.total(), timed[cost.machine]
        times = {"total": total.total_time, "read": drive.read_time, "write": drive.write_time, "cpu": total.cpu_time}
        by_drive[cost.machine] = {name: time / SECONDS for name, time in times.items()} | {"reads": total.reads, "writes": total.writes}
    return by_drive


#: Values of the drives' parameters by assumption that is changed; without half of its channels a drive has as much flash, on larger dies.
VARIANTS: Mapping[str, Callable[[SsdParameters], dict[str, int]]] = {
    "as assumed": lambda usual: {},
    "no write buffer": lambda usual: {"write_buffer": 0},
    "write buffer of 64 KiB": lambda usual: {"write_buffer": 64 * KIB},
    "write buffer of 256 KiB": lambda usual: {"write_buffer": 256 * KIB},
    "write buffer of 4 MiB": lambda usual: {"write_buffer": 4 * MIB},
    "half the channels": lambda usual: {"channels": usual.channels // 2, "blocks_per_plane": 2 * usual.blocks_per_plane},
    "programs take half as long": lambda usual: {
        "write_latency": usual.write_latency - usual.program // 2, "program": usual.program // 2,
    },
}  # fmt: skip


def run_variants(setup: Mapping[str, Any], scale: float, seed: int) -> dict[str, Any]:
    """One run on drives that differ from the presets in one assumption, JSON-ready: as `run_partition`, by drive and variant."""
    drives = dict[str, presets.Preset]()
    for drive, name in DEVICES.items():
        usual = presets.load(name).flash
        assert usual is not None
        drives |= {f"{drive}, {variant}": DriveInUse(name, changes(usual)).load() for variant, changes in VARIANTS.items()}
    return on_drives(BucketSetup(**setup), drives, scale, seed)


def algorithm_of(setup: BucketSetup, file: HeapFile, *, in_series: bool = False) -> Algorithm:
    buffers = PartitionBuffers(input=setup.input, output=setup.output, buckets=setup.buckets)
    parameters = PartitionParameters(setup.method, page_io=setup.page_io, sub_buffer=setup.sub_buffer, in_series=in_series)
    (layout,) = bucket_layouts([file], buffers, parameters)
    bucket_pages = -(-file.pages // setup.buckets) * (file.page_size // layout.page_size)
    files = temporary_files(f"{setup.method}/orders", "bucket", setup.buckets, layout, bucket_pages)
    yield Phase("partition")
    yield from rewrite(partition(file, files, 0, buffers, parameters), _in_blocks)


def _in_blocks(request: Request) -> Request:
    if isinstance(request, Blocks):
        return replace(request, page_io=False)
    if isinstance(request, Read):
        return replace(request, starts=request.starts[:1], counts=request.counts.sum(keepdims=True))
    return request


#: Sizes of 4 KB to 2 MB, and levels of 1 to 512; beyond 64 at once those sizes only that need them.
_SIZES = [4 * KIB << power for power in range(10)]
_GRIDS = [Grid.of(_SIZES, [1 << power for power in range(7)]), Grid.of(_SIZES[:5], [128, 256, 512])]
#: Measurements that suffice to judge the claim, at small scales.
_FEW = [Grid.of([4 * KIB, 8 * KIB, 32 * KIB, 64 * KIB], [1, 512]), Grid.of([MIB], [1])]


def bandwidths(drive: str, whole: bool, seed: int) -> list[dict[Any, Any]]:
    """Every size with every level on one drive, JSON-ready: a record a run (`flashsim.experiments.bench.uflip.COLUMNS`)."""
    target = SimulatedTarget(Device.open(DEVICES[drive]), FILE)
    grids = _GRIDS if whole else _FEW
    return [run for grid in grids for run in aio.run_all(target, grid, Method(seed=seed), ["write"])[2].to_dict("records")]
