"""Fetching through a buffer pool: as naive fetching, but with any replacement policy, and a row is taken from its page at once.

A page of a relation that is met again and again, such as a dimension table's, stays in a frame as long as the policy keeps it there.  Each
row is a reference to its page, R's and then S's of each entry; what is read are the misses of these references.
"""

from algorithms.fetching.base import POLICY, FetchParameters, fetch_in_order
from algorithms.late_fetch.join_index import JoinIndex
from algorithms.late_fetch.page_cache import PageCache
from flashsim.execution.requests import Algorithm

OPTIONS = ("policy",)


def fetch(index: JoinIndex, cache: PageCache, parameters: FetchParameters) -> Algorithm:
    yield from fetch_in_order(index, cache, parameters.options.policy or POLICY)
