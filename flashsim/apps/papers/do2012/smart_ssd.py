"""Chapter 5: bandwidths (table 5.1) and selections inside the Smart SSD (figures 5.4 and 5.5), with the thesis's question about cores."""

from collections.abc import Collection, Mapping
from itertools import product
from typing import Any

from flashsim.apps.papers.base import Cell, Claim, Entry, Exhibit, Job, Results, Section, Settings, Table, load
from flashsim.apps.papers.do2012.scans import DISK, ROWS, SMART, SSD, bandwidth, smart_run
from flashsim.core.units import GB
from flashsim.experiments.judging.cells import crossing, ratio, saving, statement

#: Bytes of dummy data that are read (section 5.4.2), and the part of the table with which what nothing is published of is run.
_SIZE, _PART = 100 * GB, 0.1
_SELECTIVITIES = (0.001, 0.01, 0.1, 0.2, 0.4, 0.5, 0.6, 0.8, 1.0)
_CORES = (1, 2, 4, 8)
_LAYOUTS = ("NSM", "PAX")


def _run(where: str, settings: Settings, part: float = 1.0, **parameters: Any) -> Job:
    label = f"LINEITEM on {where}" + "".join(f", {name} {value}" for name, value in parameters.items())
    return Job.of(smart_run, label, where=where, rows=round(ROWS * settings.scale * part), **parameters)


def _inside(settings: Settings, layout: str, selectivity: float, part: float = 1.0, average: bool = False, cores: int = 0) -> Job:
    return _run(SMART, settings, part, layout=layout, selectivity=selectivity, average=average, cores=cores)


def _judged_jobs(settings: Settings) -> dict[str, Job]:
    return {
        "disk": _run(DISK, settings),
        "SSD": _run(SSD, settings),
        "NSM": _inside(settings, "NSM", 0.001),
        "PAX": _inside(settings, "PAX", 0.001),
        "all": _inside(settings, "PAX", 1.0),
        "average": _inside(settings, "PAX", 0.01, average=True),
    }


class _ReadBandwidths(Exhibit):
    """Table 5.1."""

    def jobs(self, claims: Collection[str], settings: Settings) -> list[Job]:
        size = round(_SIZE * settings.scale)
        return [Job.of(bandwidth, f"sequential reads of {name}", name=name, size=size) for name in (DISK, SSD, SMART) if claims]

    def cells(self, claim: Claim, results: Results) -> list[Cell]:
        return claim.numbers((results.get(job) or {}).get("mb_s") for job in self.jobs([claim.id], results.settings))


class _Queries(Exhibit):
    """Figures 5.4 and 5.5."""

    def jobs(self, claims: Collection[str], settings: Settings) -> list[Job]:
        return list(_judged_jobs(settings).values()) if claims else []

    def cells(self, claim: Claim, results: Results) -> list[Cell]:
        runs: dict[str, Any] = {name: results.get(job) or {} for name, job in _judged_jobs(results.settings).items()}

        def times(what: str, first: str, second: str) -> float | None:
            return ratio(runs[first].get(what), runs[second].get(what))

        def at_full_size(what: str, name: str) -> float | None:
            return ratio(runs[name].get(what), results.settings.scale)

        if claim.id == "fig5.5":
            least, above = claim.limits["times"], f"above {claim.limits['times']:g}"
            pairs = [(kind, what, other) for kind, what in (("time", "seconds"), ("energy", "joules")) for other in ("disk", "SSD")]
            return [
                statement(f"{kind}, {other} over the Smart SSD", above, [times(what, other, "average")], lambda value: value > least)
                for kind, what, other in pairs
            ]
        slower = saving(runs["all"].get("seconds"), runs["SSD"].get("seconds"))
        return claim.numbers([
            times("seconds", "disk", "PAX"), times("seconds", "SSD", "PAX"),
            at_full_size("seconds", "NSM"), at_full_size("seconds", "PAX"), at_full_size("seconds", "disk"),
            None if slower is None else -slower,
            times("joules", "disk", "PAX"), times("joules", "SSD", "PAX"),
            times("over_idle", "disk", "PAX"), times("over_idle", "SSD", "PAX"), at_full_size("joules", "disk"),
        ])  # fmt: skip


class _SmartCores(Exhibit):
    """The thesis's question, what more cores would bring, and selectivities with the break-even; from a part of the table."""

    TITLE = "Cores of the Smart SSD, and selectivities"

    def jobs(self, claims: Collection[str], settings: Settings) -> list[Job]:
        cores = [_inside(settings, layout, 0.001, _PART, cores=cores) for layout, cores in product(_LAYOUTS, _CORES)]
        swept = [_inside(settings, layout, share, _PART) for layout, share in product(_LAYOUTS, _SELECTIVITIES)]
        return [_run(SSD, settings, _PART), *cores, *swept]

    def sections(self, results: Results) -> list[Section]:
        jobs = self.jobs((), results.settings)
        if any(job not in results for job in jobs):
            return []
        ssd, *runs = (results[job] for job in jobs)

        def figures(run: Mapping[str, float]) -> list[float]:
            return [run["seconds"] / _PART, ssd["seconds"] / run["seconds"], 100 * run["core"], 100 * run["bus"]]

        more: list[list[Entry]] = [[*place, *figures(run)] for place, run in zip(product(_LAYOUTS, _CORES), runs, strict=False)]
        swept = dict(zip(product(_LAYOUTS, _SELECTIVITIES), runs[len(more) :], strict=True))
        rows: list[list[Entry]] = [[layout, 100 * share, *figures(run), run["joules"] / _PART] for (layout, share), run in swept.items()]
        evens = []
        for layout in _LAYOUTS:
            first, last = (swept[layout, share]["seconds"] for share in (_SELECTIVITIES[0], 1.0))
            by_formula = (ssd["seconds"] - first) / (last - first)
            simulated = crossing([(share, swept[layout, share]["seconds"] / ssd["seconds"]) for share in _SELECTIVITIES])
            evens.append(f"{100 * by_formula:.0f} % with {layout} by the prices, {100 * simulated:.0f} % as simulated")
        header, paper = ["seconds", "times as fast as the SSD", "cores busy, %", "bus busy, %"], load("do2012")
        text = paper.text("selectivities", part=_PART, evens="; of ".join(evens))
        selectivities = Table(["pages", "selectivity, %", *header, "J"], rows, "smart-selectivity", 2)
        cores = Table(["pages", "cores", *header], more, "smart-cores", 2)
        return [
            Section("A selection inside the drive (figure 5.4)", text, [selectivities], on_terminal=True),
            Section(self.TITLE, paper.text("cores"), [cores], on_terminal=True),
        ]


EXHIBITS: Mapping[str, Exhibit] = {"bandwidths": _ReadBandwidths(), "queries": _Queries(), "smart-cores": _SmartCores()}
