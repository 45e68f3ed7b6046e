"""A system of pools in virtual time: transactions are handed to the compiled loop as it needs them."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from flashsim.core.errors import FlashsimError
from flashsim.core.model import CompiledModel
from flashsim.core.policies import called_at
from flashsim.core.replacement import NOW
from flashsim.core.request import SECTOR, Integers
from flashsim.core.transactions import TransactionStream
from flashsim.core.units import NEVER
from flashsim.execution.compiled_loop import CompiledLoop, HostSide, Striped
from flashsim.execution.pooled import tables as at
from flashsim.execution.pooled.engine import act
from flashsim.execution.pooled.log_image import DurableImage, image_of, resume
from flashsim.execution.pooled.log_kernels import DOWN, WANTED
from flashsim.execution.pooled.log_tables import STATE_TYPE as LOGGED_STATE
from flashsim.execution.pooled.log_tables import LogTables, log_tables, outstanding_sectors, with_room
from flashsim.execution.pooled.logged_engine import log_part
from flashsim.execution.pooled.logging_design import LOG_BLOCK, Logging, check_room
from flashsim.execution.pooled.requests import note_interval
from flashsim.execution.pooled.system import COUNTED, LOG, PoolSystem
from flashsim.storage.log.durable import Write
from flashsim.storage.log.records import ACTIVE_BYTES, ENTRY_BYTES, RECORD_BYTES
from flashsim.storage.log.recovery import Recovery
from flashsim.storage.pool.reference import breach

#: Takes the number of the first of some requests, and their rows.
Recorder = Callable[[int, Integers], None]
#: Requests that are handed out at a time, about.
_HANDED_OUT = 1 << 16


class PoolRun:
    """Clients run transactions.

    Parameters
    ----------
    system
        What runs them.
    devices
        By what they are for: `flashsim.execution.pooled.system.DISK` and so on.
    stream
        The transactions.
    intervals
        Of which is told what happened in each; the last one has no end.
    asked
        How many of the first requests are kept in `requests`.
    record
        Is handed all requests, some at a time, in the order in which they were issued: the number of the first, and the rows of `requests`.
        The last ones come with `record_rest`.
    logging
        A log of records and a restart design; without it, a log of bytes that commits wait for.
    recovered
        What the system goes on from after a restart, of an image of a former run (`image`).
    """

    def __init__(
        self,
        system: PoolSystem,
        devices: Mapping[int, CompiledModel | Striped],
        stream: TransactionStream,
        intervals: int = 1,
        request_rows: int = 0,
        record: Recorder | None = None,
        logging: Logging | None = None,
        recovered: Recovery | None = None,
    ) -> None:
        self.system, self._record = system, record
        numbers = {purpose: number for number, purpose in enumerate(sorted(devices))}
        log = devices.get(LOG)
        room = log.capacity if log is not None and (logging or not isinstance(log, Striped)) else 0
        request_rows = 2 * system.most_requests + _HANDED_OUT if record else request_rows
        more = outstanding_sectors(system, logging) if logging else 0
        self.tables = at.tables(system, numbers, room, intervals, request_rows, len(stream.kinds), more)
        if record:
            self.tables.numbers[at.HAND_OUT_AT] = request_rows - system.most_requests
        self.kinds = stream.kinds
        self._batches = stream.batches()
        longest = max(system.group, system.read_ahead, system.expansion) * system.page_size
        longest = max(longest, system.clients * system.log_bytes * 64 + 512)
        self.log: LogTables | None = None
        state_type = at.STATE_TYPE
        if logging:
            self.log, state_type = log_tables(system, logging, room), LOGGED_STATE
            longest = max(longest, LOG_BLOCK, RECORD_BYTES + max(ENTRY_BYTES * logging.chunk, ACTIVE_BYTES * system.clients)) + SECTOR
            self.tables = self.tables._replace(log=called_at(log_part))
            self.tables.numbers[at.LOGGED] = 1
            self.log = resume(self.tables, self.log, recovered) if recovered else self.log
            self.tables.numbers[at.FLUSHER_AT] = 0 if self.log.scalars.flushes else NEVER
            self.tables.numbers[at.WRITER_AT] = logging.indirect or NEVER
        flags = logging.write_flags(devices) if logging else ()
        side = HostSide(act, self._fill(), state_type, 0, len(self.tables.slots), longest, self._pause, flags)
        self.loop = CompiledLoop([devices[purpose] for purpose in sorted(devices)], side)

    def _pause(self) -> tuple[Any, ...]:
        numbers = self.tables.numbers
        if numbers[at.ASKED] >= numbers[at.HAND_OUT_AT]:
            self._hand_out()
        return self._fill()

    def _hand_out(self) -> None:
        """Hand out the requests up to the first that is outstanding, and make room for more."""
        assert self._record is not None
        numbers, requests = self.tables.numbers, self.tables.requests
        first, rows = int(numbers[at.ASKED_FIRST]), self.requests
        count = int(np.argmax(np.append(rows[:, at.COMPLETED], -1) < 0))
        self._record(first, rows[:count].copy())
        room = np.zeros((2 * len(requests), 7), np.int64) if len(rows) - count > len(requests) // 2 else requests
        room[: len(rows) - count] = rows[count:].copy()
        self.tables = self.tables._replace(requests=room)
        numbers[at.ASKED_FIRST] = first + count
        numbers[at.HAND_OUT_AT] = first + count + len(room) - self.system.most_requests

    def record_rest(self) -> None:
        """Hand out the last requests, of which some may be outstanding; nothing is recorded any more."""
        if self._record is not None:
            self._record(int(self.tables.numbers[at.ASKED_FIRST]), self.requests.copy())
            self._record, self.tables.numbers[at.HAND_OUT_AT] = None, NEVER

    def _fill(self) -> tuple[Any, ...]:
        numbers = self.tables.numbers
        if numbers[at.BROKEN] == at.NO_TIME_PASSES:
            raise FlashsimError(f"clients: {numbers[at.LOW]} transactions ended in no time; give them think time or work")
        if numbers[at.BROKEN] == at.TOO_MANY_RECORDS:
            raise FlashsimError("log: one event made more records than there is room for; let transactions have fewer references")
        if numbers[at.BROKEN]:
            raise breach(self.system.policy.name, int(numbers[at.BROKEN]), int(self.tables.memory.numbers[NOW]))
        clients, bounds = self.tables.clients, self.tables.bounds
        # The references of transactions that have begun are needed until these end.
        running = clients[clients[:, at.REFERENCE] < clients[:, at.LAST_REFERENCE]]
        to_come = bounds[numbers[at.TRANSACTION] : numbers[at.TRANSACTIONS_HELD] + 1]
        first = int(running[:, at.REFERENCE].min(initial=to_come[0]))
        references, ends = [self.tables.references[first : to_come[-1]]], [to_come - first]
        kinds = [self.tables.kinds[numbers[at.TRANSACTION] :]]
        while sum(map(len, ends)) < 2 * numbers[at.LOW]:
            batch = next(self._batches, None)
            if batch is None:
                numbers[at.ENDED] = 1
                break
            ends.append(batch.ends + ends[-1][-1])
            references.append(batch.references)
            kinds.append(batch.kinds)
        clients[:, [at.REFERENCE, at.LAST_REFERENCE]] -= first
        all_ends = np.concatenate(ends)
        numbers[at.TRANSACTION], numbers[at.TRANSACTIONS_HELD] = 0, len(all_ends) - 1
        self.tables = self.tables._replace(references=np.concatenate(references), bounds=all_ends, kinds=np.concatenate(kinds))
        if self.log is None:
            return (self.tables,)
        self.log = with_room(self.log)
        return self.tables, self.log

    def shut_down(self) -> None:
        """Let clients begin no more transactions, and then a last checkpoint write all pages of memory; of a run with a log."""
        assert self.log is not None, "there is a log"
        numbers, scalars = self.tables.numbers, self.log.scalars
        numbers[at.TRANSACTIONS_HELD], numbers[at.ENDED], self._batches = numbers[at.TRANSACTION], 1, iter(())
        scalars.last = max(scalars.last, WANTED)
        if scalars.left == self.system.clients and not scalars.stage:  # nobody's leaving begins it
            numbers[at.CHECKPOINTS_AT] = self.loop.now + 1
            self.tables.causes[-3] = -1
            self.loop.act_at(self.loop.now + 1)

    def check_log(self) -> None:
        """Refuse a log whose device had too little room for what recovery might have needed."""
        if self.log is not None:
            check_room(int(self.log.scalars.room), int(self.log.scalars.needed))

    @property
    def is_down(self) -> bool:
        """True if a shutdown is over."""
        return self.log is not None and bool(self.log.scalars.last == DOWN)

    def image(self) -> tuple[DurableImage, list[Write]]:
        """State that would survive a crash now, of a run with a log, and the writes that devices have not completed."""
        assert self.log is not None, "there is a log"
        return image_of(self.tables, self.log)

    @property
    def counts(self) -> dict[str, int]:
        """Counters since the start."""
        return dict(zip(COUNTED, self.tables.series.sum(0).tolist(), strict=True))

    @property
    def by_kind(self) -> dict[str, int]:
        """Transactions that ended since the beginning, by the name of their kind; `Tables.by_kind` has them by interval."""
        return dict(zip(self.kinds, self.tables.by_kind.sum(0).tolist(), strict=True))

    @property
    def ended(self) -> dict[str, int]:
        """End of the last transaction of each kind so far, 0 where none has ended."""
        return dict(zip(self.kinds, self.tables.ended.tolist(), strict=True))

    @property
    def is_over(self) -> bool:
        """True if all transactions have ended, and there are no more."""
        return bool((self.tables.clients[:, at.STATE] == at.GONE).all())

    @property
    def requests(self) -> Integers:
        """The first requests (`flashsim.execution.pooled.tables`), or those that have not been handed out, shape (n, 7)."""
        return self.tables.requests[: self.tables.numbers[at.ASKED] - self.tables.numbers[at.ASKED_FIRST]]

    def run(self, until: int = NEVER) -> None:
        """Let time pass."""
        self.loop.run(until)
        if until < NEVER:  # nothing happens any more before that
            note_interval(self.tables, until)
