"""A system of pools in virtual time: transactions are handed to the compiled loop as it needs them."""

from collections.abc import Callable, Mapping

import numpy as np

from flashsim.core.errors import FlashsimError
from flashsim.core.kernel import in_python
from flashsim.core.model import CompiledModel
from flashsim.core.policies import addresses_of
from flashsim.core.records import RecordArray, empty_table
from flashsim.core.replacement import NOW
from flashsim.core.request import SECTOR
from flashsim.core.transactions import TransactionStream
from flashsim.core.units import NEVER
from flashsim.execution.compiled_loop import CompiledLoop, HostSide, Striped
from flashsim.execution.pooled.clients import GONE
from flashsim.execution.pooled.engine import act
from flashsim.execution.pooled.log_image import DurableImage, image_of, resume
from flashsim.execution.pooled.log_kernels import DOWN, WANTED
from flashsim.execution.pooled.log_tables import log_tables, with_room, without_log
from flashsim.execution.pooled.logged_engine import log_part
from flashsim.execution.pooled.logging_design import LOG_BLOCK, Logging, check_room
from flashsim.execution.pooled.requests import begin_interval
from flashsim.execution.pooled.system import COUNTED, LOG, PoolSystem
from flashsim.execution.pooled.tables import ISSUED, NO_TIME_PASSES, STATE_TYPE, TOO_MANY_RECORDS, Tables, initial_tables
from flashsim.storage.log.durable import DurableWrite
from flashsim.storage.log.records import ACTIVE_BYTES, ENTRY_BYTES, RECORD_BYTES
from flashsim.storage.log.recovery import Recovery
from flashsim.storage.pool.reference import breach

