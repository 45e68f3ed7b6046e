"""The buffers of hybrid hash on the paper's disk: the printed rule, the derived one and the formula's best, each executed.

The printed rule, I = O = 1.1 sqrt(B), has lost a factor: 1.118 sqrt(B y) follows from the quadratic before it, where y is the latency in
page transfers (docs/explanation/optimal_allocations.md).
"""

from collections.abc import Collection
from functools import cache
from typing import Any

from matplotlib.figure import Figure

from flashsim.core.errors import InvalidParameterError
from flashsim.device import presets
from flashsim.literature.do2009.hybrid_runs import JOIN, with_buffers
from flashsim.literature.do2009.runs import DEVICES, MEMORY, PAGE_SIZE, SCALE_FACTOR, Setup, join_setting, too_small
from flashsim.storage.source.do2009 import PaperRecords
from flashsim.studies.presentation.plots import LINES, legend, panels
from flashsim.studies.presentation.section import Section
from flashsim.studies.presentation.tables import Entry, Table
from flashsim.studies.runs.drives import disk_of
from flashsim.studies.runs.jobs import Job, Results, Settings
from models import optimum
from models.allocation.hybrid_hash import hybrid_hash
from models.haas import JoinCost, cost

RULES = ("printed", "derived", "best")
TITLE = "What the paper left open: the rule of hybrid hash"


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    """A run each buffer pool, which executes the three divisions; none of a pool that is too small."""
    return [_job(settings, memory) for memory in MEMORY if _rules(settings.scale, memory)]


def _job(settings: Settings, memory: int) -> Job:
    rules = {rule: vars(join.allocation) for rule, join in _rules(settings.scale, memory).items()}
    label = f"hybrid hash, {memory} MB, three rules"
    return Job.of(with_buffers, label, memory=memory, rules=rules, scale=settings.scale, seed=settings.seed)


@cache
def _rules(scale: float, memory: int) -> dict[str, JoinCost]:
    """Each rule's division, and what it costs by the formula; nothing where the pool is too small."""
    r, s = (PaperRecords(name, SCALE_FACTOR * scale).published_pages(PAGE_SIZE) for name in ("customer", "orders"))
    pages, disk = join_setting(Setup(JOIN, memory), scale).memory, disk_of(presets.load(DEVICES["HDD"]), PAGE_SIZE)
    try:
        divisions = {
            "printed": hybrid_hash(r, s, pages, disk.latency_ratio),
            "derived": hybrid_hash(r, s, pages, disk.latency_ratio, rule="sqrt-y"),
            "best": optimum.discrete(JOIN, r, s, pages, disk).allocation,
        }
    except InvalidParameterError as problem:
        too_small(problem)
        return {}
    return {rule: cost(JOIN, r, s, pages, disk, division) for rule, division in divisions.items()}


def seconds_of_rules(results: Results, memory: int) -> dict[str, Any]:
    """Simulated seconds of each rule, and the ``formula``'s; nothing where the pool is too small or was not run."""
    times = results.get(_job(results.settings, memory), {})
    rules = _rules(results.settings.scale, memory)
    return {rule: measured | {"formula": rules[rule].seconds} for rule, measured in times.items()}


def losses(results: Results, rule: str, what: str = "seconds") -> dict[int, float]:
    """Extra cost of a rule over the derived one, as a share, by buffer pool.

    `what` is ``formula``, ``seconds`` (simulated, every request waits its latency) or ``hidden`` (with read-ahead and write-behind).
    """
    by_memory = {memory: seconds_of_rules(results, memory) for memory in MEMORY}
    return {memory: costs[rule][what] / costs["derived"][what] - 1 for memory, costs in by_memory.items() if costs}


def sections(results: Results) -> list[Section]:
    """Seconds by rule, and what the printed rule loses."""
    rows: list[list[Entry]] = []
    for memory in MEMORY:
        costs = seconds_of_rules(results, memory)
        for rule in RULES if costs else ():
            row, derived = costs[rule], costs["derived"]
            buffers: Any = _rules(results.settings.scale, memory)[rule].allocation
            kinds = ("formula", "seconds", "hidden")
            more = [100 * (row[what] / derived[what] - 1) for what in kinds]
            rows.append([memory, rule, buffers.input, buffers.output, *(row[what] for what in kinds), row["seeks"], *more])
    header = ["MB", "rule", "I, pages", "O, pages", "formula I/O s", "simulated", "with read-ahead and write-behind", "seeks"]
    header += ["over derived %: formula", "simulated", "with read-ahead and write-behind"]
    text = (
        "Hybrid hash on the paper's disk (two, as the formula assumes): I = O = 1.1 sqrt(B) as printed, 1.118 sqrt(B y) as derived, "
        "and the best whole division by the formula. Simulated as the formula sees it, every request one command that waits a latency, "
        "and with read-ahead, write-behind and commands of 128 KiB: then a request that goes on where the last one ended waits for "
        "nothing, and small buffers cost little."
    )
    table = Table(header, rows, "hybrid-rule", digits=2)
    return [Section(TITLE, text, [table], {"hybrid-rule": figure(results)})]


def figure(results: Results) -> Figure:
    """Loss of the printed rule against the derived one, over the buffer pool."""
    with panels(3.6) as (picture, axes):
        for (colour, marker), (what, label) in zip(
            LINES, (("formula", "formula"), ("seconds", "simulated"), ("hidden", "with read-ahead and write-behind")), strict=False
        ):
            for rule, line in (("printed", "-"), ("best", ":")):
                lost = losses(results, rule, what)
                more = [100 * share for share in lost.values()]
                axes.plot(list(lost), more, line, color=colour, marker=marker, label=f"{rule}, {label}")
        axes.axhline(0, color="#7f7f7f", lw=0.6)
        axes.set(xlabel="buffer pool, MB", ylabel="I/O time over the derived rule's, %")
        legend(picture, axes, 2)
    return picture
