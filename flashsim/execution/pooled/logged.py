"""A system of pools with a write-ahead log and a restart design, told with SimPy: what would survive a crash is known at every event.

Beside what `flashsim.execution.pooled.specification` has, pages have versions, updates are records of a log, no page reaches disk or SSD
before the records of its changes, transactions may abort, and checkpoints say from where recovery has to read.  Every client changes its
own row of a page, so that a transaction can be undone beside others' changes of the same page.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile

import simpy

from flashsim.core.draws import mix_bits
from flashsim.core.errors import InvalidParameterError
from flashsim.core.host_specification import delay
from flashsim.core.model import DeviceModel
from flashsim.core.replacement import FIRST_PAGE
from flashsim.core.request import SECTOR, WRITE
from flashsim.core.transactions import TransactionStream
from flashsim.execution.pooled.frame_table import FrameTable, Hardening
from flashsim.execution.pooled.log_writer import DurableWrites, LogWriter
from flashsim.execution.pooled.logging_design import History, Logging, RunningTransaction
from flashsim.execution.pooled.specification import CHECKPOINTER, PoolSpecification, Process
from flashsim.execution.pooled.system import DISK, LOG, SSD, PoolSystem
from flashsim.storage.extension import manager
from flashsim.storage.extension.state import FRAME, HOLD_SHIFT, NEWER, PAGE, STATUS
from flashsim.storage.log import records
from flashsim.storage.log.durable import BOOT, FRAMES, PAGES, Durable, DurableWrite, Ring
from flashsim.storage.log.records import CLEAN, DIRTY, FREE, FREE_ENTRY, Boot, Entry, Record, Version
from flashsim.storage.log.recovery import CLEANED, REPLACED, WRITTEN, Recovery

#: Priority of the background writer's event at one nanosecond: behind the flusher of the frame table.
_WRITER = (1 << 40) + 2


class LoggedSpecification(PoolSpecification):
    """The system, with a log and what is hardened; without a device for the log, records are durable as soon as that is asked for.

    After a restart it goes on from what is `recovered`; without it the database is new.

    Raises
    ------
    FlashsimError
        The SSD has no room for the frame table behind its frames; or, at the end, the log had none for what recovery might have needed.
    """

    def __init__(
        self,
        system: PoolSystem,
        devices: Mapping[int, tuple[Sequence[DeviceModel], int]],
        stream: TransactionStream,
        logging: Logging,
        recovered: Recovery | None = None,
    ) -> None:
        super().__init__(system, devices, stream)
        ring = Ring.of(devices[LOG][1]) if LOG in devices else None
        self.logging, self.durable, self.history = logging, Durable(system.clients, tears=logging.tears, ring=ring), History()
        needed = system.ssd * system.page_size + -(-system.ssd // logging.restart.in_a_sector) * SECTOR
        if SSD in devices and (room := devices[SSD][1]) < needed:
            raise InvalidParameterError("ssd_device", f"{room} B", f"frames and their table need {needed} B")
        self.writes = DurableWrites(self.durable, is_forced=logging.has("force-unit-access"))
        self.devices.write_flags = logging.write_flags(self._numbers)
        self.contents: dict[int, Version] = {}
        #: The newest version of each page, which a page that is created anew goes on from.
        self._newest: dict[int, Version] = {}
        #: Records of changes that the disk lacks, by page.
        self.changes: dict[int, list[int]] = {}
        self.transactions: dict[int, RunningTransaction] = {}
        #: Pages with an image among the records since their last write to disk began.
        self._imaged: set[int] = set()
        self._began = self._values = self._acknowledged = self._gone = 0
        self._to_frame: dict[int, tuple[int, Version]] = {}
        #: Frames of which the table's file may say that they have a page that another one has.
        self._doubles: set[int] = set()
        self._on_disk: list[tuple[int, int]] = []
        room = devices[LOG][1] if LOG in devices else 0
        self.log = LogWriter(self._send_log if LOG in devices else None, room, self.durable)
        self.table = FrameTable(self.env, logging, system.ssd, self.log, self._send_sectors, self._is_in_use)
        self._stops = self._is_last = self._is_checkpointing = False
        self._stream = takewhile(lambda _: not self._stops, self._stream)
        #: True after a shutdown: nothing changes any more what would survive.
        self.is_down = False
        if recovered:
            self._restart(recovered)
        if logging.restart.flushes and system.ssd:
            self.table.flush_after(0)
        if logging.indirect:
            self.env.process(self._background_writer())

    def _restart(self, recovered: Recovery) -> None:
        """Go on from what recovery has made: pages in memory, frames of the SSD, and the log."""
        durable = self.durable = recovered.durable
        self.writes = DurableWrites(durable, self.writes.is_forced)
        self.log.resume(durable)
        self._began = max((record.transaction for record in durable.log.values()), default=0)
        self._values, self._doubles = recovered.newest_value(), recovered.doubles.copy()
        for page, version in recovered.pages.items():
            self.memory.refer(page)
            self.contents[page] = version
            if page in recovered.changed:
                self.memory.resident[page] = True
                self.changes[page] = list(recovered.dirty[page])
        for frame, entry, newer in recovered.warm_frames(self.system.pages):
            manager.restore(self.ext, self.design, entry.page, frame, int(newer))
            self.table.set(frame, entry._replace(state=DIRTY if newer else CLEAN, hardened=0))
            if newer:
                self.changes[entry.page] = [recovered.dirty[entry.page][0], entry.lsn]
        manager.chain_free(self.ext)
        self._newest = {page: recovered.newest(page) for page in range(FIRST_PAGE, FIRST_PAGE + self.system.pages)}
        rows = {(page, row): value for page, version in self._newest.items() for row, value in enumerate(version.rows)}
        self.history.committed = {key: value for key, value in rows.items() if value}

    def shut_down(self) -> None:
        """Let clients begin no more transactions, and then a last checkpoint write all pages of memory."""
        if not self._stops:
            self._stops, self.env.cause = True, -1
            self._end_if_idle()

    def _end_if_idle(self) -> None:
        if self._stops and self.is_idle and not self._is_checkpointing:
            self.env.process(self._last_checkpoint())

    def _last_checkpoint(self) -> Process:
        self._is_checkpointing = True
        yield delay(self.env, 0, CHECKPOINTER)
        self._is_last = True
        yield from self._checkpoint()
        self._note(checkpoints=1)
        self.log.check(is_over=True)
        self.is_down = True

    @property
    def is_idle(self) -> bool:
        """True if no client runs a transaction any more."""
        return self._gone == self.system.clients

    @property
    def state_number(self) -> tuple[int, int, int]:
        """A number that changes whenever something else would survive a crash, or a client knows more."""
        return self.writes.count, len(self.writes.outstanding), self._acknowledged

    # Writes, what waits for what, and what has become of them.

    def _send(self, write: DurableWrite, purpose: int, place: tuple[int, int], then: Callable[[], object], event: simpy.Event) -> None:
        self.writes.begin(write, then, event)
        self.devices.ask(self._numbers[purpose], WRITE, *place, event)

    def _send_log(self, write: DurableWrite, offset: int, length: int, written: Callable[[], None]) -> None:
        self._note(log_writes=1)
        self._send(write, LOG, (offset, length), written, self.env.event())

    def _send_sectors(self, write: DurableWrite, first: int, sectors: int, written: Callable[[], object]) -> None:
        self._note(table_writes=1)
        place = self.system.ssd * self.system.page_size + first * SECTOR, sectors * SECTOR
        self._send(write, SSD, place, written, self.env.event())

    def _until(self, is_durable: Callable[[], bool]) -> Process:
        """Let a process wait until what it needs is durable."""
        if not is_durable():
            event = self.env.event()
            self.log.after(is_durable, event.succeed)
            yield event

    def _until_logged(self, lsn: int) -> Process:
        self.log.want(lsn)
        yield from self._until(lambda: lsn < self.log.end)

    def _ask_frame(self, page: int, frame: int) -> simpy.Event:
        """See `PoolSpecification._ask_frame`: not before the records of the page's changes and whatever is hardened first."""
        version, done = self.contents[page], self.env.event()
        self._to_frame[page] = frame, version
        least = self.log.want(version.lsn) if self.logging.has("log-before-ssd") else 0
        is_reusable = self.table.is_reusable(frame) if self.logging.has("harden-before-reuse") else lambda: True
        replacement = Hardening()
        if self.table.entry(frame).state != FREE or frame in self._doubles:
            self._doubles.discard(frame)
            if self.logging.has("harden-replacement"):
                replacement = self.table.free(frame, REPLACED)
            else:
                self.table.set(frame, FREE_ENTRY)
        write, size = DurableWrite(FRAMES, ((frame, version),)), self.system.page_size
        self.log.after(
            lambda: least < self.log.end and is_reusable() and self.table.is_durable(replacement),
            lambda: self._send(write, SSD, (frame * size, size), lambda: None, done),
        )
        return done

    def _put_on_disk(self, page: int, count: int, cleaned: int = 0) -> simpy.Event:
        pages = range(page, page + count)
        self._imaged.difference_update(pages)
        contents = [self.durable.in_frame(int(self.ext.pages[each, FRAME]) - 1) if cleaned else self.contents[each] for each in pages]
        if not self.logging.has("writes-in-flight"):
            for version in contents:
                self._forget_changes(version)
        return self._disk.write(page, count, cleaned, contents)

    def _ask_disk(self, page: int, count: int, event: simpy.Event, contents: Sequence[Version]) -> None:
        least = self.log.want(max(version.lsn for version in contents)) if self.logging.has("log-before-disk") else 0
        hardened = range(page, page + count) if self.logging.has("harden-before-write") else ()
        write, size = DurableWrite(PAGES, tuple(enumerate(contents, page))), self.system.page_size
        place = (page - FIRST_PAGE) * size, count * size
        self.log.after(
            lambda: least < self.log.end and all(map(self.table.is_page_hardened, hardened)),
            lambda: self._send(write, DISK, place, lambda: self._reached_disk(contents), event),
        )

    def _reached_disk(self, contents: Sequence[Version]) -> None:
        for version in contents:
            self._forget_changes(version)
            self._note_on_disk(version.page, version.lsn)

    def _forget_changes(self, version: Version) -> None:
        changes = [lsn for lsn in self.changes.get(version.page, ()) if lsn > version.lsn]
        if changes:
            self.changes[version.page] = changes
        else:
            self.changes.pop(version.page, None)

    def _note_on_disk(self, page: int, lsn: int) -> None:
        """Have it logged that a page is on disk, with others."""
        self._on_disk.append((page, lsn))
        if len(self._on_disk) >= self.logging.batch:
            for each, version in self._on_disk:
                self.log.append(Record(records.BUF_WRITE, page=each, lsn=version))
            self._on_disk.clear()

    def _on_write_end(self, page: int, count: int, holds_frame: bool) -> None:
        super()._on_write_end(page, count, holds_frame)
        for each in range(page, page + count):
            if each in self._to_frame and (not self.writing[each] or (holds_frame and not self.logging.has("both-writes"))):
                frame, version = self._to_frame[each]
                if not self.writing[each]:
                    del self._to_frame[each]
                if manager.frame_of(self.ext, each) == frame and self.table.entry(frame).state == FREE:
                    newer = bool(self.ext.pages[each, STATUS] & NEWER)
                    self.table.leave(each)
                    self.table.set(frame, Entry(DIRTY if newer else CLEAN, each, version.lsn))
                    self.table.harden(WRITTEN, frame)
                    if newer and not self.logging.has("buf-write-after-cleaning"):
                        self._note_on_disk(each, version.lsn)

    def _clean(self, page: int) -> None:
        super()._clean(page)
        frame = manager.frame_of(self.ext, page)
        if frame >= 0 and self.table.entry(frame).state == DIRTY:
            self.table.set(frame, self.table.entry(frame)._replace(state=CLEAN))
            self.table.harden(CLEANED, frame)

    def _is_in_use(self, frame: int) -> bool:
        page = int(self.ext.frames[frame, PAGE])
        return not self._is_last and page > 0 and self.ext.pages[page, STATUS] >> HOLD_SHIFT > 0

    # Pages of memory.

    def _on_serve(self, page: int, flags: int) -> None:
        self.contents[page] = self.durable.in_frame(int(self.ext.pages[page, FRAME]) - 1)
        super()._on_serve(page, flags)

    def _on_fetch(self, page: int, flags: int) -> None:
        self.contents[page] = self.durable.on_disk(page)
        super()._on_fetch(page, flags)

    def _evict(self, page: int, dirty: bool) -> None:
        super()._evict(page, dirty)
        del self.contents[page]

    def _modify(self, page: int) -> None:
        super()._modify(page)
        if manager.frame_of(self.ext, page) < 0:
            self.table.invalidate(page, len(self.log.records) + 1)

    # Transactions.

    def _client(self, number: int) -> Process:
        yield from super()._client(number)
        self._gone += 1
        self.log.check(self.is_idle)
        self._end_if_idle()

    def _change(self, client: int, page: int) -> Process:
        """An update of the client's row; it waits until a changed entry of the frame table is hardened."""
        transaction = self.transactions.get(client)
        if transaction is None:
            self._began += 1
            begin = self.log.append(Record(records.BEGIN, self._began))
            transaction = self.transactions[client] = RunningTransaction(self._began, begin, begin)
        self._values += 1
        old = self.contents.setdefault(page, self._newest.get(page) or Version(page, 0, (0,) * self.system.clients))
        self._modify(page)
        self._log_change(records.UPDATE, transaction, transaction.last, client, old, self._values)
        transaction.updates.append(transaction.last)
        transaction.values[page] = self._values
        yield from self._until(lambda: self.table.is_page_hardened(page))

    def _log_change(self, kind: int, transaction: RunningTransaction, chain: int, client: int, old: Version, after: int) -> None:
        """Change the client's row of a page of memory by a record, which has an image of the page if it needs one."""
        page = old.page
        image = self.system.page_size if self.logging.images and page not in self._imaged else 0
        self._imaged.add(page)
        record = Record(kind, transaction.number, chain, page, old.lsn, client, old.rows[client], after)
        transaction.last = self.log.append(replace(record, image=image, rows=old.rows) if image else record)
        self.contents[page] = self._newest[page] = old.with_row(transaction.last, client, after)
        self.changes.setdefault(page, []).append(transaction.last)

    def _end(self, client: int, writes: int) -> Process:
        """Commit, or undo all updates and end."""
        transaction = self.transactions.get(client)
        if transaction is None:
            return
        if mix_bits(transaction.number) % 100 < self.logging.aborts:
            yield from self._abort(client, transaction)
            return
        self.history.committing[client] = transaction.values
        self._acknowledged += 1
        lsn = self.log.append(Record(records.COMMIT, transaction.number, transaction.last))
        del self.transactions[client]
        yield from self._until_logged(lsn)
        self.history.committed |= {(page, client): value for page, value in transaction.values.items()}
        del self.history.committing[client]
        self._acknowledged += 1

    def _abort(self, client: int, transaction: RunningTransaction) -> Process:
        for lsn in reversed(transaction.updates):
            update = self.log.records[lsn - 1]
            yield from self._refer(update.page, 0)
            self._modify(update.page)
            self._log_change(records.COMPENSATION, transaction, update.chain, client, self.contents[update.page], update.before)
        self.log.append(Record(records.ABORT, transaction.number, transaction.last))
        del self.transactions[client]
        self._note(aborted=1)

    # Checkpoints.

    @property
    def oldest_dirty(self) -> int:
        """The first record of a change that the disk lacks, or the end of the log."""
        pages = list(self.changes)
        if not self.logging.has("ssd-in-checkpoints"):
            pages = [page for page in pages if self.memory.dirty(page) or not self.ext.pages[page, STATUS] & NEWER]
        return min((self.changes[page][0] for page in pages), default=len(self.log.records) + 1)

    def _checkpointer(self) -> Process:
        while True:
            yield delay(self.env, self.system.checkpoint, CHECKPOINTER)
            if self._is_checkpointing:
                return
            self._is_checkpointing = True
            yield from self._checkpoint()
            self._note(checkpoints=1)
            self._is_checkpointing = False
            self._end_if_idle()

    def _checkpoint(self) -> Process:
        """Write pages as the kind of checkpoint wants, and say from where recovery has to read (Do, 2012, figure 4.3)."""
        begin = self.log.append(Record(records.BEGIN_CHECKPOINT))
        yield from self._until_logged(begin)
        if self._is_last or not self.logging.indirect:
            yield from super()._checkpoint()
        if self.logging.restart.flushes and self.system.ssd and self.logging.has("complete-pass"):
            last = self.table.complete_pass(self._is_last)
            yield from self._until(lambda: self.table.passes >= last)
        if self.logging.restart.logs_table:
            self.table.append_all()
        active = tuple((each.number, each.first, each.last) for each in self.transactions.values())
        self.log.append(Record(records.TRANSACTIONS, active=active))
        boot = Boot(begin, self.oldest_dirty, min((first for _, first, _ in active), default=len(self.log.records) + 1), self._is_last)
        yield from self._until_logged(self.log.append(Record(records.END_CHECKPOINT)))
        write = DurableWrite(BOOT, ((0, boot),))
        if LOG in self._numbers:
            written = self.env.event()
            self._send(write, LOG, (0, SECTOR), lambda: None, written)
            yield written
        else:
            self.durable.apply(write)
        self.writes.truncate(boot.truncation)

    def _background_writer(self) -> Process:
        """Write the page of memory that has been dirty longest, again and again."""
        while True:
            yield delay(self.env, self.logging.indirect, _WRITER)
            pages = [(changes[0], page) for page, changes in self.changes.items() if self.memory.dirty(page)]
            if pages:
                _, page = min(pages)
                self._flush(page)
                yield self._write_to_disk(page, 1)
