"""A system of pools told with SimPy: clients, cleaners, the checkpointer and the log's writer are processes.

At one nanosecond (`flashsim.execution.specified_devices`) clients that have thought come after whatever completed; then the checkpointer.
"""

from collections import Counter
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any

import simpy

from flashsim.core.host_specification import delay
from flashsim.core.model import DeviceModel
from flashsim.core.replacement import FIRST_PAGE
from flashsim.core.request import READ, SECTOR, WRITE
from flashsim.core.transactions import CREATES, SCANS, WRITES, TransactionStream, one_by_one
from flashsim.core.units import NEVER
from flashsim.execution.pooled.system import CPU, DISK, LOG, SSD, PoolSystem
from flashsim.execution.specified_devices import CausalEnvironment, DiskWrites, GroupCommit, SpecifiedDevices
from flashsim.storage.extension import manager
from flashsim.storage.extension.design import ALONGSIDE, CHECKPOINTED, DIRTY_PAGE, FOR_UPDATE, SEQUENTIAL, TO_DISK, TO_SSD
from flashsim.storage.extension.state import CHECKPOINT, FRAME, NEWER, NEWER_FRAMES, STATUS, USED
from flashsim.storage.pool.reference import TOOK_FREE, WRITE_BACK, PlainPool

Process = Generator[simpy.Event, Any, None]
#: Priorities of events at one nanosecond, after SimPy's own two.
_THINKERS, CHECKPOINTER = 1 << 21, 1 << 40


