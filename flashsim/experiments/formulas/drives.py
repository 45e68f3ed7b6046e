"""A device preset as the detailed cost model of joins sees it (`models.ssd_joins`), and a join's buffers divided for it."""

import math
from dataclasses import replace

import numpy as np

from algorithms.joins.base import JOINS
from flashsim.core.errors import InvalidParameterError, RefusedError, UnknownNameError
from flashsim.core.options import options_in
from flashsim.core.units import MILLISECONDS, MILLISECONDS_A_SECOND, SECONDS
from flashsim.device import presets
from flashsim.device.block_layer import MAXIMUM_COMMAND
from flashsim.device.figures import streaming_rate
from flashsim.device.presets import Preset
from flashsim.execution import cpu as cpus
from flashsim.execution.requests import Work
from flashsim.experiments.formulas.comparison import sizes_of
from flashsim.experiments.runs.drives import disk_of
from flashsim.experiments.runs.joining import JoinSetting
from flashsim.hdd.parameters import HddParameters
from flashsim.hdd.state.layout import zones_of
from flashsim.hdd.state.seek import mean_seek, seek_curve
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.timing import timing_of
from flashsim.storage.heap_file import HeapFile
from models import partition_buffers, psync, ssd_buffers, ssd_joins
from models.allocation.buffers import Allocation
from models.partition_costs import Input
from models.psync import Direction, ParallelDrive
from models.ssd_drive import Amplification, DriveModel, LogBlocks, PageMapped, Rounds, Timing
from models.ssd_joins import Problem

#: Rules by which memory is divided: Haas et al., or closed forms for the drive.
RULES = HAAS, DRIVE = ("haas", "drive")
#: The model's layout of temporaries, by the volume's placement; all others put each in one piece.
_LAYOUTS: dict[str, ssd_joins.Layout] = {"packed": "packed", "two-disks": "separate"}


def drive_of(preset: Preset, page_size: int, span: int | None = None) -> DriveModel:
    """A preset's nominal figures for pages of `page_size` bytes; a disk's arm moves within `span` bytes, the whole drive by default."""
    if preset.flash:
        return _flash(preset.flash, page_size)
    if not preset.disk:
        raise RefusedError(f"formula: {preset.name} is a queueing station, which has no formula")
    span = (preset.capacity if span is None else min(span, preset.capacity)) // (preset.array.drives if preset.array else 1)
    return _disk(preset, preset.disk, page_size, span)


def _disk(preset: Preset, parameters: HddParameters, page_size: int, span: int) -> DriveModel:
    """The figures of a disk: with read-ahead and write-behind, a request that continues the one before takes only its overhead.

    A drive that acknowledges a command before it is on the media moves and writes while the link still sends.  Another first has to get a
    command's data, then waits until the place comes round again, and only then writes.
    """
    nominal = disk_of(preset, page_size)
    overhead = parameters.overhead / MILLISECONDS
    curve = seek_curve(parameters)[: _cylinders(parameters, span)]
    move = mean_seek(curve, np.ones(len(curve))) / MILLISECONDS + parameters.rotation / 2 / MILLISECONDS
    read, write_ms = nominal.page_transfer_ms, nominal.page_write_ms or nominal.page_transfer_ms
    media, send = (page_size * MILLISECONDS_A_SECOND / rate for rate in (streaming_rate(parameters), parameters.link_rate))
    behind_ms, rounds = 0.0, Rounds()
    if parameters.write_behind >= MAXIMUM_COMMAND:
        behind_ms = max(0.0, write_ms - media)
    else:
        write_ms = send + media
        rounds = Rounds(parameters.rotation / MILLISECONDS, (parameters.overhead + parameters.write_miss_after_write) / MILLISECONDS, send)
    writing = Timing(0, overhead, write_ms)
    return DriveModel(
        page_size, Timing(0, overhead, read), writing, command=MAXIMUM_COMMAND, move_ms=move, behind_ms=behind_ms, rounds=rounds
    )


