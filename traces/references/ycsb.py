"""The core workloads of the Yahoo! Cloud Serving Benchmark, A to F, as references to the pages that hold the records.

Cooper, Silberstein, Tam, Ramakrishnan, Sears: Benchmarking cloud serving systems with YCSB, SoCC 2010, table 2; F, and what the paper
leaves open, as in the benchmark's own files (workloada to workloadf), its ScrambledZipfianGenerator and its SkewedLatestGenerator: Zipf's
law with an exponent of 0.99 over 10**10 ranks that are hashed to the records (FNV-1a, 64 bits), or over all records from the newest to the
oldest.  Ranks are drawn exactly, where the benchmark approximates.

Records lie in pages in the order of their numbers, and new ones go behind the last.  Reading a record, updating it, and inserting it are a
reference each, of which the last two write; a read-modify-write is a reference that reads and one that writes; a scan of 1 to 100 records
(evenly) references each of their pages once.
"""

from dataclasses import dataclass

import numpy as np

from flashsim.core import errors, parameters, rng
from flashsim.core.request import Integers
from flashsim.core.transactions import ReferenceBatches, References
from traces.references.base import MOST_PAGES, Generated, Zipf, expand

TITLE = "YCSB's core workloads A to F"

READ, UPDATE, INSERT, SCAN, READ_MODIFY_WRITE = range(5)
#: Shares of operations of each workload, as numbered above, and the distribution of records.
WORKLOADS = {
    "a": ((0.5, 0.5, 0, 0, 0), "zipfian"),
    "b": ((0.95, 0.05, 0, 0, 0), "zipfian"),
    "c": ((1, 0, 0, 0, 0), "zipfian"),
    "d": ((0.95, 0, 0.05, 0, 0), "latest"),
    "e": ((0, 0, 0.05, 0.95, 0), "zipfian"),
    "f": ((0.5, 0, 0, 0, 0.5), "zipfian"),
}
_DISTRIBUTIONS = ("zipfian", "latest", "uniform")
_SKEW = 0.99
_RANKS = 10**10
_LONGEST_SCAN = 100
_FNV_BASIS, _FNV_PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
#: More records than these and twice those to be inserted are never inserted: of few, several more may be.
_LUCK = 100
#: Operations that are drawn together.
_TOGETHER = 1 << 16


@dataclass(frozen=True, kw_only=True)
class Stream(Generated):
    """See `TITLE`."""

    workload: str = parameters.text("a, b, c, d, e or f")
    records: int = parameters.count("records at the start", most=MOST_PAGES)
    records_per_page: int = parameters.count("records of a page; of YCSB's 1,000 bytes a page of 4 KiB holds 4", default=4)
    distribution: str = parameters.text("zipfian, latest or uniform, instead of the workload's own", default="")

    def __post_init__(self) -> None:
        if self.workload.lower() not in WORKLOADS:
            raise errors.UnknownNameError("workload of YCSB", self.workload, WORKLOADS)
        if self.distribution and self.distribution not in _DISTRIBUTIONS:
            raise errors.UnknownNameError("distribution of YCSB", self.distribution, _DISTRIBUTIONS)

    @property
    def _shares(self) -> tuple[float, ...]:
        return WORKLOADS[self.workload.lower()][0]

    @property
    def most_pages(self) -> int:
        """Pages have numbers below this: each inserted record is a reference."""
        inserted = min(self.references, self._items - self.records + _LUCK) if self._shares[INSERT] else 0
        return (self.records + inserted - 1) // self.records_per_page + 1

    def batches(self) -> ReferenceBatches:
        shares = np.cumsum(self._shares)
        records, pending, part = self.records, self.references, 0
        while pending > 0:
            random = rng.generator(self.seed, "operations", part)
            kinds = np.searchsorted(shares, random.random(_TOGETHER), side="right")
            inserts = kinds == INSERT
            counts = records + np.cumsum(inserts) - inserts
            first = np.where(inserts, counts, self._records(counts, random))
            last = np.where(kinds == SCAN, np.minimum(first + random.integers(0, _LONGEST_SCAN, _TOGETHER), counts - 1), first)
            twice = np.where(kinds == READ_MODIFY_WRITE, 2, 1)
            operation = np.repeat(np.arange(_TOGETHER), twice)
            writes = (kinds == UPDATE) | inserts
            writes = writes[operation] | (np.diff(operation, prepend=-1) == 0)
            begin, end = (each[operation] // self.records_per_page for each in (first, last))
            for pages, runs in expand(begin, end - begin + 1):
                yield References(pages[:pending], writes[runs[:pending]])
                pending -= len(pages)
                if pending <= 0:
                    return
            records, part = int(counts[-1] + inserts[-1]), part + 1

    def _records(self, counts: Integers, random: np.random.Generator) -> Integers:
        distribution = self.distribution or WORKLOADS[self.workload.lower()][1]
        if distribution == "uniform":
            return random.integers(0, counts)
        if distribution == "latest":
            return counts - Zipf(counts, _SKEW).draw(len(counts), random)
        records, pending = np.empty(len(counts), np.int64), np.arange(len(counts))
        while len(pending):
            records[pending] = _hash(_ALL.draw(len(pending), random) - 1) % self._items
            pending = pending[records[pending] >= counts[pending]]
        return records

    @property
    def _items(self) -> int:
        """Records that ranks are hashed to: those at the start and twice those to be inserted; what is not there yet is drawn anew."""
        a_scan = 1 + (_LONGEST_SCAN - 1) / 2 / self.records_per_page
        operations = self.references / (1 + self._shares[SCAN] * (a_scan - 1) + self._shares[READ_MODIFY_WRITE])
        return self.records + int(2 * self._shares[INSERT] * operations)


_ALL = Zipf(_RANKS, _SKEW)


def _hash(ranks: Integers) -> Integers:
    """FNV-1a of the eight bytes of each, the lowest first, without sign."""
    hashes, rest = np.full(len(ranks), _FNV_BASIS), ranks.astype(np.uint64)
    for _ in range(8):
        hashes = (hashes ^ rest & np.uint64(0xFF)) * _FNV_PRIME
        rest >>= np.uint64(8)
    return np.abs(hashes.view(np.int64))
