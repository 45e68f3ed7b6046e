"""Runs that were never made: results of every paper's runs in which each time or rate is a number that a test chooses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from random import Random
from typing import Any

from flashsim.apps.papers.base import PAPERS, Paper, load
from flashsim.apps.papers.shin2016.runs import DEVICES
from flashsim.execution.pooled.system import COUNTED
from flashsim.experiments.bench.uflip import COLUMNS
from flashsim.experiments.judging.claims import Claim, Judgement
from flashsim.experiments.runs.jobs import Job, JobResult, Results, Settings

#: The number at a place of a run: a time or a rate.
Number = Callable[..., float]
EQUAL: Number = lambda *place: 1.0  # noqa: E731
_INTERVALS = 140


def at_random(most: float, seed: int) -> Number:
    """Numbers between 1 and so many times as much or as little, evenly by their logarithms; a place has one number."""
    return lambda *place: most ** Random(f"{seed} {place}").uniform(-1, 1)


def _join(number: Number, join: str, memory: int, repetitions: int, **parameters: Any) -> dict[str, Any]:
    def phase(name: str, machine: str, repetition: int) -> dict[str, Any]:
        times = {key: number(join, memory, *parameters.values(), machine, repetition, key) / 2 for key in ("io", "cpu", "user", "kernel")}
        return {"phase": name, "requests": 1, "pages": 1, "seeks": 0, "seek_time": 0, **times, "total": times["io"] + times["cpu"]}

    def run(machine: str, repetition: int) -> list[dict[str, Any]]:
        total = phase("total", machine, repetition)
        share = {name: number(join, memory, machine, repetition, name) for name in ("first", "second")}
        parts = [total | {"phase": name, "io": total["io"] * part / sum(share.values())} for name, part in share.items()]
        return [*parts, total]

    machines = {machine: [run(machine, repetition) for repetition in range(repetitions)] for machine in ("HDD", "SSD")}
    return {"machines": machines, "pages": [93_440, 655_360, 80_000, 600_000], "work": {"hash": 1}}


def _partition(number: Number, setup: dict[str, Any], **parameters: Any) -> dict[str, Any]:
    names = ("total", "read", "write", "cpu")
    return {drive: {name: number(*setup.values(), drive, name) for name in names} | {"reads": 0} for drive in DEVICES}


def _bandwidths(number: Number, drive: str, **parameters: Any) -> list[dict[str, Any]]:
    def row(size: int, level: int) -> dict[str, Any]:
        run = ("write", "I/O size", "bytes", str(level), size, 1, 0, 1, 1.0, 1, 0.0, 1.0, number(drive, size, level))
        return dict(zip(COLUMNS, run, strict=True))

    return [row(size, level) for size, level in product([4 << 10, 8 << 10, 32 << 10, 64 << 10, 1 << 20], [1, 512])]


def _digest(number: Number, setup: dict[str, Any], **parameters: Any) -> dict[str, float]:
    return {name: number(*setup.values(), name) for name in ("seconds", "read", "write")}


def _texts(setup: dict[str, Any]) -> dict[str, str]:
    """The values of a setup; of its log's options what distinguishes restarts."""
    hardening = {"flush_writes": setup["hardening"]["flush_writes"]} if setup["restart"] else {}
    return {name: str(value) for name, value in (setup | {"hardening": hardening}).items()}


def _pool(number: Number, setup: dict[str, Any], **parameters: Any) -> dict[str, Any]:
    place = [value for name, value in _texts(setup).items() if setup["restart"] or name not in ("restart", "hardening")]

    def counts(name: str) -> list[int]:
        return [round(1e9 * number(*place, name))] * _INTERVALS

    waste = round(6e7 * number(*place)) if setup["design"] == "tac" else 0
    every = {name: counts(name) for name in COUNTED} | {"ssd_invalid": [waste] * _INTERVALS}
    rest = {"devices": {}, "cpu_s": 0.0, "ended": True, "figures": {}, "requests": 0}
    return {"counts": every, "by_kind": {}, "interval": 10**9, "ssd": 10**9, **rest}


def _tests(number: Number, setup: dict[str, Any]) -> dict[str, Any]:
    return {"figures": {name: number(*_texts(setup).values(), name) for name in ("power", "throughput", "QphH")}}


def _restart(number: Number, setup: dict[str, Any], ends: str, **parameters: Any) -> dict[str, Any]:
    place = (*_texts(setup).values(), ends)
    before, after = (_pool(number, setup | {"part": part, "ends": ends}) for part in ("before", "after"))
    phases = {phase: number(*place, phase) for phase in ("load", "analysis", "redo", "undo")}
    rest = {"records": 1.0, "log_bytes": 1.0, "warm": 1.0, "work": {}, "scale": 1.0}
    return {"before": before, "after": after, "shutdown": number(*place), "phases": phases, **rest}


def _guard(number: Number, restart: str, without: list[str], **parameters: Any) -> dict[str, Any]:
    return {"histories": 1, "fails": number(restart, *without), "fails_with": number(restart)}


def _scan(number: Number, **parameters: Any) -> dict[str, float]:
    return {
        name: number(*map(str, parameters.values()), name) for name in ("seconds", "joules", "over_idle", "mb_s", "core", "bus", "link")
    }


_MADE: dict[str, Callable[..., Any]] = {
    "do2009.runs:run_join": _join,
    "do2009.table1:best_seconds": lambda number, **parameters: 1.0,
    "li2009.runs:run_join": _digest,
    "li2009.runs:count_pages": lambda number, **parameters: [number(place) for place in range(6)],
    "shin2016.runs:run_partition": _partition,
    "shin2016.runs:bandwidths": _bandwidths,
    "pools.setup:run_pool": _pool,
    "do2012.simulations:run_on_drives": _pool,
    "do2012.simulations:run_tests": _tests,
    "do2012.scans:smart_run": _scan,
    "do2012.scans:bandwidth": _scan,
    "pools.restart:run_restart": _restart,
    "crashing.injection:search": _guard,
    "crashing.injection:frames_kept": lambda number, without, **parameters: {"kept": number(*without)},
}


def result(job: Job, number: Number) -> Any:
    """What a run would return if its times and rates were these."""
    return _MADE[".".join(job.function.split(".")[-2:])](number, **job.parameters)


def judged(paper: Paper, claim: Claim, number: Number) -> Judgement:
    """The verdict on a claim, were the numbers of its runs these."""
    settings = Settings()
    jobs = paper.exhibit(str(claim.exhibit)).jobs([claim.id], settings)
    return paper.judge(claim, Results(settings, {job: JobResult(result(job, number), 1.0, recalled=False) for job in jobs}))


def every_claim() -> Iterator[tuple[Paper, Claim]]:
    """Claims of all papers that are judged."""
    for paper in map(load, PAPERS.names()):
        yield from ((paper, claim) for claim in paper.claims if claim.exhibit)