def _cylinders(parameters: HddParameters, span: int) -> int:
    """Outermost cylinders that hold so many bytes, at least 2."""
    cylinders, rest = 0, span // parameters.sector_size
    for zone in zones_of(parameters):
        sectors = parameters.heads * zone.slots
        outer = min(zone.cylinders, -(-rest // sectors))
        cylinders, rest = cylinders + outer, rest - outer * sectors
        if rest <= 0:
            break
    return max(2, cylinders)


def parallel_drive_of(preset: Preset) -> ParallelDrive:
    """A flash drive's nominal figures for requests that are handed over at once."""
    if not preset.flash:
        raise RefusedError(f"formula: {preset.name} is not a flash drive, and psync has a formula on flash drives alone")
    drive, timing = preset.flash, timing_of(preset.flash)
    at_once = (drive.pools if drive.multi_plane else drive.dies) * drive.page_size * MILLISECONDS
    rates = (drive.link_read_rate, drive.link_write_rate) if drive.whole_page_buffer else _rates(drive)
    serial, on_link_times = (timing.read_overhead, timing.write_overhead), (drive.link_read_command, drive.link_write_command)
    submissions = (drive.read_submission, drive.write_submission)
    # Of writes that go on the controller holds no more than the limit, with the one before.
    limits = (drive.continuation_limit, drive.continuation_limit // 2)
    read, write = (
        Direction(
            latency / MILLISECONDS,
            SECONDS / rate / MILLISECONDS,
            alone / MILLISECONDS,
            on_link / MILLISECONDS,
            drive.queue_depth,
            MAXIMUM_COMMAND,
            submission / MILLISECONDS,
            limit,
            drive.continuation_latency / MILLISECONDS,
        )
        for rate, latency, alone, on_link, submission, limit in zip(
            rates, _latencies(drive), serial, on_link_times, submissions, limits, strict=True
        )
    )
    program = timing.slc_program if drive.slc_cache else drive.program
    chips = (program / at_once, drive.read / at_once, _suspension(drive) / MILLISECONDS) if drive.whole_page_buffer else (0.0, 0.0, 0.0)
    return ParallelDrive(read, write, _turn(drive) / MILLISECONDS, drive.whole_page_buffer, *chips)


def _rates(parameters: SsdParameters) -> tuple[float, float]:
    at_once = parameters.pools if parameters.multi_plane else parameters.dies
    chips = at_once * parameters.group * parameters.unit_size * SECONDS / parameters.program
    bus = parameters.bus_rate or max(parameters.link_read_rate, parameters.link_write_rate)
    return min(parameters.link_read_rate, bus), min(parameters.link_write_rate, chips, bus)


def _latencies(parameters: SsdParameters) -> tuple[int, int]:
    # What a write buffer takes is acknowledged after the controller's work on the command, whatever the chips still have to do.
    timing = timing_of(parameters)
    acknowledged = timing.write_overhead if parameters.whole_page_buffer else parameters.write_latency
    return parameters.read_latency + timing.bus[-1], acknowledged + timing.bus[-1]


def _flash(parameters: SsdParameters, page_size: int) -> DriveModel:
    rates, latencies = _rates(parameters), _latencies(parameters)
    submissions = (parameters.read_submission, parameters.write_submission)
    on_link = (parameters.link_read_command, parameters.link_write_command)
    pages = MAXIMUM_COMMAND / page_size
    read, write = (
        Timing.of_queue(latency / MILLISECONDS, page_size * MILLISECONDS_A_SECOND / rate, pages, parameters.queue_depth).after(
            submission / MILLISECONDS, command / MILLISECONDS
        )
        for latency, rate, submission, command in zip(latencies, rates, submissions, on_link, strict=True)
    )
    if parameters.queue_depth > 1:
        read = replace(read, several_ms=max(0.0, _dies_wait(parameters) / MILLISECONDS - read.command_ms))
    amplification = _amplification(parameters, page_size)
    return DriveModel(
        page_size, read, write, command=MAXIMUM_COMMAND, turn_ms=_turn(parameters) / MILLISECONDS, amplification=amplification
    )


def _dies_wait(parameters: SsdParameters) -> float:
    """Nanoseconds by which dies are later with the next command of a read than the link is done with those before it.

    A command's pages lie on one die after another.  So as many commands as all dies are enough for are read at once, and the next one's
    when these are out of the dies; several planes of one die are read at once only where both pages wait.
    """
    pages = MAXIMUM_COMMAND // parameters.page_size
    busy = math.ceil(pages / parameters.dies) * parameters.read + timing_of(parameters).transfer
    sending = MAXIMUM_COMMAND * SECONDS / parameters.link_read_rate
    return busy - max(1, parameters.dies // pages) * sending


def _turn(parameters: SsdParameters) -> float:
    """Nanoseconds that a read of many pages waits at least for what a write buffer has acknowledged.

    While the host writes, a die gets a page every so often.  If that is longer than a program, a part of the dies is idle when the read
    comes, and what the others have to do passes while these send.  If it is shorter, which multi-plane programs allow, all dies are busy,
    and none began its last program longer ago than one such interval.
    """
    if not parameters.whole_page_buffer or parameters.suspend in ("program", "both"):
        return 0.0
    interval = parameters.dies * parameters.page_size * SECONDS / parameters.link_write_rate
    return max(0.0, parameters.program - interval)


def _suspension(parameters: SsdParameters) -> float:
    """Nanoseconds that a read waits for a chip that programs, on the average: for half of a step, and the stop, and a resume."""
    if parameters.suspend not in ("program", "both"):
        return 0.0
    share = parameters.program_long_share
    step = share * parameters.program_long_step + (1 - share) * parameters.short_step
    return parameters.suspend_overhead + parameters.suspend_stop + step / 2


def _amplification(parameters: SsdParameters, page_size: int) -> Amplification:
    """Log blocks are merged; a drive that maps pages has free blocks after a join's temporaries were dropped."""
    if parameters.log_blocks:
        block = parameters.pools * parameters.pages_per_block * parameters.page_size
        return LogBlocks(parameters.log_blocks, max(1, block // page_size))
    return PageMapped()


def processor_of(cpu: cpus.CpuModel) -> psync.Processor:
    """Times of a core in a partition phase, by a CPU preset's prices."""
    tuples = cpu.user_time({Work.READ_TUPLE: 1, Work.HASH: 1, Work.WRITE_TUPLE: 1})
    prices = (tuples, *(each.get("ssd", 0.0) for each in (cpu.per_call, cpu.per_request, cpu.per_byte)))
    return psync.Processor(*(price / MILLISECONDS for price in prices))


def division(
    setting: JoinSetting, files: tuple[HeapFile, HeapFile], device: str | None, rule: str
) -> tuple[JoinSetting, Allocation | None]:
    """A join's setting, in which N-Hash has its sub-buffers, and its buffers by one of `RULES`, for a preset or (None) a real device.

    `setting` may name another preset to divide them for.  By Haas et al. the join divides memory itself, and its buffers are None.
    """
    check_rule(rule)
    if rule == HAAS:
        return setting, None
    name = setting.buffers_for or device
    if name is None:
        raise RefusedError("allocation: on a real device buffers are divided for the preset that buffers-for names; name one")
    return divide_for(setting, files, presets.load(name))


def divide_for(setting: JoinSetting, files: tuple[HeapFile, HeapFile], preset: Preset) -> tuple[JoinSetting, Allocation]:
    """A join's buffers divided for a drive by the closed forms of the detailed models, and the setting with the sub-buffers of N-Hash."""
    smaller, larger = sorted(files, key=lambda file: file.pages)
    algorithm, page_size = setting.algorithm, smaller.page_size
    partition = setting.given.get("partition")
    in_rings = partition == "n-hash" and algorithm == "grace-hash"
    if not in_rings and (algorithm not in ssd_joins.JOINS or partition not in (None, "traditional")):
        join = algorithm if partition is None else f"{algorithm} with {partition}"
        bound = f"buffers can be divided for the drive of {', '.join(ssd_joins.JOINS)}, and of grace-hash with n-hash"
        raise InvalidParameterError("allocation", DRIVE, f"{bound}, but not of {join}")
    usual, takes = JOINS.load(algorithm).OPTIONS(), options_in(JOINS.load(algorithm).OPTIONS)
    for name, value in setting.given.items():  # of which the closed forms know the partition method alone
        if name != "partition" and value not in (None, getattr(usual, name, None)):
            text = takes[name].text(value) if name in takes else value
            raise InvalidParameterError(name.replace("_", "-"), text, "with buffers divided for the drive it is not asked for")
    if in_rings:
        inputs = tuple(Input(max(1, file.pages), page_size, max(1, len(file.relation))) for file in (smaller, larger))
        processor = processor_of(cpus.load(cpu)) if (cpu := cpus.choose(setting.cpu, preset)) else None
        problem = partition_buffers.PartitionProblem(inputs, setting.memory, parallel_drive_of(preset), processor)
        buffers = partition_buffers.division_by_rule(problem)
        halves = buffers.sub_buffer < page_size  # the method's default, which keeps whole pages where half of one holds no row
        sub_buffer = {} if halves else {"sub_buffer": buffers.sub_buffer}
        return replace(setting, given={**setting.given, **sub_buffer}), partition_buffers.as_grace(problem, buffers)
    sizes = sizes_of(files, setting.memory)
    span = (sizes.r + sizes.s + sizes.r_temporary + sizes.s_temporary) * page_size
    layout = _LAYOUTS.get(setting.placement, "spread")
    return setting, ssd_buffers.closed_form(Problem(algorithm, sizes, drive_of(preset, page_size, span), layout)).allocation


def check_rule(rule: str) -> None:
    """Refuse a name that is none of the rules."""
    if rule not in RULES:
        raise UnknownNameError("allocation", rule, RULES)
