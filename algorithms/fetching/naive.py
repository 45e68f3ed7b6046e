"""Naive fetching: the pages of each entry are fetched as it comes, and all memory is a cache of pages, least recently used.

Source: Li et al., "DigestJoin" (MDM 2009), algorithm 1.
"""

from algorithms.fetching.base import FetchParameters, fetch_in_order
from algorithms.late_fetch.join_index import JoinIndex
from algorithms.late_fetch.page_cache import PageCache
from flashsim.execution.requests import Algorithm


def fetch(index: JoinIndex, cache: PageCache, parameters: FetchParameters) -> Algorithm:
    yield from fetch_in_order(index, cache)
