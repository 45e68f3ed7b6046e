"""Policies at many sizes over one trace, as many at a time as there are cores: threads, since a simulation holds no lock."""

import re
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from threading import Event, Thread
from typing import Any

import numpy as np
import numpy.typing as npt

from algorithms.replacement.base import REPLACEMENT, check_replacement_policy, replacement_parts
from flashsim.apps.caching.numbered import NumberedTrace
from flashsim.apps.caching.on_device import cost_row
from flashsim.core.compiling import Compilation, parts_of
from flashsim.core.errors import InvalidParameterError
from flashsim.core.protocols import Progress
from flashsim.core.replacement import FIRST_PAGE, NEVER_AGAIN, ReplacementPolicy
from flashsim.core.transactions import BATCH
from flashsim.core.units import MICROSECONDS, NEVER, SECONDS, format_size, parse_count, parse_size
from flashsim.execution.run import Run
from flashsim.storage.pool.simulation import Counts, Simulation, simulation
from traces.summary.miss_curve import LEAST_PAGES

#: A range is walked in so many steps, each larger by the same factor.
STEPS = 10
#: The largest pool: pages are numbered by 32 bits.
MOST_FRAMES = (1 << 31) - 16
_EXAMPLES = "a share such as 10%, pages such as 600pages, a size such as 4MiB, or a range such as 1%..80% is needed"
_SHARE, _PAGES = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*%"), re.compile(r"([0-9]+)\s*pages?")


@dataclass(frozen=True)
class PoolSize:
    """A size as it is written, or a step of a range, and pages that the pool holds."""

    label: str
    frames: int


