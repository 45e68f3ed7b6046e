"""Hybrid hash with given buffers on two disks: as the formula sees them, and the paper's."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from algorithms.joins.base import plan
from flashsim.core.units import GIB, SECONDS
from flashsim.device import presets
from flashsim.device.device import Device
from flashsim.execution.drivers import run
from flashsim.execution.machine import Machine
from flashsim.literature.do2009.runs import DEVICES, Setup, laid_out
from flashsim.studies.runs.joining import divide
from models.allocation.buffers import HybridAllocation

JOIN = "hybrid-hash"
#: Placement that TR 1148 assumes: relations and temporary files do not move each other's arm.
_PLACEMENT = "two-disks"
#: Parameters that hide the latency that the formula charges every request; a request is one command then, however long.
_PLAIN = {"read_ahead": 0, "write_behind": 0}


def with_buffers(memory: int, rules: Mapping[str, Mapping[str, int]], scale: float, seed: int) -> dict[str, Any]:
    """I/O seconds by rule, JSON-ready: every request waits its latency, or is hidden by read-ahead and write-behind."""
    files, setting = laid_out(Setup(JOIN, memory), scale, seed)
    setting = replace(setting, page_io=False, placement=_PLACEMENT, buffers_for=None, cpu=None)
    parameters = divide(setting, files, presets.load(DEVICES["HDD"]))[0]
    seconds = {}
    for rule, buffers in rules.items():
        algorithm = partial(plan, JOIN, *files, parameters, HybridAllocation(**buffers))
        plain, usual = (cost.total() for cost in run(algorithm, files, _machines(), placement=_PLACEMENT))
        seconds[rule] = {"seconds": plain.io_time / SECONDS, "hidden": usual.io_time / SECONDS, "seeks": plain.seeks}
    return seconds


def _machines() -> list[Machine]:
    """Two disks as the formula sees them, and two of the paper's."""
    usual = presets.load(DEVICES["HDD"])
    plain = replace(usual, parameters=replace(usual.parameters, **_PLAIN))  # type: ignore[arg-type]
    return [
        Machine([Device(plain, maximum_command=GIB), Device(plain, maximum_command=GIB)], name="as the formula sees it"),
        Machine([Device(usual), Device(usual)]),
    ]