#: Takes the number of the first of some requests, and their rows.
Recorder = Callable[[int, RecordArray], None]
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
        longest = max(system.group, system.read_ahead, system.expansion) * system.page_size
        longest = max(longest, system.clients * system.log_bytes * 64 + 512)
        if logging:
            longest = max(longest, LOG_BLOCK, RECORD_BYTES + max(ENTRY_BYTES * logging.chunk, ACTIVE_BYTES * system.clients)) + SECTOR
        log_of_records = log_tables(system, logging, room) if logging else without_log()
        self.tables = initial_tables(system, numbers, room, intervals, request_rows, len(stream.kinds), log_of_records)
        scalars = self.tables.scalars
        if record:
            scalars.hand_out_at = request_rows - system.most_requests
        if logging:
            self.tables = self.tables._replace(log_part=addresses_of(log_part))
            scalars.has_log = 1
            scalars.flusher_at = 0 if log_of_records.scalars.flushes else NEVER
            scalars.writer_at = logging.indirect or NEVER
            self.tables = resume(self.tables, recovered) if recovered else self.tables
        self.kinds = stream.kinds
        self._batches = stream.batches()
        flags = logging.write_flags(devices) if logging else ()
        side = HostSide(act, self._fill(), STATE_TYPE, 0, len(self.tables.slots), longest, self._pause, flags)
        self.loop = CompiledLoop([devices[purpose] for purpose in sorted(devices)], side)

    def _pause(self) -> tuple[Tables]:
        scalars = self.tables.scalars
        if scalars.issued >= scalars.hand_out_at:
            self._hand_out()
        return self._fill()

    def _hand_out(self) -> None:
        """Hand out the requests up to the first that is outstanding, and make room for more."""
        assert self._record is not None
        scalars, requests = self.tables.scalars, self.tables.requests
        first, rows = int(scalars.kept_first), self.requests
        count = int(np.argmax(np.append(rows.completed, -1) < 0))
        self._record(first, rows[:count].copy())
        room = empty_table(2 * len(requests), ISSUED) if len(rows) - count > len(requests) // 2 else requests
        room[: len(rows) - count] = rows[count:].copy()
        self.tables = self.tables._replace(requests=room)
        scalars.kept_first = first + count
        scalars.hand_out_at = first + count + len(room) - self.system.most_requests

    def record_rest(self) -> None:
        """Hand out the last requests, of which some may be outstanding; nothing is recorded any more."""
        if self._record is not None:
            self._record(int(self.tables.scalars.kept_first), self.requests.copy())
            self._record, self.tables.scalars.hand_out_at = None, NEVER

    def _fill(self) -> tuple[Tables]:
        scalars = self.tables.scalars
        if scalars.stop_reason == NO_TIME_PASSES:
            raise FlashsimError(f"clients: {scalars.low} transactions ended in no time; give them think time or work")
        if scalars.stop_reason == TOO_MANY_RECORDS:
            raise FlashsimError("log: one event made more records than there is room for; let transactions have fewer references")
        if scalars.stop_reason:
            raise breach(self.system.policy.name, int(scalars.stop_reason), int(self.tables.memory.numbers[NOW]))
        clients, bounds = self.tables.clients, self.tables.bounds
        # The references of transactions that have begun are needed until these end.
        running = clients[clients.reference < clients.end_reference]
        to_come = bounds[scalars.transaction : scalars.transactions_held + 1]
        first = int(running.reference.min(initial=to_come[0]))
        references, ends = [self.tables.references[first : to_come[-1]]], [to_come - first]
        kinds = [self.tables.kinds[scalars.transaction :]]
        while sum(map(len, ends)) < 2 * scalars.low:
            batch = next(self._batches, None)
            if batch is None:
                scalars.ended = 1
                break
            ends.append(batch.ends + ends[-1][-1])
            references.append(batch.references)
            kinds.append(batch.kinds)
        clients.reference -= first
        clients.end_reference -= first
        all_ends = np.concatenate(ends)
        scalars.transaction, scalars.transactions_held = 0, len(all_ends) - 1
        self.tables = self.tables._replace(references=np.concatenate(references), bounds=all_ends, kinds=np.concatenate(kinds))
        if scalars.has_log:
            self.tables = self.tables._replace(log=with_room(self.tables.log))
        return (self.tables,)

    def shut_down(self) -> None:
        """Let clients begin no more transactions, and then a last checkpoint write all pages of memory; of a run with a log."""
        scalars, log = self.tables.scalars, self.tables.log.scalars
        assert scalars.has_log, "there is a log"
        scalars.transactions_held, scalars.ended, self._batches = scalars.transaction, 1, iter(())
        log.last = max(log.last, WANTED)
        if log.left == self.system.clients and not log.stage:  # nobody's leaving begins it
            scalars.checkpoint_at = self.loop.now + 1
            self.tables.causes[scalars.checkpointer] = -1
            self.loop.act_at(self.loop.now + 1)

    def check_log(self) -> None:
        """Refuse a log whose device had too little room for what recovery might have needed."""
        log = self.tables.log.scalars
        check_room(int(log.room), int(log.needed))

    @property
    def is_down(self) -> bool:
        """True if a shutdown is over."""
        return bool(self.tables.log.scalars.last == DOWN)

    def image(self) -> tuple[DurableImage, list[DurableWrite]]:
        """State that would survive a crash now, of a run with a log, and the writes that devices have not completed."""
        assert self.tables.scalars.has_log, "there is a log"
        return image_of(self.tables)

    @property
    def counts(self) -> dict[str, int]:
        """Counters since the start."""
        return {name: int(np.asarray(self.tables.series)[name].sum()) for name in COUNTED}

    @property
    def by_kind(self) -> dict[str, int]:
        """Transactions that ended since the beginning, by the name of their kind; `Tables.by_kind` has them by interval."""
        return dict(zip(self.kinds, self.tables.by_kind.sum(0).tolist(), strict=True))

    @property
    def end_times(self) -> dict[str, int]:
        """End of the last transaction of each kind so far, 0 where none has ended."""
        return dict(zip(self.kinds, self.tables.ended.tolist(), strict=True))

    @property
    def is_over(self) -> bool:
        """True if all transactions have ended, and there are no more."""
        return bool((self.tables.clients.step == GONE).all())

    @property
    def requests(self) -> RecordArray:
        """The first requests (`flashsim.execution.pooled.tables.ISSUED`), or those that have not been handed out."""
        return self.tables.requests[: self.tables.scalars.issued - self.tables.scalars.kept_first]

    def run(self, until: int = NEVER) -> None:
        """Let time pass."""
        self.loop.run(until)
        if until < NEVER:  # nothing happens any more before that
            in_python(begin_interval)(self.tables, until)
