"""The error bars of figure 1: how far I/O times vary from one state of the drives to another."""

from collections.abc import Collection

import numpy as np

from flashsim.literature.do2009.measured import Runs
from flashsim.literature.do2009.runs import DEVICES, JOINS, LABELS, VARIATION_MEMORY, Setup
from flashsim.studies.judging.cells import Cell, less, statement
from flashsim.studies.judging.claims import Claim
from flashsim.studies.presentation.section import Section
from flashsim.studies.presentation.tables import Entry, Table
from flashsim.studies.runs.jobs import Job, Results, Settings


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    """Every join with one buffer pool, on more states than other runs."""
    return [Setup(join, VARIATION_MEMORY).job(settings) for join in JOINS]


def io_times(runs: Runs, join: str, machine: str) -> list[float] | None:
    """I/O seconds on each state; None where a run could not be made."""
    result = runs.get(Setup(join, VARIATION_MEMORY), machine)
    return result.io_times if result else None


def spread(times: list[float] | None) -> float | None:
    return None if times is None else float(np.ptp(times) / np.mean(times))


def cells(claim: Claim, results: Results) -> list[Cell]:
    """The order of the spreads on the SSD, and their size on the HDD."""
    runs, little, wider = Runs(results), claim.limits["little"], less(claim.limits["margin"])
    flash = {join: spread(io_times(runs, join, "SSD")) for join in JOINS}
    pairs = [("grace-hash", "sort-merge"), ("hybrid-hash", "sort-merge"), ("sort-merge", "bnl")]
    cells = [
        statement(
            f"spreads of {LABELS[narrow]} and {LABELS[wide]}, SSD", "the first less", (flash[narrow], flash[wide]), wider, 0, digits=5
        )
        for wide, narrow in pairs
    ]
    disk = {join: spread(io_times(runs, join, "HDD")) for join in JOINS}
    return cells + [
        statement(f"spread of {LABELS[join]}, HDD", f"below {little:g}", [wide], lambda wide: wide < little, 0)
        for join, wide in disk.items()
    ]


def sections(results: Results) -> list[Section]:
    runs = Runs(results)
    rows: list[list[Entry]] = []
    for machine in DEVICES:
        for join in JOINS:
            if times := io_times(runs, join, machine):
                rows.append([machine, join, len(times), min(times), float(np.mean(times)), max(times), 100 * (spread(times) or 0)])
    header = ["machine", "join", "states", "least I/O s", "mean", "most", "spread %"]
    condition = "over drive states drawn under the seed: where the volume begins, and what was overwritten before"
    text = f"I/O seconds with {VARIATION_MEMORY} MB {condition}."
    return [Section("Variation between runs (error bars of figure 1)", text, [Table(header, rows, "variance", digits=3)])]
