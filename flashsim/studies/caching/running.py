"""Policies at many sizes over one trace, as many at a time as there are cores: threads, since a simulation holds no lock."""

import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
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
from flashsim.studies.caching.on_device import Served
from flashsim.studies.caching.sizes import PoolSize

#: All members of the family.
ALL = "all"
#: What stands between two policies: what has a sign behind it is a parameter.
_BETWEEN = re.compile(r",(?![^,:=]*=)")
#: References at once, compiled and in plain Python: between two of them a run can be stopped.
_AT_ONCE, _PLAIN_AT_ONCE = BATCH, 1 << 14
#: Seconds between two looks at how far runs have come.
_LOOKS_EVERY = 0.2
#: Seconds that threads have to end once they are told to.
_PATIENCE = 2.0


@dataclass(frozen=True)
class Run:
    """What one policy did in a pool of one size, after the warm-up.

    Parameters
    ----------
    future
        Whether the policy knows the future: a bound, and nothing that could be used.
    windows
        Its hit ratio in each window, shape (n,).
    seconds
        Of the processor, for all references.
    served
        What a device took for it, if there was one.
    """

    policy: str
    future: bool
    size: PoolSize
    counts: Counts
    windows: npt.NDArray[np.float64]
    seconds: float
    served: Served | None = None

    @property
    def hit_ratio(self) -> float:
        """The share of references whose page was in the pool."""
        return self.counts.hits / self.counts.references

    def row(self, page_size: int, distinct: int) -> dict[str, Any]:
        """JSON-ready; `page_size` in bytes.

        A miss reads its page, that of a write too: a write may change a part of it.  A page that is dirty when it leaves is written; what
        is dirty at the end is not counted.
        """
        told = self.counts
        return {
            "policy": self.policy,
            "size": self.size.label,
            "pages": self.size.frames,
            "share": self.size.frames / distinct,
            "references": told.references,
            "writes": told.writes,
            "hits": told.hits,
            "hit_ratio": self.hit_ratio,
            "misses": told.misses,
            "first": told.first,
            "again": told.misses - told.first,
            "read_misses": told.misses - told.write_misses,
            "write_misses": told.write_misses,
            "evictions": told.evictions,
            "write_backs": told.write_backs,
            "bytes_read": told.misses * page_size,
            "bytes_written": told.write_backs * page_size,
            "reference_us": self.seconds * SECONDS / MICROSECONDS / told.references,
        } | (self.served.row() if self.served else {})


def policy_names(written: Sequence[str]) -> list[str]:
    """Policies by name, each once; a text may hold several, separated by commas, and `ALL` stands for every member.

    Examples
    --------
    >>> policy_names(["lru-k:k=3,correlated=10,arc", "arc,gclock:limit=3", "fifo"])
    ['lru-k:k=3,correlated=10', 'arc', 'gclock:limit=3', 'fifo']
    """
    texts = [text for several in written for text in _BETWEEN.split(several)]
    names = [member for text in texts for member in (REPLACEMENT.names() if text == ALL else [text])]
    for name in names:
        check_replacement_policy(name)
    return list(dict.fromkeys(names))


def compilation(names: Sequence[str]) -> Compilation:
    """What policies need and is not kept from earlier, as it is compiled side by side."""
    shared = parts_of([Simulation.__module__])
    return Compilation([*shared, *replacement_parts(name.partition(":")[0] for name in names)])


def warm_up_references(written: str | int, references: int) -> int:
    """References of a warm-up, from a number of them or a share such as ``10%``."""
    text = str(written).strip()
    try:
        count = round(float(text[:-1]) / 100 * references) if text.endswith("%") else parse_count(text)
    except (ValueError, OverflowError):  # InvalidParameterError is one
        raise InvalidParameterError("warm-up", repr(written), "a number of references or a share such as 10% is needed") from None
    if not 0 <= count < references:
        raise InvalidParameterError("warm-up", written, f"it must leave some of {references:,} references to count")
    return count


