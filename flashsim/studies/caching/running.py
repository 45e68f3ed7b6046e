"""Policies at many sizes over one trace, as many at a time as there are cores: threads, since a simulation holds no lock."""

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from threading import Event, Thread
from typing import Any

import numpy as np
import numpy.typing as npt

from algorithms.replacement.base import REPLACEMENT, check_replacement_policy, replacement_parts
from flashsim.core.compiling import Compilation, parts_of
from flashsim.core.errors import InvalidParameterError
from flashsim.core.protocols import Progress
from flashsim.core.replacement import FIRST_PAGE, NEVER_AGAIN, ReplacementPolicy
from flashsim.core.transactions import BATCH
from flashsim.core.units import MICROSECONDS, SECONDS, parse_count
from flashsim.storage.pool.simulation import Counts, Simulation, simulation
from flashsim.studies.caching.numbered import NumberedTrace
from flashsim.studies.caching.on_device import DeviceCost
from flashsim.studies.caching.sizes import PoolSize

#: All members of the family.
ALL = "all"
#: Separator of policies: a comma that no parameter stands behind.
_BETWEEN = re.compile(r",(?![^,:=]*=)")
#: References at once, compiled and in plain Python: between two of them a run can be stopped.
_AT_ONCE, _PLAIN_AT_ONCE = BATCH, 1 << 14
#: Seconds between two looks at how far runs have come.
_LOOKS_EVERY = 0.2
#: Seconds that threads have to end after the signal to stop.
_PATIENCE = 2.0


@dataclass(frozen=True)
class PolicyRun:
    """Counts of one policy in a pool of one size, after the warm-up."""

    policy: str
    #: The policy knows the future: a bound, and nothing that could be used.
    future: bool
    size: PoolSize
    counts: Counts
    #: Hit ratio in each window, shape (n,).
    windows: npt.NDArray[np.float64]
    #: Processor seconds of all references.
    seconds: float
    #: Cost of the misses and write-backs on a device, if there was one.
    cost: DeviceCost | None = None

    @property
    def hit_ratio(self) -> float:
        """The share of references whose page was in the pool."""
        return self.counts.hits / self.counts.references

    def row(self, page_size: int, distinct: int) -> dict[str, Any]:
        """JSON-ready; `page_size` in bytes.

        A miss reads its page, that of a write too: a write may change a part of it.  A page that is dirty when it leaves is written; what
        is dirty at the end is not counted.
        """
        counts = self.counts
        return {
            "policy": self.policy,
            "size": self.size.label,
            "pages": self.size.frames,
            "share": self.size.frames / distinct,
            "references": counts.references,
            "writes": counts.writes,
            "hits": counts.hits,
            "hit_ratio": self.hit_ratio,
            "misses": counts.misses,
            "first": counts.first,
            "again": counts.misses - counts.first,
            "read_misses": counts.misses - counts.write_misses,
            "write_misses": counts.write_misses,
            "evictions": counts.evictions,
            "write_backs": counts.write_backs,
            "bytes_read": counts.misses * page_size,
            "bytes_written": counts.write_backs * page_size,
            "reference_us": self.seconds * SECONDS / MICROSECONDS / counts.references,
        } | (self.cost.row() if self.cost else {})


def policy_names(entries: Sequence[str]) -> list[str]:
    """Policies by name, each once; a text may hold several, separated by commas, and `ALL` stands for every member.

    Examples
    --------
    >>> policy_names(["lru-k:k=3,correlated=10,arc", "arc,gclock:limit=3", "fifo"])
    ['lru-k:k=3,correlated=10', 'arc', 'gclock:limit=3', 'fifo']
    """
    texts = [text for several in entries for text in _BETWEEN.split(several)]
    names = [member for text in texts for member in (REPLACEMENT.names() if text == ALL else [text])]
    for name in names:
        check_replacement_policy(name)
    return list(dict.fromkeys(names))


def compilation(names: Sequence[str]) -> Compilation:
    """The compilation of all kernels of policies that are not kept from earlier, several at a time."""
    engine = parts_of([Simulation.__module__])
    return Compilation([*engine, *replacement_parts(name.partition(":")[0] for name in names)])


def warm_up_references(value: str | int, references: int) -> int:
    """References of a warm-up, from a number of them or a share such as ``10%``."""
    text = str(value).strip()
    try:
        count = round(float(text[:-1]) / 100 * references) if text.endswith("%") else parse_count(text)
    except (ValueError, OverflowError):  # InvalidParameterError is one
        raise InvalidParameterError("warm-up", repr(value), "a number of references or a share such as 10% is needed") from None
    if not 0 <= count < references:
        raise InvalidParameterError("warm-up", value, f"it must leave some of {references:,} references to count")
    return count


