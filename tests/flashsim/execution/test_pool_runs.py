"""Small systems of pools whose requests can be told beforehand: what trimming leaves out, what kinds ended, and how many clean at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from algorithms.extensions.base import extension_design
from algorithms.replacement.base import replacement_policy
from flashsim.core.errors import InvalidParameterError
from flashsim.core.request import READ, WRITE
from flashsim.core.rng import generator
from flashsim.core.transactions import SCANS, WRITES, Transactions
from flashsim.device.station import StationParameters
from flashsim.device.station.engine import StationEngine
from flashsim.execution.pooled.run import PoolRun
from flashsim.execution.pooled.system import DISK, SSD, PoolSystem
from tests.cases import with_each

SIZE = 512


class Given:
    """Transactions that are given, of two kinds in turn."""

    pages, kinds = 64, ("odd", "even")

    def __init__(self, each: Sequence[list[tuple[int, int, int]]]) -> None:
        self.each = each

    def batches(self) -> Iterator[Transactions]:
        """All at once."""
        references = np.array([one for references in self.each for one in references], np.int64).reshape(-1, 3)
        yield Transactions(references, np.cumsum([len(one) for one in self.each]).astype(np.int64), np.arange(len(self.each)) % 2)


def system(**others: Any) -> PoolSystem:
    usual: dict[str, Any] = {"ssd": 32, "clients": 1, "page_size": SIZE, "expansion": 1, "read_ahead": 8, "chunk": 64}
    return PoolSystem(
        64, others.pop("memory", 9), replacement_policy("lru"), others.pop("design", extension_design("dw")), **usual | others
    )


def run_of(stream: Given, **others: Any) -> PoolRun:
    devices = {DISK: StationEngine(StationParameters(1000, 1000)), SSD: StationEngine(StationParameters(10, 10))}
    run = PoolRun(system(**others), devices, stream, request_rows=1000)
    run.run()
    return run


@pytest.mark.parametrize(("trimming", "read"), [(True, [(3, 3)]), (False, [(0, 8)])])
def test_a_scan_leaves_out_what_the_ssd_holds_at_its_ends(trimming: bool, read: list[tuple[int, int]]) -> None:
    """Pages 0, 1, 2, 4, 6 and 7 stand on the SSD alone when pages 0 to 7 are scanned."""
    on_ssd = [(page, 1, 0) for page in (0, 1, 2, 4, 6, 7)]
    others = [(page, 1, 0) for page in range(20, 29)]
    run = run_of(Given([[*on_ssd, *others], [(0, 8, SCANS)]]), trimming=trimming)
    asked = run.requests
    scanned = asked[(asked.device_number == 0) & (asked.operation == READ) & (asked.offset < 8 * SIZE)][len(on_ssd) :]
    assert [(offset // SIZE, length // SIZE) for _, _, _, offset, length, *_ in scanned.tolist()] == read
    assert run.counts["ssd_reads"] == (5 if trimming else 0) and run.counts["bypassed"] == (1 if trimming else 6)


def test_transactions_are_counted_by_kind() -> None:
    run = run_of(Given([[(0, 1, 0)]] * 7))
    assert run.by_kind == {"odd": 4, "even": 3} and run.counts["transactions"] == 7


def test_as_many_clean_at_once_as_keep_to_the_limit_unless_it_is_said() -> None:
    assert system(clients=1).most_cleanings == 16 and system(cleaners=3).most_cleanings == 3
    with pytest.raises(InvalidParameterError, match="cleaners: -1, but it must be at least 0"):
        system(cleaners=-1)


def test_reads_bring_several_pages_until_memory_or_the_ssd_is_full() -> None:
    assert [system(expansion_until=until, filling=50).expands_below for until in ("memory", "ssd")] == [0, 16]
    with pytest.raises(InvalidParameterError, match="expansion_until: 'disk', but it must be one of memory, ssd"):
        system(expansion_until="disk")


@with_each(("dirty_limit", "partitions", "newer"), [(50, 1, 16), (100, 1, 31), (100, 4, 28), (90, 16, 16)])
def test_some_frames_are_cleaned_at_any_limit(dirty_limit: int, partitions: int, newer: int) -> None:
    assert system(dirty_limit=dirty_limit, partitions=partitions).dirty_limit_frames == newer
    writes = [[(page * 7 % 64, 1, WRITES)] for page in range(3000)]
    run = run_of(Given(writes), design=extension_design("lc"), dirty_limit=dirty_limit, partitions=partitions)
    assert run.counts["cleanings"] > 100 and run.counts["ssd_writes"] > 1000


def cleaned_while_modified() -> PoolRun:
    """Lazy cleaning onto a slow disk with several servers, of pages that are modified again meanwhile."""
    draw = generator(1, "pages")
    stream = Given([[(int(page), 1, WRITES)] for page in (64 * draw.random(4000) ** 2).astype(int)])
    devices = {DISK: StationEngine(StationParameters(200, 5000, servers=8)), SSD: StationEngine(StationParameters(10, 10))}
    return PoolRun(
        system(design=extension_design("lc"), clients=8, memory=12, read_ahead=1, dirty_limit=10), devices, stream, request_rows=1 << 16
    )


def test_no_page_is_written_to_disk_before_its_last_write_has_ended() -> None:
    run = cleaned_while_modified()
    run.run()
    asked, last = run.requests, dict[int, int]()
    for begin, _, _, offset, length, _, end, _ in asked[(asked.device_number == 0) & (asked.operation == WRITE)].tolist():
        for place in range(offset, offset + length, SIZE):
            assert last.get(place, 0) <= begin
            last[place] = end


def test_pages_are_cleaned_when_they_are_written() -> None:
    run, until = cleaned_while_modified(), 0
    while not run.is_over:
        until += 100
        run.run(until)
        assert run.counts["pages_cleaned"] <= run.counts["disk_pages_written"]
    assert 0 < run.counts["pages_cleaned"] < run.counts["disk_pages_written"]
