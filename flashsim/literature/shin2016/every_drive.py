"""The paper's open question: where N-Hash pays on other drives, and what buffers divided for each of them gain over the published rule.

Every number is an execution of the partition phase in virtual time, with the published memory and a tenth of the tuples of the other
exhibits.
"""

from collections.abc import Collection, Iterator
from functools import cache

from flashsim.device import presets
from flashsim.execution import cpu as cpus
from flashsim.literature.shin2016.runs import CPU, N_HASH, PAGE_SIZE, PAGES, PER_MB, SHARE, TRADITIONAL, TUPLES, Setup, run_partition
from flashsim.studies.formulas.drives import parallel_drive_of, processor_of
from flashsim.studies.presentation.section import Section
from flashsim.studies.presentation.tables import Entry, Table
from flashsim.studies.runs.jobs import Job, Results, Settings
from models.partition_buffers import PartitionProblem, published, ruled
from models.partition_costs import Division, Input

TITLE = "What the paper left open: where N-Hash pays"
#: MB, as in table 1.
MEMORY = (5, 10, 20, 30, 50, 100, 200)
#: Share of the other exhibits' tuples.
TUPLES_SHARE = 0.1


@cache
def problem(drive: str, memory: int) -> PartitionProblem:
    """The paper's on a preset; what is timed is reading, writing and the paper's CPU."""
    orders = Input(PAGES, PAGE_SIZE, TUPLES)
    return PartitionProblem((orders,), int(memory * PER_MB * SHARE), parallel_drive_of(presets.load(drive)), processor_of(cpus.load(CPU)))


@cache
def best(drive: str, memory: int) -> Division:
    return ruled(problem(drive, memory))


def drives() -> list[str]:
    return [name for name in presets.names() if presets.load(name).flash]


def setup_of(method: str, division: Division) -> Setup:
    sub_buffer = division.sub_buffer if method == N_HASH else 0
    return Setup(method, division.buckets, division.output, division.input, sub_buffer=sub_buffer)


def runs(memory: int) -> Iterator[tuple[Setup, list[str]]]:
    """Runs with so much memory, and their drives: drives with the same buffers share a pass."""
    names = drives()
    paper = published(problem(names[0], memory))
    yield setup_of(TRADITIONAL, paper), names
    yield setup_of(N_HASH, paper), names
    for division in dict.fromkeys(best(name, memory) for name in names):
        if division != paper:
            yield setup_of(N_HASH, division), [name for name in names if best(name, memory) == division]


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    return [_job(settings, *run) for memory in MEMORY for run in runs(memory)]


def _job(settings: Settings, setup: Setup, names: list[str]) -> Job:
    scale, devices = settings.scale * TUPLES_SHARE, {name: name for name in names}
    return Job.of(run_partition, f"{setup.name}, every drive", setup=vars(setup), scale=scale, seed=settings.seed, devices=devices)


def seconds(results: Results, drive: str, memory: int) -> dict[str, float]:
    """Seconds of reading, writing and computing by the original, by N-Hash and with the rule's buffers, as at scale 1."""
    by_kind: dict[str, float] = {}
    paper = published(problem(drive, memory))
    for setup, names in runs(memory):
        times = results.get(_job(results.settings, setup, names)) if drive in names else None
        if times:
            kind = TRADITIONAL if setup.method == TRADITIONAL else N_HASH if setup == setup_of(N_HASH, paper) else "best"
            by_kind[kind] = times[drive]["total"] / (results.settings.scale * TUPLES_SHARE)
    if N_HASH in by_kind:
        by_kind.setdefault("best", by_kind[N_HASH])
    return by_kind


def sections(results: Results) -> list[Section]:
    cells = {(drive, memory): seconds(results, drive, memory) for drive in drives() for memory in MEMORY}
    if not all(len(cell) == 3 for cell in cells.values()):
        return []
    pays: list[list[Entry]] = []
    gains: list[list[Entry]] = []
    for drive in drives():
        row = [cells[drive, memory] for memory in MEMORY]
        pays.append([drive, *(cell[TRADITIONAL] / cell[N_HASH] for cell in row)])
        gains.append([drive, "simulated", *(100 * (cell[N_HASH] / cell["best"] - 1) for cell in row)])
        gains.append([drive, "closed form", *(_gain_of_formula(drive, memory) for memory in MEMORY)])
        gains.append([drive, "over the original", *(100 * (cell[TRADITIONAL] / cell["best"] - 1) for cell in row)])
    header = [f"{memory} MB" for memory in MEMORY]
    where = (
        "How many times as fast N-Hash is as the original method, seconds of the whole partition phase with the paper's CPU and the "
        "published buffers. Where one command is taken at a time a call of many gains nothing, and N-Hash, which makes about two requests "
        "of every buffer, loses."
    )
    divided = (
        "What N-Hash gains, in %, where buckets, output and input buffers and sub-buffers are divided for the drive by the rule in closed "
        "form, over the published rule; and over the original method with the published buffers. Below a gain of 2 % by the closed form "
        "the published buffers stay."
    )
    return [
        Section(TITLE, where, [Table(["drive", *header], pays, "every-drive", digits=2)]),
        Section(
            "What the paper left open: buffers divided for a drive", divided, [Table(["drive", "", *header], gains, "divided", digits=1)]
        ),
    ]


def _gain_of_formula(drive: str, memory: int) -> float:
    task = problem(drive, memory)
    return 100 * (task.seconds(published(task)) / task.seconds(best(drive, memory)) - 1)