@dataclass(frozen=True)
class CacheSetting:
    """Warm-up, sample, windows, threads and seed of runs."""

    #: References of the whole trace before those that count.
    warm_up: int = 0
    #: The share of pages whose references the trace keeps: pools are as much smaller, and counts as much larger.
    sample: float = 1.0
    #: Windows of equal length, at most as many as there are references.
    windows: int = 1
    #: Threads.
    jobs: int = 1
    #: Seed of what policies draw.
    seed: int = 0


def run(
    trace: NumberedTrace,
    policies: Sequence[ReplacementPolicy],
    sizes: Sequence[PoolSize],
    setting: CacheSetting,
    progress: Progress | None = None,
) -> list[PolicyRun]:
    """Every policy at every size, size by size."""
    if any(policy.future for policy in policies):
        trace.look_ahead(progress)
    simulation(policies[0], 1).refer(np.array([FIRST_PAGE], np.int32), None, np.array([NEVER_AGAIN], np.int32))  # loads what all share
    cells = [(policy, size) for size in sizes for policy in policies]
    at, stop = [0] * len(cells), Event()

    def make(number: int) -> PolicyRun:
        return _run(trace, *cells[number], setting, at, number, stop)

    def tell(runs: int) -> None:
        if progress is not None:
            progress(sum(at) / (trace.references * len(cells)), 1, f"{runs} of {len(cells)} runs")

    return _side_by_side(make, len(cells), setting.jobs, stop, tell)


def _side_by_side(make: Callable[[int], PolicyRun], count: int, jobs: int, stop: Event, tell: Callable[[int], None]) -> list[PolicyRun]:
    """Make runs 0, 1, ..., as many at a time as there are jobs; the first that fails, or an interrupt, ends all.

    The threads end with the process: a policy of one's own that never comes back holds nobody up.
    """
    runs: dict[int, PolicyRun] = {}
    problems: list[BaseException] = []
    numbers = iter(range(count))

    def work() -> None:
        while not stop.is_set() and (number := next(numbers, None)) is not None:
            try:
                runs[number] = make(number)
            except BaseException as problem:
                problems.append(problem)
                stop.set()

    threads = [Thread(target=work, daemon=True) for _ in range(min(jobs, count))]
    try:
        for thread in threads:
            thread.start()
        while (alive := [thread for thread in threads if thread.is_alive()]) and not problems:
            alive[0].join(_LOOKS_EVERY)
            tell(len(runs))
    finally:
        stop.set()
        for thread in threads:
            thread.join(_PATIENCE)
    if problems:
        raise problems[0]
    return [runs[number] for number in range(count)]


def _run(
    trace: NumberedTrace, policy: ReplacementPolicy, size: PoolSize, setting: CacheSetting, at: list[int], run: int, stop: Event
) -> PolicyRun:
    frames = min(max(1, round(size.frames * setting.sample)), trace.pages)  # with more nothing ever leaves either
    pool = simulation(policy, frames, setting.seed, trace.pages)
    begin = round(setting.warm_up * trace.references / trace.read)
    ends = np.linspace(begin, trace.references, min(setting.windows, trace.references - begin) + 1).astype(np.int64)
    counts, seconds = [], 0.0
    at_once = _AT_ONCE if policy.kernels is not None else _PLAIN_AT_ONCE
    for first, last in pairwise([0, *ends.tolist()]):
        for begin in range(first, last, at_once):
            end = min(begin + at_once, last)
            if stop.is_set():
                break
            pages, writes = trace.part(begin, end)
            next_uses = trace.next_uses(begin, end) if policy.future else None
            began = time.thread_time()
            pool.refer(pages, writes, next_uses)
            seconds += time.thread_time() - began
            at[run] = end
        counts.append(pool.counts)
    hits = np.diff([total.hits for total in counts]) / np.diff(ends)
    totals = _of_all(np.subtract(counts[-1], counts[0]) / setting.sample, trace.read - setting.warm_up)
    return PolicyRun(policy.name, policy.future, size, totals, hits, seconds * totals.references / trace.read)


def _of_all(sample: npt.NDArray[np.float64], references: int) -> Counts:
    """Counts of all references from those of a sample: where it has more or fewer than its share of them, these hit in a pool of any size.

    Hot pages are few, and a sample has too many or too few of them: SHARDS-adj (Waldspurger, Park, Garthwaite, Ahmad, FAST 2015).
    """
    counts = Counts(*map(round, sample.tolist()))
    return counts._replace(references=references, hits=max(0, references - counts.misses))
