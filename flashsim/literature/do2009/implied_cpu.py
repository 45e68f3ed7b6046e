"""The CPU times that table 3 implies, beside ours: what the claims on total times rest on.

With I/O seconds h on the HDD, an I/O speedup a and a speedup b of the whole join, the SSD's I/O takes h / a, and equal CPU seconds c on
both machines follow from (h + c) / (h / a + c) = b.
"""

from flashsim.literature.base import load
from flashsim.literature.do2009.measured import Runs
from flashsim.literature.do2009.runs import JOINS, LABELS, MEMORY, Setup, grid_jobs
from flashsim.studies.presentation.section import Section
from flashsim.studies.presentation.tables import Entry, Table
from flashsim.studies.runs.jobs import Results

jobs = grid_jobs


def implied_cpu(hdd_io: float, io_speedup: float, join_speedup: float) -> float:
    """CPU seconds that two speedups imply, given the I/O seconds on the slower device.

    Examples
    --------
    >>> implied_cpu(300, 2, 1.5)  # 300 s and 150 s of I/O: (300 + 150) / (150 + 150) = 1.5
    150.0
    """
    return (hdd_io - join_speedup * hdd_io / io_speedup) / (join_speedup - 1)


def sections(results: Results) -> list[Section]:
    """Implied and simulated CPU seconds by join and buffer pool, and what the implied ones make of the ratio of GH to HH."""
    runs = Runs(results)
    published = {claim.id: claim.published for claim in load("do2009").claims}
    rows: list[list[Entry]] = []
    totals: dict[tuple[str, int], float] = {}
    for join in JOINS:
        for place, memory in enumerate(MEMORY):
            hdd, ssd = (runs.get(Setup(join, memory), machine) for machine in ("HDD", "SSD"))
            if hdd is None or ssd is None:
                continue
            io, whole = (float(published[name][join][place]) for name in ("table3-io", "table3-join"))
            implied = implied_cpu(hdd.total.io, io, whole)
            totals[join, memory] = hdd.total.io / io + implied
            rows.append(
                [LABELS[join], memory, implied, hdd.total.cpu, ssd.total.cpu, totals[join, memory], ssd.total.total, implied / hdd.total.io]
            )
    ratios = [
        f"{totals['grace-hash', memory] / totals['hybrid-hash', memory]:.2f} at {memory} MB"
        for memory in MEMORY
        if {("grace-hash", memory), ("hybrid-hash", memory)} <= totals.keys()
    ]
    text = (
        "From the HDD's simulated I/O seconds and table 3's two speedups: the CPU seconds that explain both, and the SSD's total time. "
        f"With these GH takes so many times as long as HH on the SSD: {', '.join(ratios)}."
    )
    header = ["join", "MB", "CPU s implied", "ours, HDD", "ours, SSD", "SSD total s implied", "ours", "implied CPU over I/O, HDD"]
    return [Section("CPU times that table 3 implies", text, [Table(header, rows, "implied-cpu", digits=2)])]
