"""Figures from jobs of fio: groups that ran at the same time count together, and logs beside the file count more than sums."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from flashsim.apps.calibration.drive_figures import OPERATIONS, PERCENTILES, DriveFigure, check_load, number
from flashsim.apps.calibration.fio_jobs import FioJob
from flashsim.core.errors import DamagedFileError, FlashsimWarning
from flashsim.core.input_files import read_text
from flashsim.core.units import KIB, MILLISECONDS_A_SECOND

#: Percentiles that are taken from fio: what a closed loop's mean latency says its rate says, too.
_FIO_PERCENTILES = ("p50", "p99", "p99.9")
#: What copies' percentiles may differ by, to be one figure, and their shares of reads.
_LIKE, _LIKE_SHARES = 1.1, 0.05
#: Share of the longest time that the threads of a group may run shorter on average, beside `_SHORTEST`.
_APART = 0.05
#: Half of a log that says how long requests take together, ms; its times are whole ms.
_SHORTEST = 50


def figures_of_jobs(runs: Sequence[Sequence[FioJob]], path: Path, state: str) -> list[DriveFigure]:
    """Figures of the groups of jobs of one load, which ran at the same time, of each run of fio in a file.

    Of a group that is left out there is a `FlashsimWarning`, and `DamagedFileError` if all are.
    """
    figures, reasons = list[DriveFigure](), dict[str, list[str]]()
    try:
        for jobs in runs:
            groups = dict[Any, list[FioJob]]()
            for job in jobs:
                groups.setdefault(job.result.get("groupid", job.number), []).append(job)
            in_turn = sum(max(job.runtime for job in group) for group in groups.values())
            overlap = in_turn > MILLISECONDS_A_SECOND * jobs[0].result.get("elapsed", in_turn) if jobs else False
            for group in groups.values():
                why = next(filter(None, (job.why_not() for job in group)), "") or _why_apart(group)
                why = "groups of jobs ran at the same time (new_group)" if overlap else why
                active = [] if why else [job for job in group if job.requests]
                why = why or _why_unlike(active)
                if why:
                    reasons.setdefault(why, []).extend(str(job.number) for job in group)
                else:
                    figures += [figure for operation in _operations(active) for figure in _of_group(active, operation, path, state)]
    except (KeyError, TypeError, AttributeError, ZeroDivisionError) as problem:
        raise DamagedFileError(f"figures: {path}: a job of fio lacks {problem}") from None
    for why, numbers in reasons.items() if figures else ():
        warnings.warn(f"figures: {path.name}: job {', '.join(numbers)} is left out: {why}", FlashsimWarning, stacklevel=3)
    if not figures:
        every = "; ".join(f"job {', '.join(numbers)}: {why}" for why, numbers in reasons.items()) or "it has no result of a job"
        raise DamagedFileError(f"figures: {path} has no job that shows the drive alone ({every})")
    return figures


def _why_unlike(jobs: Sequence[FioJob]) -> str:
    """Why jobs are not of one load; nothing if they are."""
    loads = {(job.operations, job.is_random, job.size, job.depth, job.rate, job.is_direct) for job in jobs}
    shares = [job.result.get("read", {}).get("total_ios", 0) / job.requests for job in jobs]
    return "jobs of other loads ran at the same time" if len(loads) > 1 or (shares and max(shares) - min(shares) > _LIKE_SHARES) else ""


def _operations(jobs: Sequence[FioJob]) -> tuple[str, ...]:
    """Operations of a group, the more frequent one first."""
    names = jobs[0].operations if jobs else ()
    return tuple(sorted(names, key=lambda name: -sum(job.result[name]["total_ios"] for job in jobs)))


def _why_apart(jobs: Sequence[FioJob]) -> str:
    """Why a group's threads did not run at the same time, all from begin to end; nothing if they did."""
    threads, longest = sum(len(job.threads) for job in jobs), max(job.runtime for job in jobs)
    begins = {(str(job.options.get("startdelay", "0")), job.options.get("wait_for")) for job in jobs}
    if threads > 1 and (len(begins) > 1 or "-" in next(iter(begins))[0]):
        return "its jobs began one after the other (startdelay, wait_for)"
    together = sum(job.result.get("job_runtime", job.runtime * len(job.threads)) for job in jobs) / threads
    return "its jobs ran for different times, or it has more of them" if abs(together - longest) > _APART * longest + _SHORTEST else ""


