"""The paper's open question: where N-Hash pays on other drives, and what buffers divided for each of them gain over the published rule.

Every number is an execution of the partition phase in virtual time, with the published memory and a tenth of the tuples of the other
exhibits.
"""

from collections.abc import Collection
from functools import cache

from flashsim.apps.papers.base import Entry, Job, Results, Section, Settings, Table, load
from flashsim.apps.papers.shin2016.runs import CPU, N_HASH, PAGE_SIZE, PAGES, PER_MB, SHARE, TRADITIONAL, TUPLES, BucketSetup, run_partition
from flashsim.apps.papers.shin2016.table1 import MEMORY
from flashsim.device import presets
from flashsim.execution import cpu as cpus
from flashsim.experiments.formulas.drives import parallel_drive_of, processor_of
from models.partition_buffers import PartitionProblem, division_by_rule, published_division
from models.partition_costs import Division, Input

TITLE = "What the paper left open: where N-Hash pays"
#: Share of the other exhibits' tuples.
TUPLES_SHARE = 0.1


@cache
def problem(drive: str, memory: int) -> PartitionProblem:
    """The paper's on a preset; what is timed is reading, writing and the paper's CPU."""
    orders = Input(PAGES, PAGE_SIZE, TUPLES)
    return PartitionProblem((orders,), int(memory * PER_MB * SHARE), parallel_drive_of(presets.load(drive)), processor_of(cpus.load(CPU)))


@cache
def best(drive: str, memory: int) -> Division:
    return division_by_rule(problem(drive, memory))


def drives() -> list[str]:
    return [name for name in presets.names() if presets.load(name).flash]


def setup_of(method: str, division: Division) -> BucketSetup:
    sub_buffer = division.sub_buffer if method == N_HASH else 0
    return BucketSetup(method, division.buckets, division.output, division.input, sub_buffer=sub_buffer)


def runs(memory: int) -> dict[BucketSetup, list[str]]:
    """Runs with so much memory, and their drives: drives with the same buffers share a pass."""
    names = drives()
    paper = published_division(problem(names[0], memory))
    by_setup = {setup_of(method, paper): names for method in (TRADITIONAL, N_HASH)}
    for name in names:
        if best(name, memory) != paper:
            by_setup.setdefault(setup_of(N_HASH, best(name, memory)), []).append(name)
    return by_setup


def _job(settings: Settings, setup: BucketSetup, names: list[str]) -> Job:
    scale, devices = settings.scale * TUPLES_SHARE, {name: name for name in names}
    return Job.of(run_partition, f"{setup.name}, every drive", setup=vars(setup), scale=scale, seed=settings.seed, devices=devices)


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    return [_job(settings, *run) for memory in MEMORY for run in runs(memory).items()]


def _seconds(results: Results, drive: str, memory: int) -> list[float]:
    """Seconds of the original, of N-Hash and with the rule's buffers, as at scale 1; none if a run is missing."""
    paper, names = published_division(problem(drive, memory)), runs(memory)
    setups = [setup_of(TRADITIONAL, paper), setup_of(N_HASH, paper), setup_of(N_HASH, best(drive, memory))]
    times = [results.get(_job(results.settings, setup, names[setup])) for setup in setups]
    return [each[drive]["total"] / (results.settings.scale * TUPLES_SHARE) for each in times if each] if all(times) else []


def sections(results: Results) -> list[Section]:
    cells = {drive: [_seconds(results, drive, memory) for memory in MEMORY] for drive in drives()}
    if not all(all(row) for row in cells.values()):
        return []
    pays, gains = list[list[Entry]](), list[list[Entry]]()
    for drive, row in cells.items():
        divisions = [(problem(drive, memory), best(drive, memory)) for memory in MEMORY]
        by_formula = [100 * (task.seconds(published_division(task)) / task.seconds(ours) - 1) for task, ours in divisions]
        pays.append([drive, *(original / n_hash for original, n_hash, _ in row)])
        gains.append([drive, "simulated", *(100 * (n_hash / least - 1) for _, n_hash, least in row)])
        gains.append([drive, "closed form", *by_formula])
        gains.append([drive, "over the original", *(100 * (original / least - 1) for original, _, least in row)])
    header = [f"{memory} MB" for memory in MEMORY]
    texts = load("shin2016").texts
    tables = Table(["drive", *header], pays, "every-drive", digits=2), Table(["drive", "", *header], gains, "divided", digits=1)
    title = "What the paper left open: buffers divided for a drive"
    return [Section(TITLE, texts["every_drive"], tables[:1]), Section(title, texts["divided"], tables[1:])]
