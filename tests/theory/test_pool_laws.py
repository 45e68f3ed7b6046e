"""What holds in every system of pools whatever its design and devices are: references, pages and time are conserved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import simpy

from algorithms.extensions.base import DESIGNS
from flashsim.core import transactions as work
from flashsim.core.records import RecordArray
from flashsim.core.replacement import NOW, USED
from flashsim.core.request import READ, WRITE
from flashsim.core.transactions import Transactions
from flashsim.core.units import NEVER
from flashsim.device.station.engine import StationEngine
from flashsim.execution.compiled_loop import Striped
from flashsim.execution.pooled.clients import REFER
from flashsim.execution.pooled.run import PoolRun
from flashsim.execution.pooled.specification import PoolSpecification
from flashsim.execution.pooled.system import DISK, LOG, SSD
from flashsim.storage.extension import state as ssd
from flashsim.testing.pools import PAGE, Drawn, drawn_system

#: Requests that are kept, that a run goes on for, and nanoseconds after which it ends all the same.
ASKED, REQUESTS, LONGEST = 1 << 16, 1000, 100_000_000
#: Transactions of a system that ends.
SHORT = 20


class WithoutScans(Drawn):
    """Single pages alone: of a scan it is not counted how many pages came from disk that memory had."""

    def batches(self) -> Iterator[Transactions]:
        """With the scans' marks taken away."""
        for batch in super().batches():
            batch.references[:, work.MARKS] &= ~work.SCANS
            batch.references[:, work.COUNT] = 1
            yield batch


class Short(Drawn):
    """A few transactions, after which the stream ends."""

    def batches(self) -> Iterator[Transactions]:
        """One."""
        batch = next(super().batches())
        ends = batch.ends[:SHORT]
        yield Transactions(batch.references[: ends[-1]], ends, batch.kinds[:SHORT])


def undecided(run: PoolRun) -> int:
    """References that clients have begun, of which it is not yet known whether they hit."""
    tables, count = run.tables, 0
    for client in tables.clients:
        if client.place and tables.references[client.reference, work.MARKS] & work.SCANS:
            count += int(client.behind - client.place)
        elif client.place and client.step == REFER:
            count += 1
    return count


def check_references(run: PoolRun, scans: bool) -> None:
    """Each is a hit, a page that is made, or a miss; and each miss is read from the SSD or the disk."""
    counts, misses = run.counts, int(run.tables.ext.numbers[ssd.MISSES])
    assert counts["references"] == counts["hits"] + counts["created"] + misses + undecided(run)
    # What is modified while it is cleaned is not written.
    assert counts["pages_cleaned"] <= min(counts["cleaner_reads"], counts["disk_pages_written"])
    from_disk = misses - counts["ssd_reads"]
    assert 0 <= from_disk <= counts["disk_pages_read"]
    assert scans or from_disk == counts["disk_reads"]


def check_memory(run: PoolRun) -> None:
    """Pages in are pages out and those that are there; of a stream without scans."""
    counts, memory = run.counts, run.tables.memory.numbers
    came = int(memory[NOW]) - counts["hits"]  # the policy's clock counts every reference that it is told of
    assert came == counts["evicted"] + memory[USED] and memory[USED] <= run.system.memory
    read = counts["ssd_reads"] + counts["disk_pages_read"]
    assert came <= counts["created"] + read
    assert run.system.expansion > 1 or came == counts["created"] + read
    # what leaves dirty is written to the disk or to the SSD
    assert counts["evicted_dirty"] <= counts["disk_pages_written"] + counts["ssd_writes"]


def check_requests(run: PoolRun, devices: dict[int, Any], until: int) -> None:
    """What is counted is what devices were asked for, and no server works for longer than time passes."""
    counts, asked, page = run.counts, run.requests, run.system.page_size
    assert len(asked) < ASKED
    for number, purpose in enumerate(sorted(devices)):
        mine = asked[asked.device_number == number]
        read, written = (mine[mine.operation == operation] for operation in (READ, WRITE))
        if purpose == DISK:
            assert (len(read), len(written)) == (counts["disk_reads"], counts["disk_writes"])
            check_writes_of_a_page(written)
            assert (read.length.sum(), written.length.sum()) == (page * counts["disk_pages_read"], page * counts["disk_pages_written"])
        elif purpose == SSD:
            assert (len(read), len(written)) == (counts["ssd_reads"] + counts["cleaner_reads"], counts["ssd_writes"])
        elif purpose == LOG:
            assert len(written) == counts["log_writes"]
        device = devices[purpose]
        for drive in device.drives if isinstance(device, Striped) else [device]:
            if isinstance(drive, StationEngine):
                check_station(drive, until)


def check_writes_of_a_page(written: RecordArray) -> None:
    """No page is written before its last write has ended: a disk that serves requests out of order may keep the older version."""
    last: dict[int, int] = {}
    for begin, _, _, offset, length, _, end, _ in written.tolist():
        for place in range(offset, offset + length, PAGE):
            assert 0 <= last.get(place, 0) <= begin
            last[place] = end


