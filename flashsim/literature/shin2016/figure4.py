"""Figure 4: fixed numbers of partitions and an input buffer of 4 MB; all other memory is output buffers."""

from collections.abc import Collection

from flashsim.literature.base import Claim, Judgement, judge_holds, load
from flashsim.literature.shin2016.measured import Point, Runs, best, compared, curves, near
from flashsim.literature.shin2016.runs import DEVICES, N_HASH, PER_MB, TRADITIONAL, Setup
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


def judge(claim: Claim, results: Results) -> Judgement:
    """Judge the best speedups, and that memory matters to the traditional method and not to N-Hash on the ioDrive."""
    runs = Runs(results)
    gains = {drive: best(runs.speedup(slow, fast, drive) for _, _, slow, fast in _POINTS) for drive in DEVICES}
    cells = [near(f"best speedup, {drive}", float(claim.published[drive][0]), gains[drive], claim.limits["each"]) for drive in DEVICES]
    for method, bound, limit in ((N_HASH, "at most", 1 + claim.limits["hardly"]), (TRADITIONAL, "at least", claim.limits["severe"])):
        times = [runs.seconds(one.by(method), "ioDrive") for _, _, one, _ in _POINTS]
        numbers = [time for time in times if time is not None]
        ratio = max(numbers) / min(numbers) if len(numbers) == len(times) else None
        holds = None if ratio is None else (ratio <= limit if method == N_HASH else ratio >= limit)
        cells.append(compared(f"longest over shortest time of {method}, ioDrive", f"{bound} {limit:g}", ratio, holds))
    return judge_holds(claim, cells)


def sections(results: Results) -> list[Section]:
    """The counterpart of figure 4."""
    text = "An input buffer of 4 MB and n output buffers of equal length. Seconds are as at scale 1."
    return curves(Runs(results), _POINTS, load("shin2016").claim("fig4"), "fig4", "Fixed numbers of partitions (figure 4)", text)
