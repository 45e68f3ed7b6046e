"""Contract of page-fetch strategies: one takes a join index as a stream, and decides which pages are fetched when and what each replaces.

A strategy asks the page cache to follow its schedules; the cache alone holds pages.  What it remembers of the join index counts as well:
frames and the pages that its graph takes are never more than `FetchParameters.memory` together.  A strategy may write temporary files.

Source: Li, On, Xu, Choi and Hu, "DigestJoin: Exploiting Fast Random Reads for Flash-based Joins" (MDM 2009), section III.
"""

from dataclasses import dataclass
from typing import Protocol

from algorithms.late_fetch.join_index import JoinIndex
from algorithms.late_fetch.page_cache import PageCache
from algorithms.page_access.plan import LEAST_FRAMES, check_frames
from algorithms.replacement.base import replacement_policy
from flashsim.core.errors import InvalidParameterError, UnknownNameError
from flashsim.core.members import Family
from flashsim.execution.requests import Algorithm

#: Bytes that an entry takes in a join graph: two row ids, and its part of two adjacency lists.  Fitted: the paper does not say; with 48 to
#: 56, 512 pages are full at a selectivity of 0.18 to 0.21, where its figure 9 has them full.
ENTRY_BYTES = 48
#: Replacement policy of a buffer pool by default.
POLICY = "lru"
#: Factors of the number of entries by which ties between segments are broken.
TIES = {"most": 1, "any": 0, "fewest": -1}


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
    #: Of graph-based fetching: the cache keeps room for k (d + 1) pages, where d is the largest degree of the join graph.
    k: float = 1.0
    #: Latency of a request over the transfer time of a page: what a page costs more that does not follow the one before it.
    latency_ratio: float = 1.0
    #: Temporary files are written and read page by page too.
    page_io: bool = False
    #: Bytes that an entry takes in a join graph.
    entry_bytes: int = ENTRY_BYTES
    #: Which of segments with equally few pages missing is fetched first: that with the ``most`` or ``fewest`` entries, or ``any``.
    ties: str = "most"
    #: Of pooled fetching: which page is replaced (`algorithms.replacement`).
    policy: str = POLICY
    #: Of graph-based fetching: frames that the cache keeps whatever k (d + 1) is, 2 or 1.  In one frame results are joined one by one: the
    #: row of R is copied before the page of S replaces its page.
    least_frames: int = LEAST_FRAMES

    def __post_init__(self) -> None:
        check_frames(self.memory)
        if not 0 < self.k < float("inf"):
            raise InvalidParameterError("k", self.k, "it must be above 0 and finite")
        if self.entry_bytes < 1:
            raise InvalidParameterError("entry bytes", self.entry_bytes, "it must be at least 1")
        if not 1 <= self.least_frames <= LEAST_FRAMES:
            raise InvalidParameterError("least frames", self.least_frames, f"it must be 1 to {LEAST_FRAMES}")
        if self.ties not in TIES:
            raise UnknownNameError("ties", self.ties, TIES)


class FetchStrategy(Protocol):
    """A member of the family."""

    #: Options of a digest join that the strategy takes and not all strategies do: ``policy``, ``k``.
    OPTIONS: tuple[str, ...] = ()

    def fetch(self, index: JoinIndex, cache: PageCache, parameters: FetchParameters) -> Algorithm:
        """Fetch the pages that the entries of a join index lie on, and have each entry joined once.

        ``entries = yield from index.next()`` gives some, and None at the end.  The cache is empty: ``yield from cache.follow(schedule)``
        fetches and joins, and `cache.resize` changes its frames, of which it has `parameters.memory` at first and never more.
        """


#: All strategies; ``FETCHING.load("naive").fetch`` is one.
FETCHING = Family("algorithms.fetching", "fetch strategy", FetchStrategy)


def check_options(strategy: str, policy: str | None, k: float | None) -> None:
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
    takes = FETCHING.load(strategy).OPTIONS
    for option, value in {"policy": policy, "k": k}.items():
        if value is not None and option not in takes:
            raise InvalidParameterError(option, value, f"{strategy} fetching does not take it")
    if "policy" in takes and replacement_policy(policy or POLICY).future:
        raise InvalidParameterError("policy", policy, "it must know the future; of what is to be fetched, planned does")
