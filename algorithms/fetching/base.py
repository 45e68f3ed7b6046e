"""Contract of page-fetch strategies: one takes a join index as a stream, and decides which pages are fetched when and what each replaces.

A strategy asks the page cache to follow its schedules; the cache alone holds pages.  What it remembers of the join index counts as well:
frames and the pages that its graph takes are never more than `FetchParameters.memory` together.  A strategy may write temporary files.

Source: Li, On, Xu, Choi and Hu, "DigestJoin: Exploiting Fast Random Reads for Flash-based Joins" (MDM 2009), section III.
"""

from dataclasses import dataclass
from typing import Annotated, Protocol

import numpy as np

from algorithms.late_fetch.join_index import Entries, JoinIndex
from algorithms.late_fetch.page_cache import PageCache, Schedule
from algorithms.page_access.plan import LEAST_FRAMES, check_frames
from algorithms.replacement.base import replacement_policy
from flashsim.core.errors import InvalidParameterError, UnknownNameError
from flashsim.core.members import Family
from flashsim.core.options import Option
from flashsim.execution.requests import Algorithm
from flashsim.storage.pool.buffer_pool import BufferPool

#: Bytes that an entry takes in a join graph: two row ids, and its part of two adjacency lists.  Fitted: the paper does not say; with 48 to
#: 56, 512 pages are full at a selectivity of 0.18 to 0.21, where its figure 9 has them full.
ENTRY_BYTES = 48
#: Replacement policy of a buffer pool by default.
POLICY = "lru"
#: Factors of the number of entries by which ties between segments are broken.
TIES = {"most": 1, "any": 0, "fewest": -1}


_STRATEGIES = "Fetch strategy of digest: {strategies}; or a Python file. Default: planned."
_K = "With --fetch graph-based: memory for k (d + 1) pages, where d is the largest degree of the join graph; 1 by default."
_POLICIES = "With --fetch pooled: replacement policy, such as lirs or lru-k:k=3, of {policies}; or a Python file. Default: lru."


@dataclass(frozen=True, kw_only=True)
class FetchOptions:
    """The page-fetch strategy of a join, and options of the strategies that take them."""

    fetch: Annotated[str, Option(_STRATEGIES, "STRATEGY", completes=("strategies",))] = "planned"
    k: Annotated[float | None, Option(_K, kind="number")] = None
    policy: Annotated[str | None, Option(_POLICIES, "POLICY", completes=("policies",))] = None
    #: Bytes that an entry takes in a join graph.
    entry_bytes: int = ENTRY_BYTES
    #: Which of segments with equally few pages missing is fetched first: that with the ``most`` or ``fewest`` entries, or ``any``.
    ties: str = "most"
    #: Of graph-based fetching: frames that the cache keeps whatever k (d + 1) is, 2 or 1.  In one frame results are joined one by one: the
    #: row of R is copied before the page of S replaces its page.
    least_frames: int = LEAST_FRAMES

    def check(self) -> None:
        """Refuse values that no strategy takes; see `FetchParameters`."""
        if self.k is not None and not 0 < self.k < float("inf"):
            raise InvalidParameterError("k", self.k, "it must be above 0 and finite")
        if self.entry_bytes < 1:
            raise InvalidParameterError("entry bytes", self.entry_bytes, "it must be at least 1")
        if not 1 <= self.least_frames <= LEAST_FRAMES:
            raise InvalidParameterError("least frames", self.least_frames, f"it must be 1 to {LEAST_FRAMES}")
        if self.ties not in TIES:
            raise UnknownNameError("ties", self.ties, TIES)


@dataclass(frozen=True)
class FetchParameters:
    """Parameters of a strategy besides the join index and the cache.

    Raises
    ------
    InvalidParameterError
        Fewer than 2 pages, k not above 0, entries that take no bytes, or least frames other than 1 and 2.
    UnknownNameError
        There is no such way with ties.
    """

    #: Pages for the frames and what is remembered of the join index, together; at least 2.
    memory: int
    options: FetchOptions = FetchOptions()
    #: Latency of a request over the transfer time of a page: what a page costs more that does not follow the one before it.
    latency_ratio: float = 1.0
    #: Temporary files are written and read page by page too.
    page_io: bool = False

    def __post_init__(self) -> None:
        check_frames(self.memory)
        self.options.check()


class FetchStrategy(Protocol):
    """A member of the family."""

    #: Fields of `FetchOptions` that the strategy takes and not all strategies do: ``policy``, ``k``.
    OPTIONS: tuple[str, ...] = ()

    def fetch(self, index: JoinIndex, cache: PageCache, parameters: FetchParameters) -> Algorithm:
        """Fetch the pages that the entries of a join index lie on, and have each entry joined once.

        ``entries = yield from index.next()`` gives some, and None at the end.  The cache is empty: ``yield from cache.follow(schedule)``
        fetches and joins, and `cache.resize` changes its frames, of which it has `parameters.memory` at first and never more.
        """


#: All strategies; ``FETCHING.load("naive").fetch`` is one.
FETCHING = Family("algorithms.fetching", "fetch strategy", FetchStrategy)


def check_options(options: FetchOptions) -> None:
    """Refuse an option that the strategy does not take, and a replacement policy that has to know what is fetched later.

    Raises
    ------
    UnknownNameError, MissingFileError
        There is no such strategy or policy.
    InvalidParameterError
        The strategy does not take it, or the policy must know the future.
    FlashsimError
        The file is no policy, or a kernel of it does not compile.
    """
    takes = FETCHING.load(options.fetch).OPTIONS
    for name in ("policy", "k"):
        if (value := getattr(options, name)) is not None and name not in takes:
            raise InvalidParameterError(name, value, f"{options.fetch} fetching does not take it")
    if "policy" in takes and replacement_policy(options.policy or POLICY).future:
        raise InvalidParameterError("policy", options.policy, "it must know the future; of what is to be fetched, planned does")


def fetch_in_order(index: JoinIndex, cache: PageCache, policy: str = POLICY) -> Algorithm:
    """Fetch the pages of each entry as it comes, first R's and then S's; which is replaced for them is the policy's choice."""
    pool = pool_of(cache, cache.frames, policy)
    while (entries := (yield from index.next())) is not None:
        yield from cache.follow(schedule_in_order(entries, cache, pool))


def pool_of(cache: PageCache, frames: int, policy: str = POLICY) -> BufferPool:
    """A buffer pool that decides which of both relations' pages are in so many frames."""
    return BufferPool(replacement_policy(policy), min(frames, max(1, cache.pages)), (cache.r, cache.s))


def schedule_in_order(entries: Entries, cache: PageCache, pool: BufferPool) -> Schedule:
    """The schedule of some entries: each row is taken from its page when that is referenced."""
    misses = pool.refer(np.column_stack(cache.pages_of(entries.r_rows, entries.s_rows)).reshape(-1))
    return Schedule(misses.pages, misses.victims, entries.r_rows, entries.s_rows, misses.after.reshape(-1, 2))
