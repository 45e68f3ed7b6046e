"""The paper's open question: whether its lessons hold on other disks and flash drives, up to those of today.

Every join with one buffer pool, blocked and page-sized, executed on every device that there is a preset of.  The buffers are those of the
paper's disk, so that all devices share a pass; the best buffers of each are another exhibit (`flashsim.literature.do2009.allocations`).
"""

from collections.abc import Collection

import numpy as np
from matplotlib.figure import Figure

from flashsim.device import presets
from flashsim.literature.do2009.every_device import LESSONS_MEMORY, SHARE, on_every_device
from flashsim.literature.do2009.runs import JOINS, LABELS
from flashsim.studies.presentation.plots import COLOURS, panels
from flashsim.studies.presentation.section import Section
from flashsim.studies.presentation.tables import Entry, Table
from flashsim.studies.runs.jobs import Job, Results, Settings

TITLE = "What the paper left open: its lessons on other hardware"


def jobs(claims: Collection[str], settings: Settings) -> list[Job]:
    return [_job(settings, join, page_io) for page_io in (True, False) for join in JOINS]


def _job(settings: Settings, join: str, page_io: bool) -> Job:
    label = f"{join}, {'page-sized' if page_io else 'blocked'} I/O on every device"
    return Job.of(on_every_device, label, join=join, page_io=page_io, scale=settings.scale * SHARE, seed=settings.seed)


class Lessons:
    """Measurements on each device, and the paper's lessons that hold there."""

    def __init__(self, results: Results) -> None:
        times = {(join, page_io): results.get(_job(results.settings, join, page_io), {}) for join in JOINS for page_io in (False, True)}
        self._times = times
        self.devices = [name for name in presets.names() if all(name in by_device for by_device in times.values())]

    def seconds(self, name: str, join: str, what: str, page_io: bool = False) -> float:
        """``io`` or ``cpu`` seconds."""
        return float(self._times[join, page_io][name][what])

    def total(self, name: str, join: str) -> float:
        """I/O and CPU seconds with blocked I/O."""
        return self.seconds(name, join, "io") + self.seconds(name, join, "cpu")

    def hybrid_is_best(self, name: str) -> bool:
        """Lesson 1: hybrid hash is faster than the other joins."""
        return self.total(name, "hybrid-hash") <= min(self.total(name, join) for join in JOINS)

    def blocked_gain(self, name: str) -> float:
        """Lesson 2: the least, over the joins, of page-sized over blocked I/O seconds."""
        return min(self.seconds(name, join, "io", page_io=True) / self.seconds(name, join, "io") for join in JOINS)

    def cpu_share(self, name: str) -> float:
        """Lesson 3: the median, over the joins, of CPU time's share of the total."""
        return float(np.median([self.seconds(name, join, "cpu") / self.total(name, join) for join in JOINS]))


def sections(results: Results) -> list[Section]:
    """Seconds on every device, and the lessons that hold."""
    lessons = Lessons(results)
    rows: list[list[Entry]] = []
    for name in lessons.devices:
        best = min(JOINS, key=lambda join: lessons.total(name, join))
        times = [lessons.seconds(name, join, "io") for join in JOINS]
        rows.append([name, *times, LABELS[best], lessons.blocked_gain(name), 100 * lessons.cpu_share(name)])
    header = [
        "device",
        *(f"{LABELS[join]}: I/O s" for join in JOINS),
        "fastest in all",
        "page-sized over blocked I/O, least",
        "CPU share %",
    ]
    table = Table(header, rows, "hardware", digits=2)
    return [Section(TITLE, _text(lessons, results.settings.scale * SHARE), [table], {"hardware": figure(lessons)})]


def _text(lessons: Lessons, scale: float) -> str:
    names = lessons.devices
    best, blocked, busy = (
        sum(holds(name) for name in names)
        for holds in (lessons.hybrid_is_best, lambda name: lessons.blocked_gain(name) > 1.1, lambda name: lessons.cpu_share(name) > 0.5)
    )
    return (
        f"Executed at scale {scale:g} with the paper's {LESSONS_MEMORY} MB, processor and buffers. Of {len(names)} devices, hybrid hash is "
        f"the fastest join on {best}; page-sized I/O takes a tenth longer than blocked I/O at least, in every join, on {blocked}; CPU time "
        f"is more than half of the total on {busy}."
    )


def figure(lessons: Lessons) -> Figure:
    """Cost of page-sized I/O over blocked I/O on each device, the least and the most over the joins."""
    with panels(0.28 * len(lessons.devices) + 1.2) as (picture, axes):
        for place, name in enumerate(lessons.devices):
            ratios = [lessons.seconds(name, join, "io", page_io=True) / lessons.seconds(name, join, "io") for join in JOINS]
            axes.plot([min(ratios), max(ratios)], [place, place], color=COLOURS[0][0], marker="|", lw=3)
        axes.axvline(1, color="#7f7f7f", lw=0.6)
        axes.set_xscale("log")
        axes.set_yticks(range(len(lessons.devices)), lessons.devices)
        axes.set_xlabel("page-sized over blocked I/O time, least and most of the four joins")
    return picture
