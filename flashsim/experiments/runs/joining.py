"""One join, from the names of its sources to what it cost, on simulated devices or a real one."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from algorithms.joins.base import JOINS, JoinOptions, JoinParameters, join_options, partitioning_of, plan
from algorithms.late_fetch.columns import with_digests
from algorithms.partitioning.base import PartitionBuffers, bucket_layouts
from flashsim.core.errors import InvalidParameterError, UnknownNameError
from flashsim.core.options import options_in
from flashsim.core.protocols import Progress, RunObserver, Sink
from flashsim.core.units import MIB, SECONDS, format_size
from flashsim.device import presets
from flashsim.device.file import RealDevice
from flashsim.execution import cpu as cpus
from flashsim.execution.backend import ResultRows
from flashsim.execution.cpu import CpuModel
from flashsim.execution.drivers import check_real_placement, needed_size, room_taken, run
from flashsim.execution.machine import Machine
from flashsim.execution.recording import RequestRecording, simulate_again
from flashsim.execution.run import ConcurrentRun, PhaseCost, Run
from flashsim.experiments.runs.drives import DriveInUse, HeldDrive, disk_of
from flashsim.storage.heap_file import HeapFile, heap_file
from flashsim.storage.layout import PAGE_FORMAT, check_page_size
from flashsim.storage.placement import PLACEMENTS
from flashsim.storage.relation import Relation
from flashsim.storage.source import Source, load_pair, open_source
from models.allocation.buffers import Allocation, GraceAllocation, HybridAllocation
from models.disk import Disk

#: Drives that are held at once where the join's requests are recorded: the others take them afterwards.
_TOGETHER = 4


@dataclass(frozen=True)
class JoinSetting:
    """The setting of a join: its algorithm, memory, I/O, placement and options."""

    algorithm: str
    #: The buffer pool, in pages.
    memory: int
    #: Requests of one page instead of whole buffers.
    page_io: bool = False
    #: A member of `flashsim.storage.placement`, or the path of a Python file that is one.
    placement: str = "packed"
    #: The device preset whose figures divide the buffers; by default the device of the run (the first of several).
    buffers_for: str | None = None
    #: A CPU preset, `flashsim.execution.cpu.BY_YEAR`, or None: then CPU work takes no time.
    cpu: str | None = cpus.BY_YEAR
    #: Cores of the host; None: those of the CPU preset.
    cores: int | None = None
    #: The join's own options that are given, by name; others have their defaults.
    given: Mapping[str, Any] = field(default_factory=dict)

    @property
    def options(self) -> JoinOptions:
        """The join's own options."""
        return JOINS.load(self.algorithm).OPTIONS(**self.given)

    def parameters(self, disk: Disk | None = None) -> JoinParameters:
        """The join's parameters; buffers are divided for the disk."""
        parameters = JoinParameters(self.memory, self.page_io, options=self.options)
        return parameters if disk is None else replace(parameters, latency_ratio=disk.latency_ratio, access_ratio=disk.access_ratio)

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready, with the options of all joins: None for one that is not given."""
        own = {name: value for name, value in vars(self).items() if name not in ("cores", "given")}
        return own | {name: self.given.get(name) for name in join_options()} | {"cores": self.cores}

    def cpu_model(self, model: CpuModel | None = None) -> CpuModel | None:
        """The prices of its preset, or other ones, and the cores that they are for."""
        cpu = model or (cpus.load(self.cpu) if self.cpu else None)
        return cpu if cpu is None or self.cores is None else cpu.on_cores(self.cores)

    def cpus_on(self, devices: Sequence[presets.Preset | None], model: CpuModel | None = None) -> list[tuple[str | None, CpuModel | None]]:
        """The CPU preset that prices work on each device, and its prices, or other ones: the same object for devices of one CPU."""
        names = [cpus.choose(self.cpu, device) for device in devices]
        models = {name: replace(self, cpu=name).cpu_model(model) for name in names}
        return [(name, models[name]) for name in names]


@dataclass(frozen=True)
class PhaseSeconds:
    """A phase of a join, or all of it, on a device, JSON-ready; times are seconds, but of all seeks together ns.

    Of several strands, I/O and CPU seconds are those of all together, and the total is what has elapsed.
    """

    phase: str
    requests: int
    pages: int
    io: float
    cpu: float
    total: float
    user: float
    kernel: float
    seeks: int
    seek_time: int

    @classmethod
    def of(cls, cost: PhaseCost, elapsed: int | None = None) -> PhaseSeconds:
        """A run as a driver counted it; the total is the sum of all times unless it is given, ns."""
        times = (cost.io_time, cost.cpu_time, cost.total_time if elapsed is None else elapsed, cost.user_time, cost.kernel_time)
        io, cpu, total, user, kernel = (time / SECONDS for time in times)
        return cls(cost.name, cost.requests, cost.pages, io, cpu, total, user, kernel, cost.seeks, cost.seek_time)


@dataclass(frozen=True)
class JoinResult:
    """The cost of a join on every device."""

    setting: JoinSetting
    files: tuple[HeapFile, HeapFile]
    parameters: JoinParameters
    allocation: Allocation
    #: Runs, a device each; `disks` are the devices' nominal figures, None of a real device; `cpus` the presets that price work there.
    runs: Sequence[Run | ConcurrentRun]
    disks: Sequence[Disk | None]
    cpus: list[str | None]
    #: Drives that it ran on; none of a real device.
    drives: Sequence[HeldDrive] = ()

    @property
    def bucket_page_size(self) -> int:
        """Bytes of a page of the buckets, which are counted as they are; of joins that make none, of a relation's page."""
        a = self.allocation
        if not isinstance(a, GraceAllocation | HybridAllocation):
            return self.files[0].page_size
        return bucket_layouts(self.files, PartitionBuffers(a.input, a.output, a.buckets), partitioning_of(self.parameters))[0].page_size

    def phase_seconds(self, index: int = 0) -> list[PhaseSeconds]:
        """Phases on one of the devices; all phases together are the last."""
        run = self.runs[index]
        if isinstance(run, ConcurrentRun):
            phases = [PhaseSeconds.of(cost, run.time_in(cost.name)) for cost in run.phases]
            return [*phases, PhaseSeconds.of(run.total(), run.elapsed)]
        return [PhaseSeconds.of(cost) for cost in (*run.phases, run.total())]

    def emit(self, results: ResultRows) -> None:
        """Hand out the pairs of row ids again, in the same order but where strands make them: the join runs once more, without a device."""
        on_volume = _with_digests(self.setting, self.files)
        algorithm = partial(plan, self.setting.algorithm, *self.files, self.parameters, self.allocation)
        run(algorithm, on_volume, placement=self.setting.placement, results=results)

    def as_dict(self) -> dict[str, Any]:
        relations = [{"name": file.name, "rows": len(file.relation), "pages": file.pages} for file in self.files]
        return {
            "setting": self.setting.as_dict() | {"cpu": self.cpus[0] if len({*self.cpus}) == 1 else cpus.BY_YEAR},
            "relations": relations,
            "allocation": vars(self.allocation),
            "bucket_page_size": self.bucket_page_size,
            "machines": [run.as_dict() | {"cpu": cpu} for run, cpu in zip(self.runs, self.cpus, strict=True)],
        }