@dataclass(frozen=True)
class Setting:
    """How runs are made.

    Parameters
    ----------
    warm_up
        References of the whole trace before those that count.
    sample
        The share of pages whose references the trace keeps: pools are as much smaller, and counts as much larger.
    windows
        Of equal length, at most as many as there are references.
    jobs
        Threads.
    seed
        Of what policies draw.
    """

    warm_up: int = 0
    sample: float = 1.0
    windows: int = 1
    jobs: int = 1
    seed: int = 0


def run(
    trace: NumberedTrace,
    chosen: Sequence[ReplacementPolicy],
    sizes: Sequence[PoolSize],
    setting: Setting,
    progress: Progress | None = None,
) -> list[Run]:
    """Every policy at every size, size by size."""
    if any(policy.future for policy in chosen):
        trace.look_ahead(progress)
    simulation(chosen[0], 1).refer(np.array([FIRST_PAGE], np.int32), None, np.array([NEVER_AGAIN], np.int32))  # loads what all share
    cells = [(policy, size) for size in sizes for policy in chosen]
    done, stop = [0] * len(cells), threading.Event()

    def make(number: int) -> Run:
        return _run(trace, *cells[number], setting, done, number, stop)

    def tell(ended: int) -> None:
        if progress is not None:
            progress(sum(done) / (trace.references * len(cells)), 1, f"{ended} of {len(cells)} runs")

    return _side_by_side(make, len(cells), setting.jobs, stop, tell)


def _side_by_side(make: Callable[[int], Run], count: int, jobs: int, stop: threading.Event, tell: Callable[[int], None]) -> list[Run]:
    """Make runs 0, 1, ..., as many at a time as there are jobs; the first that fails, or an interrupt, ends all.

    The threads end with the process: a policy of one's own that never comes back holds nobody up.
    """
    made: dict[int, Run] = {}
    failed: list[BaseException] = []
    left = iter(range(count))

    def work() -> None:
        while not stop.is_set() and (number := next(left, None)) is not None:
            try:
                made[number] = make(number)
            except BaseException as problem:
                failed.append(problem)
                stop.set()

    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(jobs, count))]
    try:
        for thread in threads:
            thread.start()
        while (alive := [thread for thread in threads if thread.is_alive()]) and not failed:
            alive[0].join(_LOOKS_EVERY)
            tell(len(made))
    finally:
        stop.set()
        for thread in threads:
            thread.join(_PATIENCE)
    if failed:
        raise failed[0]
    return [made[number] for number in range(count)]


def _run(
    trace: NumberedTrace, policy: ReplacementPolicy, size: PoolSize, setting: Setting, done: list[int], number: int, stop: threading.Event
) -> Run:
    frames = min(max(1, round(size.frames * setting.sample)), trace.pages)  # with more nothing ever leaves either
    pool = simulation(policy, frames, setting.seed, trace.pages)
    begin = round(setting.warm_up * trace.references / trace.read)
    ends = np.linspace(begin, trace.references, min(setting.windows, trace.references - begin) + 1).astype(np.int64)
    told, seconds = [], 0.0
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
            done[number] = end
        told.append(pool.counts)
    hits = np.diff([counts.hits for counts in told]) / np.diff(ends)
    counted = _of_all(np.subtract(told[-1], told[0]) / setting.sample, trace.read - setting.warm_up)
    return Run(policy.name, policy.future, size, counted, hits, seconds * counted.references / trace.read)


def _of_all(sampled: npt.NDArray[np.float64], references: int) -> Counts:
    """Counts of all references from those of a sample: where it has more or fewer than its share of them, these hit in a pool of any size.

    Hot pages are few, and a sample has too many or too few of them: SHARDS-adj (Waldspurger, Park, Garthwaite, Ahmad, FAST 2015).
    """
    counts = Counts(*map(round, sampled.tolist()))
    return counts._replace(references=references, hits=max(0, references - counts.misses))