@dataclass(frozen=True)
class _MemoryAmount:
    """A number of percent, pages or bytes."""

    unit: str
    amount: float

    def frames(self, distinct: int, page_size: int) -> int:
        count = {"%": self.amount * distinct / 100, "pages": self.amount, "bytes": self.amount // page_size}[self.unit]
        return max(1, round(count))

    @property
    def label(self) -> str:
        if self.unit == "%":
            return f"{self.amount:.3g} %"
        return f"{self.amount:,.0f} pages" if self.unit == "pages" else format_size(round(self.amount))


def parse_sizes(text: str | Sequence[str]) -> list[tuple[_MemoryAmount, ...]]:
    """Sizes, and ends of ranges, of texts that hold one or several separated by commas.

    Examples
    --------
    >>> [size.frames for size in pool_sizes(parse_sizes("1%..100%,600pages"), 1000, 8192)]
    [10, 17, 28, 46, 77, 129, 215, 359, 599, 600, 1000]
    """
    ranges = []
    for whole in [each.strip() for part in ([text] if isinstance(text, str) else text) for each in part.split(",")]:
        ends = tuple(_amount(end.strip(), whole) for end in whole.split(".."))
        if len(ends) > 2:
            raise InvalidParameterError("size", repr(whole), _EXAMPLES)
        if len(ends) == 2 and (ends[0].unit != ends[1].unit or ends[0].amount >= ends[1].amount):
            raise InvalidParameterError("size", repr(whole), "a range leads from a smaller size to a larger one of the same unit")
        ranges.append(ends)
    return ranges


def parse_share(value: str | float) -> float:
    """A share of pages, as ``1%`` or ``0.01``."""
    text = str(value).strip()
    with suppress(ValueError):
        share = float(text[:-1]) / 100 if text.endswith("%") else float(text)
        if 0 < share <= 1:
            return share
    raise InvalidParameterError("sample", repr(value), "a share above 0 and up to 1 is needed, such as 1% or 0.01")


def parse_sample(value: str | float) -> tuple[float, int]:
    """The sample of a curve: the least share of pages, and the number of pages above which it is made thinner.

    ``8000pages`` is 8,000 at most, however small a share of all that is.
    """
    if (match := _PAGES.fullmatch(str(value).strip())) and int(match[1]) > 0:
        return 0.0, int(match[1])
    return parse_share(value), LEAST_PAGES


def _amount(text: str, whole: str) -> _MemoryAmount:
    if match := _SHARE.fullmatch(text):
        amount = _MemoryAmount("%", float(match[1]))
    elif match := _PAGES.fullmatch(text):
        amount = _MemoryAmount("pages", float(match[1]))
    else:
        try:
            amount = _MemoryAmount("bytes", parse_size(text, "size"))
        except InvalidParameterError:
            raise InvalidParameterError("size", repr(whole), _EXAMPLES) from None
    if amount.amount <= 0:
        raise InvalidParameterError("size", repr(whole), "a pool holds at least one page")
    if amount.unit == "%" and amount.amount > 100:
        raise InvalidParameterError("size", repr(whole), "a share is at most 100 % of the trace's pages (a number of pages may be larger)")
    if amount.unit == "pages" and amount.amount > MOST_FRAMES:
        raise InvalidParameterError("size", repr(whole), f"a pool holds at most {MOST_FRAMES:,} pages")
    return amount


def pool_sizes(ranges: Sequence[tuple[_MemoryAmount, ...]], distinct: int, page_size: int) -> list[PoolSize]:
    """The pools that sizes come to for `distinct` pages of `page_size` bytes, from the smallest on, no two of the same frames."""
    pools: dict[int, PoolSize] = {}
    for ends in ranges:
        for amount in ends:
            if amount.unit == "bytes" and not page_size <= amount.amount <= page_size * MOST_FRAMES:
                bound = f"a pool holds from one page of {format_size(page_size)} to {MOST_FRAMES:,} pages"
                raise InvalidParameterError("size", amount.label, bound)
        steps = [*np.geomspace(ends[0].amount, ends[1].amount, STEPS)] if len(ends) == 2 else [ends[0].amount]
        for step in steps:
            amount = _MemoryAmount(ends[0].unit, float(step))
            frames = amount.frames(distinct, page_size)
            pools.setdefault(frames, PoolSize(amount.label, frames))
    return sorted(pools.values(), key=lambda size: size.frames)


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
    """Counts of one policy in a pool of one size, after the warm-up; hit ratio by window, shape (n,); processor seconds.

    `cost` are the misses and write-backs on a device, if there was one (`flashsim.apps.caching.on_device.Target.serve`), and `cpu` what
    prices work on a simulated one.
    """

    policy: str
    #: The policy knows the future: a bound, and nothing that could be used.
    future: bool
    size: PoolSize
    counts: Counts
    windows: npt.NDArray[np.float64]
    seconds: float
    cost: Run | None = None
    cpu: str | None = None

    @property
    def hit_ratio(self) -> float:
        """The share of references whose page was in the pool."""
        return self.counts.hits / self.counts.references

    def row(self, page_size: int, distinct: int) -> dict[str, Any]:
        """JSON-ready; `page_size` in bytes.

        A miss reads its page, that of a write too: a write may change a part of it.  A page that is dirty when it leaves is written; what
        is dirty at the end is not counted.
        """
        counts, size = self.counts, self.size
        row = {"policy": self.policy, "size": size.label, "pages": size.frames, "share": size.frames / distinct}
        row |= {"references": counts.references, "writes": counts.writes, "hits": counts.hits, "hit_ratio": self.hit_ratio}
        row |= {"misses": counts.misses, "first": counts.first, "again": counts.misses - counts.first}
        row |= {"read_misses": counts.misses - counts.write_misses, "write_misses": counts.write_misses}
        row |= {"evictions": counts.evictions, "write_backs": counts.write_backs}
        row |= {"bytes_read": counts.misses * page_size, "bytes_written": counts.write_backs * page_size}
        row |= {"reference_us": self.seconds * SECONDS / MICROSECONDS / counts.references}
        return row | (cost_row(self.cost, self.cpu) if self.cost else {})


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
class CacheStudy:
    """Parameters of a study of policies; what can be refused without a trace is refused at once.

    `policies`, `sizes` and `warm_up` are as `policy_names`, `parse_sizes` and `warm_up_references` take them; `limit` is the number of
    references, from the first on; `windows` are those of the trace with a hit ratio each.
    """

    policies: Sequence[str]
    sizes: Sequence[str]
    page_size: int
    warm_up: str | int = 0
    limit: int | None = None
    seed: int = 0
    jobs: int = 1
    #: The share of pages to look at, above 0 and up to 1: simulations are miniatures as much smaller, and their counts are estimates.
    sample: float = 1.0
    windows: int = 1

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise InvalidParameterError("limit", self.limit, "at least one reference is needed")
        for name, value, least in (("jobs", self.jobs, 1), ("seed", self.seed, 0)):
            if not least <= value < NEVER:
                raise InvalidParameterError(name, value, f"it must be at least {least}, and below {NEVER}")
        if not 0 < self.sample <= 1:
            raise InvalidParameterError("sample", f"{self.sample:.4g}", "a share of pages above 0 and up to 1 is needed")
        pool_sizes(parse_sizes(self.sizes), MOST_FRAMES, self.page_size)
        policy_names(self.policies)

    def as_dict(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("jobs", "windows") and value is not None}


def run(
    trace: NumberedTrace, policies: Sequence[ReplacementPolicy], sizes: Sequence[PoolSize], study: CacheStudy,
    warm_up: int = 0, progress: Progress | None = None,
) -> list[PolicyRun]:  # fmt: skip
    """Every policy at every size, size by size, as many at a time as there are jobs; the first that fails, or an interrupt, ends all.

    Not counted are as many references of the whole trace as the warm-up has.  Where the trace keeps the references of a sample of pages,
    pools are as much smaller, and counts as much larger.  The threads end with the process: a policy of one's own that never comes back
    holds nobody up.
    """
    if any(policy.future for policy in policies):
        trace.look_ahead(progress)
    simulation(policies[0], 1).refer(np.array([FIRST_PAGE], np.int32), None, np.array([NEVER_AGAIN], np.int32))  # loads what all share
    cells = [(policy, size) for size in sizes for policy in policies]
    at, stop, numbers = [0] * len(cells), Event(), iter(range(len(cells)))
    runs: dict[int, PolicyRun] = {}
    problems: list[BaseException] = []

    def work() -> None:
        while not stop.is_set() and (number := next(numbers, None)) is not None:
            try:
                runs[number] = _run(trace, *cells[number], study, warm_up, at, number, stop)
            except BaseException as problem:
                problems.append(problem)
                stop.set()

    threads = [Thread(target=work, daemon=True) for _ in range(min(study.jobs, len(cells)))]
    try:
        for thread in threads:
            thread.start()
        while (alive := [thread for thread in threads if thread.is_alive()]) and not problems:
            alive[0].join(_LOOKS_EVERY)
            if progress is not None:
                progress(sum(at) / (trace.references * len(cells)), 1, f"{len(runs)} of {len(cells)} runs")
    finally:
        stop.set()
        for thread in threads:
            thread.join(_PATIENCE)
    if problems:
        raise problems[0]
    return [runs[number] for number in range(len(cells))]


def _run(
    trace: NumberedTrace, policy: ReplacementPolicy, size: PoolSize, study: CacheStudy, warm_up: int, at: list[int], run: int, stop: Event
) -> PolicyRun:
    frames = min(max(1, round(size.frames * study.sample)), trace.pages)  # with more nothing ever leaves either
    pool = simulation(policy, frames, study.seed, trace.pages)
    begin = round(warm_up * trace.references / trace.read)
    ends = np.linspace(begin, trace.references, min(study.windows, trace.references - begin) + 1).astype(np.int64)
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
    # Hot pages are few, and a sample has too many or too few of them.  Where it has more or fewer than its share of references, these hit
    # in a pool of any size: SHARDS-adj (Waldspurger, Park, Garthwaite, Ahmad, FAST 2015).
    totals, references = Counts(*map(round, (np.subtract(counts[-1], counts[0]) / study.sample).tolist())), trace.read - warm_up
    totals = totals._replace(references=references, hits=max(0, references - totals.misses))
    return PolicyRun(policy.name, policy.future, size, totals, hits, seconds * references / trace.read)
