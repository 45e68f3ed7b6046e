"""The buffers of hybrid hash on the paper's disk: the printed rule, the derived one and the formula's best, each executed.

The printed rule, I = O = 1.1 sqrt(B), has lost a factor: 1.118 sqrt(B y) follows from the quadratic before it, where y is the latency in
page transfers (docs/explanation/optimal_allocations.md).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from matplotlib.figure import Figure

from algorithms.joins.base import plan
from experiments.formulas.comparison import disk_of
from experiments.papers.base import Section
from experiments.papers.do2009.runs import DEVICES, MEMORY, Setup, laid_out, too_small
from experiments.presentation.plots import LINES, style, svg
from experiments.presentation.tables import Entry, Table
from experiments.runs.jobs import Job, Results, Settings
from experiments.runs.joining import divide
from flashsim.core.errors import InvalidParameterError
from flashsim.core.units import GIB, SECONDS
from flashsim.device import presets
from flashsim.device.device import Device
from flashsim.execution.machine import Machine
from flashsim.execution.simulated import simulate
from models import optimum
from models.allocation import HybridAllocation, hybrid_hash
from models.haas import cost

_JOIN = "hybrid-hash"
#: As TR 1148 assumes: relations and temporary files do not move each other's arm.
_PLACEMENT = "two-disks"
RULES = ("printed", "derived", "best")
#: What hides the latency that the formula charges every request; a request also is one command then, however long.
_PLAIN = {"read_ahead": 0, "write_behind": 0}
TITLE = "What the paper left open: the rule of hybrid hash"


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    """A run each buffer pool, which executes the three divisions."""
    return [_job(settings, memory) for memory in MEMORY]


def _job(settings: Settings, memory: int) -> Job:
    return Job.of(
        f"{__name__}:three_rules", f"hybrid hash, {memory} MB, three rules", memory=memory, scale=settings.scale, seed=settings.seed
    )


def three_rules(memory: int, scale: float, seed: int) -> dict[str, Any]:
    """I/O seconds of hybrid hash on the disk by rule, simulated and by the formula, JSON-ready; empty where the pool is too small."""
    files, setting = laid_out(Setup(_JOIN, memory), scale, seed)
    r, s = sorted(file.pages for file in files)
    disk = disk_of(presets.load(DEVICES["HDD"]), files[0].page_size)
    found: dict[str, Any] = {}
    try:
        divisions = {
            "printed": hybrid_hash(r, s, setting.memory, disk.latency_ratio),
            "derived": hybrid_hash(r, s, setting.memory, disk.latency_ratio, rule="sqrt-y"),
            "best": optimum.discrete(_JOIN, r, s, setting.memory, disk).allocation,
        }
    except InvalidParameterError as problem:
        too_small(problem)
        return found
    setting = type(setting)(_JOIN, setting.memory, placement=_PLACEMENT, cpu=None)
    for rule, division in divisions.items():
        parameters = divide(setting, files, presets.load(DEVICES["HDD"]))[0]
        algorithm = plan(_JOIN, *files, parameters, division)
        plain, usual = (run.total() for run in simulate(algorithm, files, _machines(), placement=_PLACEMENT))
        told = cost(_JOIN, r, s, setting.memory, disk, division).seconds
        seconds = {"seconds": plain.io_time / SECONDS, "hidden": usual.io_time / SECONDS, "seeks": plain.seeks, "formula": told}
        found[rule] = {"buffers": vars(division)} | seconds
    return found


def _machines() -> list[Machine]:
    """Two disks as the formula sees them, and two of the paper's."""
    usual = presets.load(DEVICES["HDD"])
    plain = replace(usual, parameters=replace(usual.parameters, **_PLAIN))  # type: ignore[arg-type]
    return [
        Machine([Device(plain, maximum_command=GIB), Device(plain, maximum_command=GIB)], name="as the formula sees it"),
        Machine([Device(usual), Device(usual)]),
    ]


def losses(results: Results, rule: str, what: str = "seconds") -> dict[int, float]:
    """By buffer pool, how much more a rule costs than the derived one, as a share.

    `what` is ``formula``, ``seconds`` (simulated, every request waits its latency) or ``hidden`` (with read-ahead and write-behind).
    """
    found = {memory: results.get(_job(results.settings, memory), {}) for memory in MEMORY}
    return {memory: told[rule][what] / told["derived"][what] - 1 for memory, told in found.items() if told}


def sections(results: Results) -> list[Section]:
    """Seconds by rule, and what the printed rule loses."""
    rows: list[list[Entry]] = []
    for memory in MEMORY:
        told = results.get(_job(results.settings, memory), {})
        for rule in RULES if told else ():
            made, derived = told[rule], told["derived"]
            buffers = HybridAllocation(**made["buffers"])
            kinds = ("formula", "seconds", "hidden")
            more = [100 * (made[what] / derived[what] - 1) for what in kinds]
            rows.append([memory, rule, buffers.input, buffers.output, *(made[what] for what in kinds), made["seeks"], *more])
    header = ["MB", "rule", "I, pages", "O, pages", "formula I/O s", "simulated", "with read-ahead and write-behind", "seeks"]
    header += ["over derived %: formula", "simulated", "with read-ahead and write-behind"]
    text = (
        "Hybrid hash on the paper's disk (two, as the formula assumes): I = O = 1.1 sqrt(B) as printed, 1.118 sqrt(B y) as derived, "
        "and the best whole division by the formula. Simulated as the formula sees it, every request one command that waits a latency, "
        "and with read-ahead, write-behind and commands of 128 KiB: then a request that goes on where the last one ended waits for "
        "nothing, and small buffers cost little."
    )
    table = Table(header, rows, "hybrid-rule", digits=2)
    return [Section(TITLE, text, [table], {"hybrid-rule": svg(figure(results))})]


def figure(results: Results) -> Figure:
    """What the printed rule loses against the derived one, over the buffer pool."""
    with style():
        picture = Figure(figsize=(5, 3), layout="constrained")
        axes = picture.subplots()
        for (colour, marker), (what, label) in zip(
            LINES, (("formula", "formula"), ("seconds", "simulated"), ("hidden", "with read-ahead and write-behind")), strict=False
        ):
            for rule, line in (("printed", "-"), ("best", ":")):
                lost = losses(results, rule, what)
                more = [100 * share for share in lost.values()]
                axes.plot(list(lost), more, line, color=colour, marker=marker, label=f"{rule}, {label}")
        axes.axhline(0, color="#7f7f7f", lw=0.6)
        axes.set_xlabel("buffer pool, MB")
        axes.set_ylabel("I/O time over the derived rule's, %")
        axes.legend(frameon=False, fontsize=8)
    return picture