class PoolSpecification:
    """The system; `devices` are, by what they are for (`DISK`, ...), models of a device's drives and bytes of a stripe."""

    def __init__(self, system: PoolSystem, devices: Mapping[int, tuple[Sequence[DeviceModel], int]], stream: TransactionStream) -> None:
        self.env, self.system, self.ext = CausalEnvironment(), system, system.extension()
        self.memory, self.design = PlainPool(system.policy, system.memory), system.design.kernels
        self.counts: Counter[str] = Counter()
        self._note: Callable[..., None] = self.counts.update
        self.by_kind, self.ended = Counter[int](), dict[int, int]()  # transactions, and when the last one of a kind ended
        self._numbers = {purpose: number for number, purpose in enumerate(sorted(devices))}
        self.devices = SpecifiedDevices(self.env, [devices[each] for each in sorted(devices)], self._numbers.get(CPU, -1))
        #: Writes of pages on their way out of memory; who waits for a page on its way in, which is pinned, or out.
        self.writing: dict[int, int] = {}
        self._interested: dict[int, list[simpy.Event]] = {}
        self._scanned: set[int] = set()
        self.stream, self._stream = stream, one_by_one(stream)
        self._cleaning, self._turn, self._goal, self._going_out = 0, 0, NEVER, 0
        self._sleeping: list[simpy.Event] = []
        self._crowd: list[simpy.Event] = []
        self._flushed: simpy.Event | None = None
        self._log = GroupCommit(self.devices, self._numbers.get(LOG, -1), self._note)
        self._disk = DiskWrites(self.env, self._ask_disk, self._note)
        for number in range(system.clients):
            self.env.process(self._client(number))
        for _ in range(system.most_cleanings if system.ssd else 0):
            self.env.process(self._cleaner())
        if system.checkpoint:
            self.env.process(self._checkpointer())

    def _ask_pages(self, purpose: int, operation: int, first: int, count: int = 1, event: simpy.Event | None = None) -> simpy.Event:
        size = self.system.page_size
        return self.devices.ask(self._numbers[purpose], operation, first * size, count * size, event)

    def _ask_disk(self, page: int, count: int, event: simpy.Event, contents: Any) -> None:
        self._ask_pages(DISK, WRITE, page - FIRST_PAGE, count, event)

    def _put_on_disk(self, page: int, count: int, cleaned: int = 0) -> simpy.Event:
        return self._disk.write(page, count, cleaned)

    def _ask_frame(self, page: int, frame: int) -> simpy.Event:
        return self._ask_pages(SSD, WRITE, frame)

    def _client(self, number: int) -> Process:
        system = self.system
        while True:
            if system.think:
                yield delay(self.env, system.think, _THINKERS + number)
            references, kind = next(self._stream, (None, 0))
            if references is None:
                return
            writes = 0
            for first, count, marks in references:
                self._note(references=count)
                page, behind = first + FIRST_PAGE, first + FIRST_PAGE + count
                while marks & SCANS and page < behind:
                    while self._going_out >= system.most_going_out:
                        yield self._stand(self._crowd)
                    end = min(behind, page + system.read_ahead, system.chunk_of(page)[1])
                    yield from self._scan(page, end - page)
                    page = end
                if not marks & SCANS:
                    yield from self._refer(page, marks)
                    if marks & (WRITES | CREATES):
                        yield from self._change(number, page)
                writes += bool(marks & WRITES)
            if system.work:
                yield self.devices.ask(self._numbers[CPU], READ, 0, SECTOR)
            yield from self._end(number, writes)
            self._note(transactions=1)
            self.by_kind[kind], self.ended[kind] = self.by_kind[kind] + 1, int(self.env.now)

    def _refer(self, page: int, marks: int) -> Process:
        while True:
            if page in self.memory.pins or (page not in self.memory.resident and self.writing.get(page)):
                yield self._stand(self._interested.setdefault(page, []))
            elif page not in self.memory.resident and self._going_out >= self.system.most_going_out:
                yield self._stand(self._crowd)
            else:
                break
        if page in self.memory.resident:
            self._note(hits=1)
            self.memory.refer(page)
        elif marks & CREATES:
            self._note(created=1)
            self._enter(page)
        else:
            yield from self._miss(page, FOR_UPDATE if marks & WRITES else 0)

    def _change(self, client: int, page: int) -> Process:
        self._modify(page)
        yield from ()

    def _end(self, client: int, writes: int) -> Process:
        if self.system.log_bytes and writes:
            yield self._log.commit(writes * self.system.log_bytes)

    def _stand(self, line: list[simpy.Event]) -> simpy.Event:
        line.append(self.env.event())
        return line[-1]

    def _miss(self, page: int, flags: int) -> Process:
        ext, system = self.ext, self.system
        manager.note_miss(ext, page)
        frame, newer = manager.frame_of(ext, page), bool(ext.pages[page, STATUS] & NEWER)
        if frame >= 0 and (newer or not self._is_throttled()):
            manager.hold(ext, page)  # first: what leaves memory for this page must not take its frame
            self._hold_in_memory(page)
            self._note(ssd_reads=1, ssd_reads_newer=newer)
            yield self._ask_pages(SSD, READ, frame)
            self._on_serve(page, flags)
            return
        self._note(bypassed=frame >= 0)
        expands = len(self.memory.resident) + system.expansion <= system.memory or ext.numbers[USED] < system.expands_below
        first, count = self._around(page) if expands else (page, 1)
        to_read = [each for each in range(first, first + count) if each == page or self._is_away(each)]
        for each in to_read:
            self._hold_in_memory(each)
        self._note(disk_reads=1, disk_pages_read=count)
        yield self._ask_pages(DISK, READ, first - FIRST_PAGE, count)
        for each in to_read:
            self._on_fetch(each, flags if each == page else ALONGSIDE)

    def _on_serve(self, page: int, flags: int) -> None:
        self._let_go(page)
        if manager.apply_on_serve(self.ext, self.design, page, flags):
            self.memory.resident[page] = True
        self._check_flushed()
        self._arrive(page)

    def _on_fetch(self, page: int, flags: int) -> None:
        if manager.apply_on_fetch(self.ext, self.design, page, flags) & TO_SSD:
            self._copy_to_ssd(page, newer=False)
        self._arrive(page)

    def _around(self, page: int) -> tuple[int, int]:
        """The pages that a read brings while there is room, without those at either end that are not wanted."""
        expansion, (begin, end) = self.system.expansion, self.system.chunk_of(page)
        first = (page - FIRST_PAGE) // expansion * expansion + FIRST_PAGE
        first, last = max(first, begin), min(first + expansion, end) - 1
        while first < page and not self._is_away(first, self.system.trimming):
            first += 1
        while last > page and not self._is_away(last, self.system.trimming):
            last -= 1
        return first, last - first + 1

    def _is_away(self, page: int, from_ssd: bool = True) -> bool:
        """True if a page is neither in memory nor, if that matters, on the SSD."""
        return page not in self.memory.resident and not self.writing.get(page) and not (from_ssd and manager.frame_of(self.ext, page) >= 0)

    def _is_throttled(self) -> bool:
        return 0 < self.system.throttle <= self.devices.pending[self._numbers[SSD]]

    def _hold_in_memory(self, page: int) -> None:
        self._enter(page)
        self.memory.pins.add(page)

    def _arrive(self, page: int) -> None:
        self.memory.pins.discard(page)
        self._wake(page)

    def _wake(self, page: int) -> None:
        for event in self._interested.pop(page, []):
            event.succeed()

    def _enter(self, page: int) -> None:
        self._scanned.discard(page)
        outcome = self.memory.refer(page)
        if outcome > TOOK_FREE:
            self._evict(outcome % WRITE_BACK, outcome >= WRITE_BACK)

    def _modify(self, page: int) -> None:
        if not self.memory.resident[page]:
            self.memory.resident[page] = True
            manager.apply_on_modify(self.ext, self.design, page)
            self._check_flushed()

    def _evict(self, page: int, dirty: bool) -> None:
        self._note(evicted=1, evicted_dirty=dirty)
        actions = manager.ask_on_evict(self.ext, self.design, page, self._flags(page, dirty))
        if actions & TO_SSD and not self._copy_to_ssd(page, newer=dirty and not actions & TO_DISK):
            actions |= TO_DISK
        if dirty and actions & TO_DISK:
            self._write_to_disk(page, 1)

    def _flags(self, page: int, dirty: bool) -> int:
        return (DIRTY_PAGE if dirty else 0) | (SEQUENTIAL if page in self._scanned else 0)

    def _copy_to_ssd(self, page: int, newer: bool) -> bool:
        """Write a page to the SSD, unless it holds just that, or has too much to do, or no frame."""
        if not newer and manager.frame_of(self.ext, page) >= 0:
            return True
        if self._is_throttled():
            return False
        frame = manager.admit(self.ext, self.design, page, int(newer))
        if frame < 0:
            return False
        self._note(ssd_writes=1)
        self._write(page, 1, self._ask_frame(page, frame), holds_frame=True)
        return True

    def _write_to_disk(self, page: int, count: int) -> simpy.Event:
        return self._write(page, count, self._put_on_disk(page, count), holds_frame=False)

    def _write(self, page: int, count: int, event: simpy.Event, holds_frame: bool) -> simpy.Event:
        self._going_out += 1
        for each in range(page, page + count):
            self.writing[each] = self.writing.get(each, 0) + 1
        assert event.callbacks is not None
        event.callbacks.append(lambda _: self._on_write_end(page, count, holds_frame))
        return event

    def _on_write_end(self, page: int, count: int, holds_frame: bool) -> None:
        for each in range(page, page + count):
            self.writing[each] -= 1
            if holds_frame:
                self._let_go(each)
            if not self.writing[each]:
                self._wake(each)
        self._going_out -= 1
        while self._crowd and self._going_out < self.system.most_going_out:  # all of them: who is woken may write nothing
            self._crowd.pop(0).succeed()

    def _scan(self, first: int, count: int) -> Process:
        """Read an extent ahead: one request to the disk, without pages at either end that are at hand elsewhere."""
        ext, last = self.ext, first + count - 1
        begin, end = first, last
        while begin <= end and self._is_at_hand(begin):
            begin += 1
        while end > begin and self._is_at_hand(end):
            end -= 1
        events, read = [], []
        for page in range(first, last + 1):
            if page in self.memory.resident or self.writing.get(page):
                self._note(hits=1)
                if page in self.memory.resident:
                    self.memory.refer(page)
                continue
            manager.note_miss(ext, page)
            frame, newer = manager.frame_of(ext, page), bool(ext.pages[page, STATUS] & NEWER)
            from_ssd = frame >= 0 and (newer or not begin <= page <= end)
            if from_ssd:  # all of them first: what leaves memory for a page must not take another one's frame
                manager.hold(ext, page)
            self._note(ssd_reads=from_ssd, ssd_reads_newer=newer, bypassed=frame >= 0 and not from_ssd)
            read.append((page, from_ssd))
        for page, from_ssd in read:
            self._hold_in_memory(page)
            if from_ssd:
                events.append(self._ask_pages(SSD, READ, int(ext.pages[page, FRAME]) - 1))
            else:
                self._scanned.add(page)
        if begin <= end:
            self._note(disk_reads=1, disk_pages_read=end - begin + 1)
            events.append(self._ask_pages(DISK, READ, begin - FIRST_PAGE, end - begin + 1))
        if events:
            yield self.env.all_of(events)
        for page, from_ssd in read:
            if from_ssd:
                self._on_serve(page, SEQUENTIAL)
            else:
                self._on_fetch(page, SEQUENTIAL)

    def _is_at_hand(self, page: int) -> bool:
        if not self._is_away(page, from_ssd=False):
            return True
        newer = self.ext.pages[page, STATUS] & NEWER
        return self.system.trimming and manager.frame_of(self.ext, page) >= 0 and bool(newer or not self._is_throttled())

    def _let_go(self, page: int) -> None:
        """Let go of a page's frame, and wake a cleaner if the page can be cleaned now."""
        manager.let_go(self.ext, self.design, page)
        newer = self.ext.pages[page, STATUS] & NEWER
        if self._sleeping and ((newer and self._excess() > 0) or manager.due(self.ext, self.design) >= 0):
            self._sleeping.pop(0).succeed()

    def _excess(self) -> int:
        newer = int(self.ext.numbers[NEWER_FRAMES]) - self._cleaning
        limit = 0 if self.ext.numbers[CHECKPOINT] else self.system.dirty_limit_frames
        if newer > limit:
            self._goal = max(0, limit - self.system.slack)
        elif newer <= self._goal:
            self._goal = NEVER
        return newer - self._goal

    def _cleaner(self) -> Process:
        while True:
            run = self._run_to_clean()
            if not run:
                yield self._stand(self._sleeping)
                continue
            self._cleaning += len(run)
            for page in run:
                manager.hold(self.ext, page)
            self._note(cleanings=1, cleaner_reads=len(run))
            yield self.env.all_of([self._ask_pages(SSD, READ, int(self.ext.pages[page, FRAME]) - 1) for page in run])
            first, count, events = run[0], 0, []
            # What has been modified meanwhile must not reach the disk after its newer version.
            while (newer := manager.still_newer(self.ext, first + count, run[-1] + 1))[1]:
                first, count = newer
                events.append(self._put_on_disk(first, count, count))
            if events:
                yield self.env.all_of(events)
            self._cleaning -= len(run)
            for page in run:
                self._clean(page)
                self._let_go(page)
            self._check_flushed()

    def _clean(self, page: int) -> None:
        manager.note_cleaning(self.ext, page)

    def _run_to_clean(self) -> list[int]:
        """The page that is cleaned first, and its neighbours, if there are too many or its frame has its turn."""
        page, excess = int(manager.due(self.ext, self.design)), self._excess()
        for _ in range(self.system.partitions if page < 0 < excess else 0):
            page = int(manager.oldest_newer(self.ext, self.design, self._turn))
            self._turn = (self._turn + 1) % self.system.partitions
            if page >= 0:
                break
        if page < 0:
            return []
        first, count = manager.run_of(self.ext, page, *self.system.chunk_of(page), self.system.group)
        return list(range(first, first + count))

    def _checkpointer(self) -> Process:
        while True:
            yield delay(self.env, self.system.checkpoint, CHECKPOINTER)
            yield from self._checkpoint()
            self._note(checkpoints=1)

    def _checkpoint(self) -> Process:
        self.ext.numbers[CHECKPOINT] = int(not self.system.fuzzy)
        row = FIRST_PAGE
        while row < self.system.rows:
            events: list[simpy.Event] = []
            while row < self.system.rows and len(events) < self.system.most_cleanings:
                if self.memory.dirty(row):
                    first, (_, end) = row, self.system.chunk_of(row)
                    while row < min(end, first + self.system.group) and self.memory.dirty(row):
                        self._flush(row)
                        row += 1
                    events.append(self._write_to_disk(first, row - first))
                else:
                    row += 1
            if events:
                yield self.env.all_of(events)
        if self.ext.numbers[CHECKPOINT] and self.ext.numbers[NEWER_FRAMES]:
            self._flushed = self.env.event()
            while self._sleeping:
                self._sleeping.pop(0).succeed()
            yield self._flushed
        self.ext.numbers[CHECKPOINT] = 0

    def _flush(self, page: int) -> None:
        self.memory.resident[page] = False
        if manager.ask_on_evict(self.ext, self.design, page, self._flags(page, dirty=True) | CHECKPOINTED) & TO_SSD:
            self._copy_to_ssd(page, newer=False)

    def _check_flushed(self) -> None:
        if self._flushed is not None and not self.ext.numbers[NEWER_FRAMES]:
            self._flushed.succeed()
            self._flushed = None