def _of_group(jobs: Sequence[FioJob], operation: str, path: Path, state: str) -> Iterator[DriveFigure]:
    first, copies, shown = jobs[0], sum(len(job.threads) for job in jobs), [job.result[operation] for job in jobs]
    is_mixed = len(first.operations) > 1
    values: dict[str, Any] = {"operation": OPERATIONS[operation], "size": first.size, "random": first.is_random}
    values |= {"rate": first.rate * copies, "depth": max(1, first.depth) * copies}
    values |= {"state": state if is_mixed or operation == "write" else "sequential"}
    if is_mixed:
        share = sum(job.result["read"]["total_ios"] for job in jobs) / sum(job.requests for job in jobs)
        values["reads"] = min(max(round(share, 3), 0.001), 0.999)
    load = check_load(values, f"{path.name}, job {first.number}")
    note = first.unknown or ("" if first.is_direct else "through the page cache: fio had no direct=1")
    average = number(first.options.get("log_avg_msec", 0), f"job {first.number}: log_avg_msec")
    latencies = None if average else _log_rows(jobs, operation, "clat", path) or _log_rows(jobs, operation, "lat", path)
    if latencies is not None:
        later = np.concatenate([rows[len(rows) // 2 :, 1] for rows in latencies])
        percentiles = {name: float(np.percentile(later, share)) for name, share in PERCENTILES.items()}
    else:
        percentiles = {name: _of_copies(shown, f"{share:.6f}") for name, share in PERCENTILES.items()}
    if not load.rate and operation == _operations(jobs)[0]:  # a mixed load's other rate says the same
        rate = sum(each["iops"] for each in shown)
        yield DriveFigure(load, "iops", float(_lasting(_log_rows(jobs, operation, "bw", path), load.size, average) or rate), note)
    for name in _FIO_PERCENTILES:
        if percentiles[name]:
            yield DriveFigure(load, name, float(percentiles[name]), note)


def _of_copies(shown: Sequence[Mapping[str, Any]], share: str) -> float:
    """A percentile of copies together, which lies between the least and the largest of theirs; 0 if these differ."""
    latencies = [each.get("clat_ns", {}).get("percentile") or each.get("lat_ns", {}).get("percentile") or {} for each in shown]
    values = [each.get(share, 0) for each in latencies]
    return float(np.mean(values)) if max(values) <= _LIKE * min(values) else 0.0


def _lasting(logs: Sequence[Any] | None, size: int, average: float) -> float:
    """Requests a second in the second half of the time of logs; 0 where they do not say.

    A line is a request, or else a mean over `average` ms.
    """
    if logs is None:
        return 0.0
    times = np.concatenate([rows[:, 0] for rows in logs])
    half = (times.max() - times.min() + average) / 2
    later = [rows[rows[:, 0] > times.max() - half, 1] for rows in logs]
    if average:
        return sum(float(rates.mean()) for rates in later if len(rates)) * KIB / size
    return sum(map(len, later)) / half * MILLISECONDS_A_SECOND if half >= _SHORTEST else 0.0


def _log_rows(jobs: Sequence[FioJob], operation: str, kind: str, path: Path) -> list[Any] | None:
    """Rows of an operation in the logs of all threads beside fio's output: time (ms), latency (ns) or KiB a second, and direction."""
    logs, option = list[Any](), f"write_{kind.removeprefix('c')}_log"
    is_named = all(job.options.get(option) for job in jobs)  # fio's JSON does not tell of an option that has no value
    names = [(job, Path(str(job.options.get(option) or job.result.get("jobname"))).name) for job in jobs]
    places = [(job, path.parent / f"{name}_{kind}.{thread}.log") for job, name in names for thread in job.threads]
    if not (any if is_named else all)(place.is_file() for _, place in places):
        return None
    for job, log in places:
        try:
            lines = [line for line in read_text(log).splitlines() if line]
            rows = np.loadtxt(lines, delimiter=",", usecols=(0, 1, 2), ndmin=2) if lines else np.zeros((0, 3))
        except (ValueError, OSError) as problem:
            raise DamagedFileError(f"figures: {log} is not a log of fio: {str(problem).splitlines()[0]}") from None
        if not np.isin(rows[:, 2], [OPERATIONS[name] for name in job.operations]).all():
            if not is_named:
                return None
            of = "s and ".join(job.operations)
            raise DamagedFileError(f"figures: {log} is not of {of}s alone, but job {job.number} of {path.name} is")
        logs.append(rows)
    requests, means = sum(job.requests for job in jobs), any(job.options.get("log_avg_msec") for job in jobs)
    is_of_it = is_named or (sum(map(len, logs)) < requests if means else sum(map(len, logs)) == requests)  # and not of another run
    of_operation = [rows[rows[:, 2] == OPERATIONS[operation]] for rows in logs]
    return of_operation if is_of_it and min(map(len, of_operation)) >= 4 else None
