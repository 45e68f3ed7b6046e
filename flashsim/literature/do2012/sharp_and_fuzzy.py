"""Cost of checkpoints by design (sections 3.2.3.3 and 3.3.2): sharp ones write what is newer on the SSD to disk, fuzzy ones do not."""

from collections.abc import Collection
from functools import partial

from flashsim.core.units import MINUTES
from flashsim.literature.do2012.runs import DESIGNS, PUBLISHED, Runs, job, tpc_c, tpc_e
from flashsim.pools.setup import PoolSetup
from flashsim.studies.presentation.section import Section
from flashsim.studies.presentation.tables import Entry, Table
from flashsim.studies.runs.jobs import Job, Results, Settings

_EVERY = 40 * MINUTES
_SETUPS = {"TPC-C, 2,000 warehouses": partial(tpc_c, 2000, disks=PUBLISHED), "TPC-E, 230 GB": partial(tpc_e, 230, disks=PUBLISHED)}
_COMPARED = ("none", "dw", "lc", "tac")


def _variants(benchmark: str, design: str) -> list[PoolSetup]:
    setup = _SETUPS[benchmark](design=design)
    fuzzy = [setup.with_options(checkpoint=_EVERY, sharp=0)] if design == "lc" else []
    return [setup.with_options(checkpoint=0), setup.with_options(checkpoint=_EVERY), *fuzzy]


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    """Each design without checkpoints and with both kinds."""
    return [job(setup, settings) for benchmark in _SETUPS for design in _COMPARED for setup in _variants(benchmark, design)]


def sections(results: Results) -> list[Section]:
    """Transactions a second, and what is left of them."""
    runs, rows = Runs(results), list[list[Entry]]()
    for benchmark in _SETUPS:
        for design in _COMPARED:
            alone, sharp, fuzzy = (*[runs.steady(setup) for setup in _variants(benchmark, design)], None)[:3]
            if alone and sharp:
                rest: list[Entry] = [100 * sharp / alone, 100 * fuzzy / alone if fuzzy else None]
                rows.append([benchmark, DESIGNS[design], alone, sharp, fuzzy, *rest])
    header = [
        "benchmark",
        "design",
        "transactions/s without",
        "with sharp ones",
        "with fuzzy ones",
        "left with sharp ones, %",
        "with fuzzy ones, %",
    ]
    text = (
        f"Means of the last two hours with a checkpoint every {_EVERY / MINUTES:g} minutes, disks as in table 3.1. Where nothing is "
        "newer on the SSD than on disk both kinds are the same. The thesis says that with TPC-C throughput falls to half or less (3.4.1.2)."
    )
    return [Section("Sharp and fuzzy checkpoints", text, [Table(header, rows, "checkpoint-kinds", 1)], on_terminal=True)]
