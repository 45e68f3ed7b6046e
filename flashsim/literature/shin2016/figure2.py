"""Figure 2: bandwidth of writes that are handed over at once, over their size and number, by the benchmark of section 2.4."""

import pandas as pd

from flashsim.core.units import KIB, MB, MIB, format_size
from flashsim.literature.base import Cell, Claim, Job, Judged, Runs, Section, Settings, Table
from flashsim.literature.shin2016.figure2_runs import bandwidths
from flashsim.literature.shin2016.runs import DEVICES
from flashsim.studies.bench.session import aio_picture, at_levels
from flashsim.studies.judging.cells import bounded, number, statement


class _Runs(Runs):
    @staticmethod
    def job(drive: str, settings: Settings) -> Job:
        return Job.of(bandwidths, f"bandwidth of writes, {drive}", drive=drive, whole=settings.scale == 1, seed=settings.seed)

    @property
    def measured(self) -> dict[str, pd.DataFrame]:
        """Bandwidth by size and level, of each drive."""
        return {drive: pd.DataFrame(runs) for drive in DEVICES if (runs := self.get(drive))}


def _reached(claim: Claim, runs: _Runs) -> list[Cell]:
    """From which size on each drive reaches its maximum, that one write of 1 MB does, and what parallelism gives."""
    rates, limit = {drive: at_levels(frame) for drive, frame in runs.measured.items()}, claim.limits["reached"]
    best = {drive: each.max(axis=1) / each.max().max() for drive, each in rates.items()}  # over the levels of each size
    if len(best) < len(DEVICES):
        return [statement("every drive", "measured", [None], bool)]
    shares = {
        "ioDrive with any size": best["ioDrive"].min(),
        "P300 from 64 KB on": best["P300"].loc[64 * KIB :].min(),
        "P300 with 32 KB": best["P300"][32 * KIB],
        "Vertex 3 with 4 KB": best["Vertex 3"][4 * KIB],
        **{f"{drive}, one write of 1 MB": each.loc[MIB, 1] / each.max().max() for drive, each in rates.items()},
    }
    below = ("P300 with 32 KB", "Vertex 3 with 4 KB")
    every = [
        bounded(f"{name}: share of the maximum", "below" if name in below else "at least", limit, float(share))
        for name, share in shares.items()
    ]
    factor = max(float(each.max().max() / each.min().min()) for each in rates.values())
    return [*every, number("largest factor", claim.published["largest factor"][0], factor, claim.limits["factor"])]


def _shown(runs: _Runs) -> list[Section]:
    measured = runs.measured
    rates = pd.concat({drive: at_levels(frame) / MB for drive, frame in measured.items()}) if measured else pd.DataFrame()
    rows = [[drive, format_size(size), *row] for (drive, size), *row in rates.itertuples(name=None)]
    text = "MB/s of writes to random places of 8 GiB, as many at once as a column says, and the next ones once all of these are done."
    pictures = {f"fig2-{drive.replace(' ', '-')}": aio_picture(frame) for drive, frame in measured.items()}
    table = Table(["drive", "I/O size", *map(str, rates)], rows, "fig2", digits=1)
    return [Section("Bandwidth of writes at once (figure 2)", text, [table], pictures)]


EXHIBITS = {"figure2": Judged([*DEVICES], _shown, runs=_Runs, judges={"fig2": _reached})}
