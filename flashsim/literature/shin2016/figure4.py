"""Figure 4: fixed numbers of partitions and an input buffer of 4 MB; all other memory is output buffers."""

from collections.abc import Collection

from flashsim.literature.base import load
from flashsim.literature.shin2016.measured import Point, Runs, best_speedups, curves
from flashsim.literature.shin2016.runs import METHODS, N_HASH, PER_MB, TRADITIONAL, Setup
from flashsim.studies.judging.cells import Cell, statement
from flashsim.studies.judging.claims import Claim
from flashsim.studies.presentation.section import Section
from flashsim.studies.runs.jobs import Job, Results, Settings

#: MB between the paper's 8 and 452; its figure leaves out 2 and 8 partitions, which are like 32.
MEMORY, PARTITIONS, INPUT_MB = (8, 12, 20, 68, 452), (512, 128, 32), 4


def setup(memory: int, partitions: int) -> Setup:
    """The original method; nothing of memory is withheld here: 8 MB are one page for each of 512 partitions."""
    return Setup(TRADITIONAL, partitions, (memory - INPUT_MB) * PER_MB // partitions, INPUT_MB * PER_MB)


_POINTS: list[Point] = [
    (memory, f"n = {partitions}", setup(memory, partitions), setup(memory, partitions).by(N_HASH))
    for partitions in PARTITIONS
    for memory in MEMORY
]


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    """Both methods everywhere, those with the smallest buffers first."""
    return [one.job(settings) for _, _, *pair in _POINTS for one in pair]


def cells(claim: Claim, results: Results) -> list[Cell]:
    """The best speedups, and that memory matters to the original method and not to N-Hash on the ioDrive."""
    runs, hardly, severe = Runs(results), 1 + claim.limits["hardly"], claim.limits["severe"]
    pairs = [(slow, fast) for _, _, slow, fast in _POINTS]
    times = {method: [runs.seconds(one.by(method), "ioDrive") for _, _, one, _ in _POINTS] for method in METHODS}
    return [
        *best_speedups(claim, runs, pairs),
        statement(
            "N-Hash, ioDrive, s",
            f"longest at most {hardly:g} times the shortest",
            times[N_HASH],
            lambda *all: max(all) <= hardly * min(all),
        ),
        statement(
            "original, ioDrive, s", f"longest at least {severe:g} times", times[TRADITIONAL], lambda *all: max(all) >= severe * min(all)
        ),
    ]


def sections(results: Results) -> list[Section]:
    """The counterpart of figure 4."""
    text = "An input buffer of 4 MB and n output buffers of equal length. Seconds are as at scale 1."
    return curves(Runs(results), _POINTS, load("shin2016").claim("fig4"), "fig4", "Fixed numbers of partitions (figure 4)", text)