def open_pair(r: str | Source, s: str | Source, on: str) -> tuple[Relation, Relation]:
    """The relations of two sources, given or by name, joined on ``COLUMN`` or ``COLUMN=COLUMN``.

    Raises
    ------
    FlashsimError
        A source or column does not exist, cannot be read, or cannot be compared.
    """
    r_source, s_source = (open_source(source) if isinstance(source, str) else source for source in (r, s))
    r_column, equals, s_column = on.partition("=")
    if not r_column or (equals and not s_column):
        raise InvalidParameterError("on", repr(on), "it must be COLUMN or COLUMN=COLUMN")
    if on in r_source.names and on in s_source.names:  # a name may hold the sign
        r_column = s_column = on
    return load_pair(r_source, s_source, r_column, s_column or r_column)


def wanted_columns(setting: JoinSetting, relations: tuple[Relation, Relation]) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """The columns of R and of S in the result; None: all."""
    if setting.given.get("columns") == ():
        raise InvalidParameterError("columns", "none", "a result has one at least")
    options = setting.options
    columns = options.columns_of("R"), options.columns_of("S")
    for own, relation in zip(columns, relations, strict=True):
        for name in own or ():
            if name not in relation.records.names:
                raise UnknownNameError(f"column of {relation.title}", name, relation.records.names)
    return columns


