"""Effect of each assumption about the drives' inside on table 1: predicted rows on drives that differ in one of them."""

from collections.abc import Collection
from statistics import median

from flashsim.literature.base import Entry, Job, Results, Section, Settings, Table
from flashsim.literature.shin2016.runs import DEVICES, METHODS, N_HASH, TRADITIONAL, VARIANTS, grace_setup, varied
from flashsim.literature.shin2016.table1 import published

TITLE = "What the drives' inside matters"
#: Share of the relation: enough for rows whose buffers are small.
_SHARE, _ROWS = 0.1, (10, 20, 30)


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    """Both methods in some rows, all drives and variants in one pass."""
    return [_job(memory, method, settings) for memory in _ROWS for method in METHODS]


def _job(memory: int, method: str, settings: Settings) -> Job:
    setup, scale = grace_setup(memory).by(method), settings.scale * _SHARE
    return Job.of(varied, f"{setup.name}, drives that differ in one assumption", setup=vars(setup), scale=scale, seed=settings.seed)


def sections(results: Results) -> list[Section]:
    """Errors of reads and writes, by drive and variant."""
    runs = {
        (memory, method): results.get(_job(memory, method, results.settings), {}) for memory in _ROWS for method in (N_HASH, TRADITIONAL)
    }
    if not all(runs.values()):
        return []
    rows: list[list[Entry]] = [[variant] for variant in VARIANTS]
    for row in rows:
        for drive in DEVICES:
            for what in ("read", "write"):
                errors = [
                    100 * (run[f"{drive}, {row[0]}"][what] / (results.settings.scale * _SHARE) / published(drive, method, what)[memory] - 1)
                    for (memory, method), run in runs.items()
                ]
                row.append(f"{median(map(abs, errors)):.0f} (worst {max(errors, key=abs):+,.0f})")
    header = ["drives", *(f"{drive}: {what}, %" for drive in DEVICES for what in ("reads", "writes"))]
    sizes = ", ".join(map(str, _ROWS))
    text = (
        f"Errors of read and write seconds of both methods with {sizes} MB, medians of absolute ones, when drives differ in one assumption "
        "and all that was calibrated stays."
    )
    return [Section(TITLE, text, [Table(header, rows, "sensitivity")])]
