"""A drive's best buffers for N-Hash, and those of other joins: what the detailed models divide memory into instead of Haas et al."""

from dataclasses import replace

from flashsim.core.errors import InvalidParameterError, RefusedError, UnknownNameError
from flashsim.core.units import MILLISECONDS, format_size
from flashsim.device import presets
from flashsim.device.presets import Preset
from flashsim.execution import cpu as cpus
from flashsim.execution.cpu import CpuModel
from flashsim.execution.requests import Work
from flashsim.storage.heap_file import HeapFile
from flashsim.studies.formulas.comparison import sizes_of
from flashsim.studies.formulas.drives import drive_of, parallel_drive_of
from flashsim.studies.runs.joining import JoinSetting
from models.allocation.buffers import Allocation
from models.partition_buffers import PartitionProblem, as_grace, ruled
from models.partition_costs import Input
from models.psync import Processor
from models.ssd_buffers import closed_form
from models.ssd_joins import JOINS, Layout
from models.ssd_problem import Problem

#: How memory may be divided: by Haas et al., or for the drive in detail.
RULES = HAAS, DRIVE = ("haas", "drive")
#: Where the model has temporaries, by the volume's placement; all others put each in one piece.
_LAYOUTS: dict[str, Layout] = {"packed": "packed", "two-disks": "separate"}


def processor_of(cpu: CpuModel, kind: str = "ssd") -> Processor:
    """What a partition phase takes of a core, by a CPU preset's prices."""
    tuples = cpu.user_time({Work.READ_TUPLE: 1, Work.HASH: 1, Work.WRITE_TUPLE: 1})
    prices = (tuples, cpu.per_call.get(kind, 0.0), cpu.per_request.get(kind, 0.0), cpu.per_byte.get(kind, 0.0))
    return Processor(*(price / MILLISECONDS for price in prices))


def division(
    setting: JoinSetting, files: tuple[HeapFile, HeapFile], device: str | None, rule: str
) -> tuple[JoinSetting, Allocation | None]:
    """What a join's buffers are by a rule, and its setting, in which N-Hash has its sub-buffers.

    Parameters
    ----------
    device
        The preset that is run on; None for a real device.  `setting` may name another to divide the buffers for.
    rule
        One of `RULES`; by Haas et al. the join divides them itself: None.
    """
    check_rule(rule)
    if rule == HAAS:
        return setting, None
    name = setting.buffers_for or device
    if name is None:
        raise RefusedError("allocation: on a real device buffers are divided for the preset that buffers-for names; name one")
    return divided(setting, files, presets.load(name))


def divided(setting: JoinSetting, files: tuple[HeapFile, HeapFile], preset: Preset) -> tuple[JoinSetting, Allocation]:
    """A join's buffers divided for a drive by the closed forms of the detailed models, and the setting with the sub-buffers of N-Hash."""
    smaller, larger = sorted(files, key=lambda file: file.pages)
    algorithm, page_size = setting.algorithm, smaller.page_size
    if setting.partition == "n-hash" and algorithm == "grace-hash":
        if setting.sub_buffer is not None:
            raise InvalidParameterError(
                "sub-buffer", format_size(setting.sub_buffer), "with buffers divided for the drive it is not asked for"
            )
        inputs = tuple(Input(max(1, file.pages), page_size, max(1, len(file.relation))) for file in (smaller, larger))
        processor = processor_of(cpus.load(setting.cpu)) if setting.cpu else None
        problem = PartitionProblem(inputs, setting.memory, parallel_drive_of(preset), processor)
        made = ruled(problem)
        halves = made.sub_buffer < page_size  # the method's default, which keeps whole pages where half of one holds no row
        return replace(setting, sub_buffer=None if halves else made.sub_buffer), as_grace(problem, made)
    if algorithm not in JOINS or setting.partition not in (None, "traditional"):
        told = algorithm if setting.partition is None else f"{algorithm} with {setting.partition}"
        known = f"buffers can be divided for the drive of {', '.join(JOINS)}, and of grace-hash with n-hash"
        raise InvalidParameterError("allocation", DRIVE, f"{known}, but not of {told}")
    sizes = sizes_of(files, setting.memory)
    span = (sizes.r + sizes.s + sizes.r_temporary + sizes.s_temporary) * page_size
    layout = _LAYOUTS.get(setting.placement, "spread")
    return setting, closed_form(Problem(algorithm, sizes, drive_of(preset, page_size, span), layout)).allocation


def check_rule(rule: str) -> None:
    """Refuse what is none of the rules."""
    if rule not in RULES:
        raise UnknownNameError("allocation", rule, RULES)