def lay_out(relation: Relation, page_size: int, page_format: str = PAGE_FORMAT) -> HeapFile:
    """A relation's heap file: of the published length where its source knows one, and pages hold whole rows; otherwise full pages."""
    published_pages = getattr(relation.records, "published_pages", None) if page_format == PAGE_FORMAT else None
    return heap_file(relation, page_size, published_pages(page_size) if published_pages else None, page_format)


def memory_pages(memory: int, page_size: int, page_format: str = PAGE_FORMAT) -> int:
    """Whole pages of a buffer pool given in bytes."""
    check_page_size(page_size, page_format)
    if memory < page_size:
        raise InvalidParameterError("memory", format_size(memory), f"a page takes {format_size(page_size)}")
    return memory // page_size


def check_names(setting: JoinSetting, device: str | None) -> None:
    """Refuse an unknown join, CPU or device preset before any data are read; no device stands for a real one."""
    join = JOINS.load(setting.algorithm)
    takes = options_in(join.OPTIONS)
    for name, option in join_options().items():
        value = setting.given.get(name)
        if value is not None and name not in takes:
            raise InvalidParameterError(name.replace("_", "-"), option.text(value), f"{setting.algorithm} does not take it")
        if value is not None and option.kind == "size" and value < 1:
            raise InvalidParameterError(name.replace("_", "-"), f"{value} B", "it must be at least 1 B")
    join.check(setting.parameters())
    if setting.cores is not None and (device is None or not setting.cpu):
        bound = "a real device's strands have this machine's" if device is None else "without a CPU preset work takes no time on any"
        raise InvalidParameterError("cores", setting.cores, bound)
    setting.cpus_on([None])
    for preset in (device, setting.buffers_for):
        if preset is not None:
            presets.load(preset)
    if device is None:
        check_real_placement(setting.placement)
    else:
        PLACEMENTS.load(setting.placement)


def divide(setting: JoinSetting, files: tuple[HeapFile, HeapFile], preset: presets.Preset) -> tuple[JoinParameters, Allocation]:
    """A join's parameters and its default buffers for a device."""
    r_pages, s_pages = sorted(file.pages for file in files)
    return divide_pages(setting, r_pages, s_pages, disk_of(preset, files[0].page_size))


def divide_pages(setting: JoinSetting, r_pages: int, s_pages: int, disk: Disk) -> tuple[JoinParameters, Allocation]:
    """A join's parameters and its default buffers, from the lengths of its relations."""
    parameters = setting.parameters(disk)
    return parameters, JOINS.load(setting.algorithm).allocate(r_pages, s_pages, parameters)


def simulate_join(
    setting: JoinSetting,
    files: tuple[HeapFile, HeapFile],
    devices: Sequence[str | HeldDrive],
    *,
    allocation: Allocation | None = None,
    divided_for: HeldDrive | None = None,
    cpu: CpuModel | None = None,
    sink: Sink | None = None,
    results: ResultRows | None = None,
    recording: RequestRecording | None = None,
    observer: Callable[[Machine], RunObserver] | None = None,
) -> JoinResult:
    """Run one join on simulated devices, all in one pass.

    Parameters
    ----------
    devices
        Presets, by name or TOML file, of fresh drives; or drives that have a history or stand ready.
    allocation, divided_for
        The join's buffers, if not as `setting` says; the drive whose figures set its parameters, if not the first or that of `setting`.
    cpu
        Prices other than those of the setting's preset.
    sink, observer
        Take the requests of the first device; the observer is made for its machine.
    results
        Takes pairs of row ids.
    recording
        Takes the join's requests; those of such a join over such files are taken from it, which saves the join's work.

    FlashsimError: an unknown name, too little memory, or a device too small.
    """
    drives: list[HeldDrive] = [DriveInUse(drive) if isinstance(drive, str) else drive for drive in devices]
    loaded = [drive.load() for drive in drives]
    figures = presets.load(setting.buffers_for) if setting.buffers_for else divided_for.load() if divided_for else loaded[0]
    parameters, usual = divide(setting, files, figures)
    allocation, serial = allocation or usual, parameters.strands == 1
    priced = setting.cpus_on(loaded, cpu)
    count, size, on_volume = PLACEMENTS.load(setting.placement).DEVICE_MAP.devices, _volume_size(files), _with_digests(setting, files)
    told = replace(parameters, in_series=serial and not JOINS.load(setting.algorithm).FETCHES)
    algorithm = partial(plan, setting.algorithm, *files, told, allocation)
    algorithm()  # refuses before drives are made ready
    of, runs = (setting.algorithm, parameters, allocation), list[Run | ConcurrentRun]()
    recorded = recording if serial and results is None else None
    together = _TOGETHER if recorded is not None else len(drives)
    for begin in range(0, len(drives), together):
        if begin:
            machines = []
            gc.collect()  # drives and their machines refer to each other
        those = list(zip(drives, loaded, priced, strict=True))[begin : begin + together]
        machines = [_machine(drive, count, size, model, preset.name) for drive, preset, (_, model) in those]
        machines[0].sink = None if begin else sink
        machines[0].observer = observer(machines[0]) if observer and not begin else None
        if recorded and recorded.holds(of, files):
            runs += simulate_again(recorded, files, machines, setting.placement)
            continue
        made = partial(recorded.record, algorithm(), of, files) if recorded is not None else algorithm
        runs += run(made, on_volume, machines, strands=not serial, placement=setting.placement, results=results)
    disks = [disk_of(preset, files[0].page_size) for preset in loaded]
    return JoinResult(setting, files, parameters, allocation, runs, disks, [name for name, _ in priced], drives)


