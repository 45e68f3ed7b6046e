"""Effect of each assumption about the drives' inside on table 1: predicted rows on drives that differ in one of them."""

from collections.abc import Collection
from statistics import median

from flashsim.literature.base import load
from flashsim.literature.shin2016.runs import DEVICES, METHODS, Setup, grace_setup
from flashsim.literature.shin2016.sensitivity_runs import VARIANTS, varied
from flashsim.literature.shin2016.table1 import COLUMNS, MEMORY
from flashsim.studies.presentation.section import Section
from flashsim.studies.presentation.tables import Entry, Table
from flashsim.studies.runs.jobs import Job, Results, Settings

TITLE = "What the drives' inside matters"
#: Share of the relation: enough for rows whose buffers are small.
_SHARE, _ROWS = 0.1, (10, 20, 30)


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    """Both methods in some rows, all drives and variants in one pass."""
    return [_job(grace_setup(memory).by(method), settings) for memory in _ROWS for method in METHODS]


def _job(setup: Setup, settings: Settings) -> Job:
    scale = settings.scale * _SHARE
    return Job.of(varied, f"{setup.name}, drives that differ in one assumption", setup=vars(setup), scale=scale, seed=settings.seed)


def sections(results: Results) -> list[Section]:
    """Errors of reads and writes, by drive and variant."""
    claim, settings = load("shin2016").claim("table1"), results.settings
    rows: list[list[Entry]] = []
    for variant in VARIANTS:
        row: list[Entry] = [variant]
        for drive in DEVICES:
            errors = {"read": list[float](), "write": list[float]()}
            for memory in _ROWS:
                for method, what in (column for column in COLUMNS if column[1] in errors):
                    seconds = results.get(_job(grace_setup(memory).by(method), settings), {}).get(f"{drive}, {variant}")
                    if not seconds:
                        return []
                    published = float(claim.published[drive][MEMORY.index(memory)][COLUMNS.index((method, what))])
                    errors[what].append(100 * (seconds[what] / (settings.scale * _SHARE) / published - 1))
            row += [f"{median(map(abs, each)):.0f} (worst {max(each, key=abs):+,.0f})" for each in errors.values()]
        rows.append(row)
    header = ["drives", *(f"{drive}: {what}, %" for drive in DEVICES for what in ("reads", "writes"))]
    sizes = ", ".join(map(str, _ROWS))
    text = (
        f"Errors of read and write seconds of both methods with {sizes} MB, medians of absolute ones, when drives differ in one assumption "
        "and all that was calibrated stays."
    )
    return [Section(TITLE, text, [Table(header, rows, "sensitivity")])]