def check_station(drive: StationEngine, until: int) -> None:
    """Busy time is services times their mean, and the servers have no more of it than passes; what they have begun they will end."""
    told, given = drive.statistics(), drive.parameters
    longest = max(given.read, given.write) * (30 if given.exponential else 1)
    assert told["busy_time"] <= given.servers * (until + longest)
    if not given.exponential:
        assert told["busy_time"] == told["reads"] * given.read + told["writes"] * given.write


@pytest.mark.parametrize("design", DESIGNS.names())
def test_references_pages_and_work_are_conserved(design: str) -> None:
    for seed in range(6):
        system, devices, _ = drawn_system(seed, design)
        scans = bool(seed % 2)
        if seed % 3 == 0:
            system = replace(system, expansion=1)
        stream = (Drawn if scans else WithoutScans)(system.pages, seed)
        run = PoolRun(system, devices, stream, intervals=20, request_rows=ASKED)
        until = 1000
        while len(run.requests) < REQUESTS and until < LONGEST:
            until *= 2
            run.run(until)
        assert run.counts["references"] > 0
        check_references(run, scans)
        if not scans:
            check_memory(run)
        check_requests(run, devices, until)


@pytest.mark.parametrize("design", DESIGNS.names())
@pytest.mark.parametrize("first", range(0, 8, 2))
def test_no_client_waits_while_there_is_room_and_every_system_ends(first: int, design: str) -> None:
    for seed in range(first, first + 2):
        system, devices, specified = drawn_system(seed, design)
        system = replace(system, clients=2 + seed % 2, going_out=1 + seed % 3, checkpoint=0)
        stream = Short(system.pages, seed)
        run, until = PoolRun(system, devices, stream), 1000
        while not run.is_over and until < LONGEST:
            until = until * 5 // 4
            run.run(until)
            scalars = run.tables.scalars
            assert not (scalars.crowd_first and scalars.going_out < system.most_going_out)
        assert run.is_over and run.counts["transactions"] == SHORT, seed
        specification = PoolSpecification(system, specified, stream)
        specification.env.run()
        assert specification.counts["transactions"] == SHORT, seed


class Watched(PoolSpecification):
    """The specification, with its transactions' begins and ends, and with the pages that entered and left the SSD's frames."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.begun: list[int] = []
        self.completed: list[int] = []
        self.frames: dict[int, int] = {}
        self.out, self.rewritten = 0, 0
        self._stream = self._begin(self._stream)

    def _begin(self, stream: Iterator[Any]) -> Iterator[Any]:
        for each in stream:
            self.begun.append(int(self.env.now))
            yield each

    def _end(self, client: int, writes: int) -> Iterator[Any]:
        yield from super()._end(client, writes)
        self.completed.append(int(self.env.now))

    def _ask_pages(self, purpose: int, operation: int, first: int, count: int = 1, event: simpy.Event | None = None) -> simpy.Event:
        if purpose == SSD and operation == WRITE:
            page = int(self.ext.frames[first, ssd.PAGE])
            self.note_given_up(first)
            same = self.frames.get(first) == page
            self.rewritten += same
            self.out += first in self.frames and not same
            self.frames[first] = page
        return super()._ask_pages(purpose, operation, first, count, event)

    def note_given_up(self, besides: int = -1) -> None:
        """Pages whose frames nobody has any more."""
        for frame in [frame for frame in self.frames if frame != besides and not self.ext.frames[frame, ssd.PAGE]]:
            del self.frames[frame]
            self.out += 1


@pytest.mark.parametrize("design", DESIGNS.names())
def test_littles_law_and_pages_of_the_ssd(design: str) -> None:
    """Clients are throughput times the time of a round; requests at a device are its rate times their mean time there."""
    for seed in (1, 2):
        system, _, devices = drawn_system(seed, design)
        run = Watched(system, devices, Drawn(system.pages, seed))
        present, now = np.zeros(len(devices), np.int64), 0
        while len(run.devices.requests) < 300 and run.env.peek() < NEVER:
            following = int(run.env.peek())
            present += (following - now) * np.array(run.devices.pending)
            now = following
            run.env.step()
            run.note_given_up()
        running = np.sum(now - np.array(run.begun)) - np.sum(now - np.array(run.completed))
        thinks = np.minimum(system.think, now - np.array([0] * system.clients + run.completed))
        assert system.clients * now == running + thinks.sum() and run.completed
        ends = {tag: when for when, _, tag in run.devices.completed}
        spent = np.zeros(len(devices), np.int64)
        for tag, (when, device, *_) in enumerate(run.devices.requests):
            spent[device] += ends.get(tag, now) - when
        assert present.tolist() == spent.tolist()
        assert run.counts["ssd_writes"] == run.out + run.rewritten + len(run.frames)
        assert len(run.frames) == run.ext.numbers[ssd.USED]