def _machine(drive: HeldDrive, count: int, size: int, cpu: CpuModel | None, name: str) -> Machine:
    """A machine with so many copies of a drive."""
    return Machine([drive.device(size) for _ in range(count)], cpu, None, name, drive.start, drive.full, drive.scale)


def _with_digests(setting: JoinSetting, files: tuple[HeapFile, HeapFile]) -> tuple[HeapFile, ...]:
    return with_digests(files) if setting.given.get("digests_stored") else files


def size_for_join(setting: JoinSetting, files: tuple[HeapFile, HeapFile], parameters: JoinParameters, allocation: Allocation) -> int:
    """Bytes that a join needs of a real device; of one that fetches rows, or makes pages of its own, as it takes without a device."""
    least = needed_size(files)
    if not JOINS.load(setting.algorithm).FETCHES and "partition" not in setting.given:
        return least
    size = room_taken(plan(setting.algorithm, *files, parameters, allocation), _with_digests(setting, files), setting.placement)
    if parameters.strands > 1:  # who comes first decides how many pages are not full
        size += parameters.memory * files[0].page_size
    return max(least, size)


def _volume_size(files: tuple[HeapFile, HeapFile]) -> int:
    """Bytes of a volume that a join may touch: relations, temporary files that are at most as long, and the file system's own blocks."""
    return 3 * sum(file.pages * file.page_size for file in files) + 256 * MIB


@dataclass(frozen=True)
class RealFile:
    """A file or block device that a join runs on."""

    path: Path
    #: Without it the run is refused.
    allow_write: bool = False
    #: Permission to overwrite a file that exists.
    force: bool = False


#: Divides the buffers on a real device unless another preset is named: the HDD whose figures the cost model was tried with.
BUFFERS_FOR_REAL = "toshiba-5400-320gb"


def run_join_on_file(
    setting: JoinSetting,
    files: tuple[HeapFile, HeapFile],
    target: RealFile,
    *,
    allocation: Allocation | None = None,
    sink: Sink | None = None,
    results: ResultRows | None = None,
    progress: Progress | None = None,
) -> JoinResult:
    """Run one join on a real file or block device, with other buffers than the setting's if given; a file made for it is removed."""
    check_names(setting, None)
    setting = replace(setting, buffers_for=setting.buffers_for or BUFFERS_FOR_REAL, cpu=None)
    parameters, usual = divide(setting, files, presets.load(setting.buffers_for or ""))
    allocation = allocation or usual
    on_volume = _with_digests(setting, files)  # before anything is planned: a plan finds stored digests at its relations
    size = size_for_join(setting, files, parameters, allocation)
    with RealDevice(target.path, size, allow_write=target.allow_write, replace=target.force) as device:
        runs = run(
            partial(plan, setting.algorithm, *files, parameters, allocation),
            on_volume,
            device,
            strands=parameters.strands > 1,
            placement=setting.placement,
            sink=sink,
            results=results,
            progress=progress,
        )
        device.remove_if_new()
    return JoinResult(setting, files, parameters, allocation, runs, [None], [None])
