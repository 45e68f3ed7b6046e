"""A recorded program's requests on a simulated drive that loses power: which of the program's effects its sectors hold then.

Requests come from calls by the rules of `traces.calls.device_requests`.  The drive serves them once, each after the one that its thread
waits for; then a fresh drive gets them at the same times, and loses power at every event.  A page of a file has what calls had written to
it when the request was made that its sectors hold; names and sizes are those of the journal's transactions that are there.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from flashsim.apps.programs.volatile_files import PAGE, Page, Remains, VolatileFiles
from flashsim.core.model import DeviceModel
from flashsim.core.request import FLUSH, READ, SECTOR, WRITE, Integers, Requests, make_requests
from flashsim.core.units import NEVER
from flashsim.device import block_layer, engines
from flashsim.device.device import Device
from flashsim.device.scaling import small_drive
from flashsim.device.survival import written_sectors
from traces.calls import schema
from traces.calls.device_requests import DeviceRequests
from traces.calls.schema import Call
from traces.calls.volume import ThreadStrand

#: Events at which power is cut at most; of more, every second, or third and so on.
_MOST = 500
#: Flags of files whose writes are durable when they return.
SYNCED = schema.SYNC | schema.DSYNC


class Moment(NamedTuple):
    """A power cut of the drive."""

    #: The first call that had not begun.
    begun: int
    #: Calls before it of which requests had not completed.
    under_way: frozenset[int]
    #: The call at which the content was written that the drive holds of a page; of others it holds what there was before the program.
    pages: Mapping[Page, int]
    #: The call at which the last transaction was written that the drive holds; -1: none.
    journal: int


class ProgramRequests(DeviceRequests):
    """Requests of a program, with the pages of files and the transactions that they write."""

    def __init__(self, table: pa.Table) -> None:
        super().__init__(table)
        #: The file and the first page that a request writes, by the request's number.
        self.pages: dict[int, Page] = {}
        #: Numbers of the first request of each transaction and of the first behind it.
        self.transactions = list[tuple[int, int]]()
        for number, call in enumerate(self._calls):
            self.take(number, call)
        self.finish(self._calls[-1].end if self._calls else 0)

    def _write_back(self, file: int, pages: Any, strand: ThreadStrand, time: int) -> list[int]:
        pages = sorted(pages)
        numbers = super()._write_back(file, pages, strand, time)
        if file >= 0:
            self.pages |= {number: (file, first) for number, (first, _) in zip(numbers, self._pieces(file, pages), strict=True)}
        return numbers

    def _direct(self, call: Call, strand: ThreadStrand) -> None:
        super()._direct(call, strand)
        if call.call in schema.WRITES:
            begin, number = (call.offset or 0) // SECTOR * SECTOR, self.requests.count
            places = list(self.volume.places(call.file, begin, -(-call.reach // SECTOR) * SECTOR - begin))
            for back, (_, length) in zip(range(len(places), 0, -1), places, strict=True):
                self.pages[number - back] = call.file, begin // PAGE
                begin += length

    def _commit(self, strand: ThreadStrand, time: int) -> int:
        first = self.requests.count
        last = super()._commit(strand, time)
        if self.requests.count > first:
            self.transactions.append((first, self.requests.count))
        return last


class DriveCuts:
    """Power cuts of a drive that a program writes to; it holds what the program uses, and nothing between.

    A small part of the preset `device` is simulated.  Without `keeps_flushed` a flush does nothing: it is taken for a read.

    Raises
    ------
    InvalidParameterError, CapacityError
        The drive is an array; it is smaller than what the program uses.
    """

    def __init__(self, table: pa.Table, device: str, keeps_flushed: bool = True) -> None:
        plain = pa.compute.and_(pa.compute.is_in(table["kind"], pa.array(["file", "other"])), table["error"].is_null())
        calls = np.append(np.flatnonzero(plain.to_numpy(zero_copy_only=False)), len(table))
        self.program, self.end = ProgramRequests(table), len(table)
        rows = self.program.requests.rows
        #: The call of each request; those after the last call are the system's, before it shuts down.
        self.calls: Integers = calls[[row.tag for row in rows]] if rows else np.zeros(0, np.int64)
        requests = make_requests([row.operation for row in rows], [row.offset for row in rows], [row.length for row in rows])
        for column in ("flags", "dependency", "think"):
            requests[column] = [getattr(row, column) for row in rows]
        if not keeps_flushed:
            is_flush = requests["operation"] == FLUSH
            requests["operation"][is_flush], requests["length"][is_flush], requests["flags"] = READ, SECTOR, 0
        used = [np.arange(first // PAGE, -(-(first + length) // PAGE)) for first, length in requests[["offset", "length"]].tolist()]
        pages = np.unique(np.concatenate([[0], *used]))
        offset: Integers = requests["offset"]
        requests["offset"] = np.searchsorted(pages, offset // PAGE) * PAGE + offset % PAGE
        self.preset = small_drive(device, len(pages) * PAGE)
        self.requests, self.arrivals, self.order = self._timeline(requests, np.array([row.arrival for row in rows], np.int64))

    def _timeline(self, requests: Requests, arrivals: Integers) -> tuple[Requests, Integers, Integers]:
        """Requests in order of their arrival, when that is, and their numbers; each waits for another one."""
        completions = Device(self.preset).serve(requests, arrivals, settle=False)
        order = np.argsort(completions["submitted"], kind="stable")
        ordered = requests[order]
        ordered["dependency"], ordered["think"] = -1, 0
        return ordered, completions["submitted"][order], order

    def __iter__(self) -> Iterator[Moment]:
        """What is there after a power cut at each event of the drive, if it differs from what was there before."""
        engines.finish(self.preset, "engine")
        model = engines.classes_of(self.preset, "engine")[0](self.preset.parameters)
        model.submit(self.requests, block_layer.split(self.requests), self.arrivals)
        completed, seen = np.zeros(len(self.requests), bool), None
        for time in _differing(deepcopy(model)):
            completed[self.order[model.advance(time, every=True)["id"]]] = True
            lost = deepcopy(model)
            cut = lost.power_cut(time)
            held = written_sectors(lost, self.requests, cut, self.preset.flash.unit_size if self.preset.flash else 0)
            moment = self._moment(held, completed, self.arrivals <= time)
            if moment != seen:
                yield moment
            seen = moment

    def _moment(self, held: Mapping[int, int], completed: Any, has_arrived: Any) -> Moment:
        """The moment at which sectors hold writes, by their places in order of arrival."""
        begun = int(self.calls[self.order[has_arrived]].max(initial=-1)) + 1
        under_way = frozenset(self.calls[~completed & (self.calls < begun)].tolist())
        if not under_way:
            begun = int(self.calls[self.calls >= begun].min(initial=self.end))
        pages: dict[Page, int] = {}
        for sector, place in held.items():
            number = int(self.order[place])
            if number in self.program.pages:
                file, first = self.program.pages[number]
                page = first + sector * SECTOR // PAGE - int(self.requests["offset"][place]) // PAGE
                pages[file, page] = max(pages.get((file, page), -1), int(self.calls[number]))
        return Moment(begun, under_way, pages, self._journal(held))

    def _journal(self, held: Mapping[int, int]) -> int:
        places = np.argsort(self.order)
        last = -1
        for first, behind in self.program.transactions:
            for place in places[first:behind].tolist():
                row = self.requests[place]
                begin, end = int(row["offset"]) // SECTOR, int(row["offset"] + row["length"]) // SECTOR
                if row["operation"] == WRITE and any(held.get(sector, -1) < place for sector in range(begin, end)):
                    return last
            last = int(self.calls[first])
        return last


def _differing(model: DeviceModel) -> list[int]:
    """Times of the drive's events at which a power cut can leave something else than before."""
    times, seen, completed = list[int](), None, 0
    while (time := model.next_event) != NEVER:
        completed += len(model.advance(time, every=True))
        counts = model.statistics()
        state = completed, model.outstanding, counts.get("die_busy_ns", counts)
        if state != seen:
            times.append(time)
        seen = state
    return times[:: -(-len(times) // _MOST) or 1]


class FilesOnDrive:
    """Files of a program at moments of a drive, later and later ones.

    `files` are those before the first call, `rows` the calls that matter, `numbers` theirs in the recording; `apply` takes a call.
    """

    def __init__(
        self,
        files: VolatileFiles,
        rows: Sequence[Mapping[str, Any]],
        numbers: Sequence[int],
        apply: Callable[[VolatileFiles, int, Mapping[str, Any]], Any],
    ) -> None:
        self.files, self.rows, self.numbers, self._apply = files, rows, numbers, apply
        #: Calls, of those that matter, that had returned, and all before them.
        self.returned = 0
        #: The last call of which each page, and the journal, has to be there.
        self._pages: dict[Page, int] = {}
        self._journal = -1
        #: The last call that truncated each file.
        self._cut: dict[int, int] = {}

    def at(self, moment: Moment) -> tuple[Remains, VolatileFiles, bool]:
        """Effects of calls that a drive holds; the files when these calls had begun; and whether it holds all that is durable then."""
        while self._is_before(self.returned, min(moment.under_way, default=moment.begun)):
            self._return()
        files = self.files.freeze()
        number = self.returned
        while self._is_before(number, moment.begun):
            row = self.rows[number]
            if self.numbers[number] in moment.under_way:
                row = {**row, "call": "under way"} if row["call"] in schema.SYNCS else {**row, "flags": row["flags"] & ~SYNCED}
            self._apply(files, number, row)
            number += 1
        patches = [each.page for each in files.patches if self.numbers[each.call] <= moment.pages.get(each.page, -1)]
        remains = Remains(sum(self.numbers[each.call] <= moment.journal for each in files.changes), dict(Counter(patches)))
        named = set(self.files.names.values())
        is_there = all(self.numbers[call] <= moment.pages.get(page, -1) for page, call in self._pages.items() if page[0] in named)
        return remains, files, is_there and (self._journal < 0 or self.numbers[self._journal] <= moment.journal)

    def _is_before(self, number: int, call: int) -> bool:
        return number < len(self.rows) and self.numbers[number] < call

    def _return(self) -> None:
        """The next call returns; note what is durable from then on, but for what is truncated."""
        patches, changes = self.files.patches, self.files.changes
        self._apply(self.files, self.returned, self.rows[self.returned])
        pending = {(each.call, each.page) for each in self.files.patches}
        self._cut |= {each.file: each.call for each in changes if each.kind == "truncate"}
        settled = (each for each in patches if (each.call, each.page) not in pending)
        self._pages |= {each.page: each.call for each in settled if self._cut.get(each.file, -1) < each.call}
        if committed := len(changes) - len(self.files.changes):
            self._journal = changes[committed - 1].call
        self.returned += 1
