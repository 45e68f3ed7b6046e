"""Requests to a device that a recorded program causes, through a page cache and a journalling file system.

The rules are those of Linux and ext4 with ordered data, as far as they decide what reaches the device:

- A read waits for pages that are not in memory, and a window is read ahead (`traces.calls.page_cache.ReadAhead`).
- A write makes pages dirty; one that covers a part of a page reads the rest first, if the file has it.
- Dirty pages are written by a background thread, a file at a time: those of files that have been dirty for `expiry`, looked for every
  `wakeup`, and, above a share `background` of memory, those of the oldest file.  A writer above a share `limit` waits for them.
- ``fsync`` writes the file's pages, waits, and commits the journal if there are changes of the file's metadata: descriptor and metadata
  blocks, a flush, and a commit block that is forced to the medium; otherwise it flushes.  ``fdatasync`` commits for sizes and blocks alone.
  Of a folder both commit if its names have changed.
- The journal also commits `commit` after its first change; a metadata block is written to its place like a dirty page.
- Direct requests reach the device as they are.

A thread waits for its own reads and syncs, and for processes that it waited for; from there to its next request it thinks as long as in the
recording.  Its first request comes after what the thread that made it had waited for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from itertools import pairwise

import pyarrow as pa

from flashsim.core.request import FLUSH, READ, SECTOR, WRITE
from flashsim.core.units import MILLISECONDS, NEVER
from traces.calls import schema
from traces.calls.page_cache import PAGE, HostPageCache, HostSettings, ReadAhead
from traces.calls.schema import Call
from traces.calls.volume import ALLOCATION, JOURNAL, Extents, Journal, RecordedVolume, Requests, Strands, ThreadStrand
from traces.file.schema import Batches

#: Number of the file that stands for the metadata area.
_METADATA = -1
_BATCH = 1 << 14
#: Pages that the background thread writes of one file before it looks again.
_CHUNK = 1024
#: A page that is read ahead is waited for if a program comes to it within this time; later it has arrived.
_UNDER_WAY = 10 * MILLISECONDS
#: Bytes of a group of blocks, which have a bitmap together.
_GROUP = 128 << 20
_OPENS = ("open", "openat", "openat2", "creat")


class DeviceRequests:
    """Turns recorded calls (`traces.calls.schema.SCHEMA`) into requests; extents are where files lie, by path, if that is known."""

    def __init__(self, table: pa.Table, settings: HostSettings | None = None, extents: Mapping[str, Extents] | None = None) -> None:
        self.settings = settings or HostSettings()
        plain = table.filter(pa.compute.and_(pa.compute.is_in(table["kind"], pa.array(["file", "other"])), table["error"].is_null()))
        self._calls = list(map(Call, *(plain[each.name].to_pylist() for each in fields(Call))))
        self.sizes, most, self._last_use = self._first_pass()
        self.names = {call.file: call.path or "" for call in reversed(self._calls) if call.file >= 0}
        self._folders = {path.rpartition("/")[0] for path in self.names.values()}
        paths = {file: extents[path] for file, path in self.names.items() if extents and path in extents}
        self.volume = RecordedVolume(most, paths)
        self.cache = HostPageCache(max(1, self.settings.memory // PAGE))
        self.requests = Requests()
        self.journal = Journal(self.requests, self.settings.journal)
        self._strands = Strands()
        self._soiled: dict[int, tuple[int, ThreadStrand]] = {}
        self._windows: dict[tuple[int, int], ReadAhead] = {}
        self._arriving: dict[tuple[int, int], tuple[int, int]] = {}
        self._mapped = {file: -(-size // PAGE) for file, size in self.sizes.items()}
        self._seen = set[tuple[int, int]]()
        self._woken = 0
        self._by_path: dict[str, int] = {}
        self._links: dict[int, int] = {}
        self._forgotten: list[int] = []

    def _first_pass(self) -> tuple[dict[int, int], dict[int, int], dict[int, int]]:
        """Sizes of files before the first call, as far as reads tell; their most; and the last call that uses each.

        A file that the program opens, but not to create, truncate or append to it, is taken to have had all bytes before that it ever uses.
        """
        before, now, most, last = dict[int, int](), dict[int, int](), dict[int, int](), dict[int, int]()
        existing, grown = set[int](), set[int]()
        for number, call in enumerate(self._calls):
            file, end = call.file, call.reach
            if call.call in schema.READS and call.result and end > now.get(file, 0):
                before[file] = now[file] = end
            elif call.call in schema.WRITES:
                now[file] = max(now.get(file, 0), end)
            elif call.call in _OPENS:
                (grown if call.flags & (schema.CREATE | schema.TRUNCATE | schema.APPEND) else existing).add(file)
                continue
            elif call.call in ("truncate", "ftruncate"):
                now[file] = call.length or 0
                grown.add(file)
            elif call.call == "fallocate":
                now[file] = max(now.get(file, 0), (call.offset or 0) + (call.length or 0))
            elif call.call not in schema.SYNCS:
                continue
            most[file], last[file] = max(most.get(file, 0), now.get(file, 0)), number
        return before | {file: most[file] for file in (existing - grown) & most.keys()}, most, last

    def batches(self) -> Batches:
        """Requests of all calls; in the end, what is dirty is written."""
        time = 0
        for number, call in enumerate(self._calls):
            time = call.time
            self.take(number, call)
            if len(self.requests.rows) >= _BATCH:
                yield self.requests.batch()
        self.finish(time)
        if self.requests.rows:
            yield self.requests.batch()

    # What calls do.

    def take(self, number: int, call: Call) -> None:
        self._wake(call.time)
        self.requests.call = number
        strand, name, file = self._strands.at(call), call.call, call.file
        if name in schema.READS or name in schema.WRITES:
            if file >= 0 and call.offset is not None and (call.result or 0) > 0:
                self._data(call, strand)
        elif name in ("fsync", "fdatasync", "io_fsync"):
            if file >= 0:
                self._sync([file], strand, call.time, call.end, data_only=bool(call.flags & schema.DATA_ONLY))
        elif name in ("sync", "syncfs"):
            self._sync(None, strand, call.time, call.end)
        elif name == "sync_file_range" and file >= 0:
            first, end = (call.offset or 0) // PAGE, (call.offset or 0) + call.length if call.length else NEVER
            self._write_back(file, self.cache.dirty_between(file, first, -(-end // PAGE)), strand, call.time)
        elif file >= 0:
            self._change(call, strand)
        if self._last_use.get(file) == number and self._links.get(file, 1) <= 0:
            self._forget(file)

    def finish(self, time: int) -> None:
        """Write what is dirty, as the system does when it shuts down."""
        self.requests.call = -1
        strand = replace(self._strands.latest or ThreadStrand(since=time))
        for file in [file for file in self.cache.dirty if file != _METADATA]:
            self._write_back(file, self.cache.dirty[file], strand, time)
        self._commit(strand, time)
        self._write_back(_METADATA, self.cache.dirty.get(_METADATA, ()), strand, time)

    def _data(self, call: Call, strand: ThreadStrand) -> None:
        file, time, is_write = call.file, call.time, call.call in schema.WRITES
        if is_write:
            self.journal.change(file, strand, time, call.reach > self.sizes.get(file, 0))
        if call.flags & schema.DIRECT or not self.settings.memory:
            self._direct(call, strand)
        elif is_write:
            self._write(call, strand)
        else:
            self._read(call, strand)
        if is_write:
            self.sizes[file] = max(self.sizes.get(file, 0), call.reach)
            if call.flags & (schema.SYNC | schema.DSYNC):
                self._sync([file], strand, time, call.end, data_only=not call.flags & schema.SYNC)

    def _direct(self, call: Call, strand: ThreadStrand) -> None:
        """A request as large as the call, in whole sectors; those of libaio wait for nothing, and nobody waits for them here."""
        file, time, begin = call.file, call.time, (call.offset or 0) // SECTOR * SECTOR
        length = -(-call.reach // SECTOR) * SECTOR - begin
        first, last = begin // PAGE, (begin + length - 1) // PAGE
        self._wait(strand, self._write_back(file, self.cache.dirty_between(file, first, last + 1), strand, time), time)
        if is_write := call.call in schema.WRITES:
            self.cache.drop(file, first, last)
            self._map(file, last, strand, time)
        own = ThreadStrand() if (is_async := call.call.startswith("io_")) else strand
        operation, label, places = WRITE if is_write else READ, self._label(file), self.volume.places(file, begin, length)
        numbers = [self.requests.add(operation, place, own, time, label) for place in places]
        if not is_async:
            self._wait(strand, numbers, call.end)

    def _read(self, call: Call, strand: ThreadStrand) -> None:
        file, time, end, first, last = call.file, call.time, call.end, (call.offset or 0) // PAGE, (call.reach - 1) // PAGE
        asked = max(last + 1, -(-((call.offset or 0) + (call.length or 0)) // PAGE))
        window = self._windows.setdefault((call.process, file), ReadAhead(self.settings.read_ahead // PAGE))
        for page in range(first, last + 1):
            if (file, page) not in self.cache:
                before = 0
                while before <= asked - page and (file, page - 1 - before) in self.cache:
                    before += 1
                begin, count = window.missing(page, asked - page, before)
                numbers = self._fetch(file, begin, count, strand, time)
                self._wait(strand, [number for number, start in numbers if start <= last], end)
            elif page == window.mark:
                begin, count = window.next_window(asked - page)
                for number, start in self._fetch(file, begin, count, strand, time):
                    self._arriving |= {(file, each): (number, time) for each in range(start, begin + count)}
            if (arrives := self._arriving.pop((file, page), None)) and time - arrives[1] < _UNDER_WAY:
                self._wait(strand, [arrives[0]], end)
            self.cache.access((file, page))
        window.previous = last

    def _fetch(self, file: int, begin: int, count: int, strand: ThreadStrand, time: int) -> list[tuple[int, int]]:
        """Read pages that are missing and that the file has; numbers of requests, and the first page of each."""
        known = -(-self.sizes.get(file, 0) // PAGE)
        missing = [page for page in range(begin, min(begin + count, known)) if (file, page) not in self.cache]
        if self.settings.warm:
            fresh = [page for page in missing if (file, page) not in self._seen]
            self._seen |= {(file, page) for page in fresh}
            for page in fresh:
                self.cache.add((file, page))
            missing = [page for page in missing if (file, page) not in self.cache]
        numbers = []
        for first, place in self._pieces(file, missing):
            numbers.append((self.requests.add(READ, place, strand, time, self._label(file)), first))
        for page in missing:
            self.cache.add((file, page))
        return numbers

    def _write(self, call: Call, strand: ThreadStrand) -> None:
        file, time, begin, settings, size = call.file, call.time, call.offset or 0, self.settings, self.sizes.get(call.file, 0)
        for page in range(begin // PAGE, (call.reach - 1) // PAGE + 1):
            is_whole = begin <= page * PAGE and (page + 1) * PAGE <= call.reach
            if not is_whole and page * PAGE < size and page < self._mapped.get(file, 0) and (file, page) not in self.cache:
                self._wait(strand, [number for number, _ in self._fetch(file, page, 1, strand, time)], call.end)
            self.cache.access((file, page))
            self._soil(file, page, strand, time)
            if self.cache.dirty_pages > settings.background * self.cache.frames:
                waits = self.cache.dirty_pages > settings.limit * self.cache.frames
                numbers = self._write_oldest(strand, time)
                if waits:
                    self._wait(strand, numbers, call.end)

    def _soil(self, file: int, page: int, strand: ThreadStrand, time: int) -> None:
        if file not in self.cache.dirty:
            self._soiled[file] = time, replace(strand)
        self.cache.soil((file, page))

    def _change(self, call: Call, strand: ThreadStrand) -> None:
        name, file, path, time = call.call, call.file, call.path or "", call.time
        folder = path.rpartition("/")[0]
        if name in _OPENS:
            self._windows.pop((call.process, file), None)
            is_new = call.flags & schema.CREATE and path not in self._by_path and not self.sizes.get(file)
            if is_new:
                self.journal.change(file, strand, time, True, folder, ALLOCATION)
            if call.flags & schema.TRUNCATE:
                self._resize(file, 0, strand, time)
            self._by_path[path] = file
        elif name in ("truncate", "ftruncate"):
            self._resize(file, call.length or 0, strand, time)
        elif name == "fallocate":
            end = (call.offset or 0) + (call.length or 0)
            if "KEEP_SIZE" not in (call.other or ""):
                self.sizes[file] = max(self.sizes.get(file, 0), end)
            self._map(file, end // PAGE, strand, time)
        elif name.startswith(("rename", "link")):
            other = call.other or ""
            if name.startswith("rename") and (victim := self._by_path.get(other, file)) != file:
                self._unlink(victim)
            if name.startswith("rename"):
                self._by_path.pop(path, None)
            else:
                self._links[file] = self._links.get(file, 1) + 1
            self._by_path[other] = file
            self.journal.change(file, strand, time, True, folder)
            self.journal.change(file, strand, time, True, other.rpartition("/")[0])
        elif name.startswith("unlink"):
            self._by_path.pop(path, None)
            self.journal.change(file, strand, time, True, folder, ALLOCATION)
            self._unlink(file)

    def _unlink(self, file: int) -> None:
        self._links[file] = self._links.get(file, 1) - 1
        if self._links[file] <= 0 and self._last_use.get(file, -1) <= self.requests.call:
            self._forget(file)

    def _forget(self, file: int) -> None:
        """A file is no more: what is dirty of it is never written, and its place is free when the journal says so."""
        self.cache.drop(file)
        if self.settings.journal:
            self._forgotten.append(file)
        else:
            self.volume.release(file)
        self._mapped.pop(file, None)

    def _resize(self, file: int, size: int, strand: ThreadStrand, time: int) -> None:
        if size < self.sizes.get(file, 0):
            self.cache.drop(file, -(-size // PAGE))
            self._mapped[file] = min(self._mapped.get(file, 0), -(-size // PAGE))
        if size != self.sizes.get(file, 0):
            self.journal.change(file, strand, time, True)
        self.sizes[file] = size

    # What the system does.

    def _wake(self, until: int) -> None:
        """The background thread's looks, and the journal's own commits, until a time."""
        while (due := self._woken + self.settings.wakeup) <= until:
            self._commit_if_due(due)
            self._woken = due
            for file in list(self.cache.dirty):
                begin, strand = self._soiled[file]
                if begin + self.settings.expiry <= due:
                    self._write_back(file, list(self.cache.dirty[file]), strand, due)
            if not self.cache.dirty_pages and self.journal.transaction is None:
                self._woken = until - until % self.settings.wakeup
        self._commit_if_due(until)

    def _commit_if_due(self, until: int) -> None:
        transaction = self.journal.transaction
        if transaction and transaction.begin + self.settings.commit <= until:
            self._commit(transaction.strand, transaction.begin + self.settings.commit)

    def _write_oldest(self, strand: ThreadStrand, time: int) -> list[int]:
        """Write pages of the files that have been dirty for longest, until the background share is left."""
        numbers, most = list[int](), int(self.settings.background * self.cache.frames)
        while self.cache.dirty_pages > most:
            file = next(iter(self.cache.dirty))
            numbers += self._write_back(file, sorted(self.cache.dirty[file])[:_CHUNK], strand, time)
        return numbers

    def _write_back(self, file: int, pages: Iterable[int], strand: ThreadStrand, time: int) -> list[int]:
        """Write dirty pages of a file; return the numbers of the requests."""
        pages = sorted(pages)
        if not pages:
            return []
        self._map(file, pages[-1], strand, time)
        numbers = [self.requests.add(WRITE, place, strand, time, self._label(file)) for _, place in self._pieces(file, pages)]
        self.cache.clean(file, pages)
        return numbers

    def _pieces(self, file: int, pages: Sequence[int]) -> Iterator[tuple[int, tuple[int, int]]]:
        """Runs of pages as offsets and lengths on the device, and the first page of each."""
        ends = [at + 1 for at, (page, following) in enumerate(pairwise(pages)) if following > page + 1]
        for first, last in pairwise((0, *ends, len(pages))) if pages else ():
            begin, end = pages[first] * PAGE, (pages[last - 1] + 1) * PAGE
            if file == _METADATA:
                yield pages[first], (JOURNAL + begin, end - begin)
                continue
            at = begin
            for place, length in self.volume.places(file, begin, end - begin):
                for cut in range(0, length, self.settings.largest):
                    yield (at + cut) // PAGE, (place + cut, min(self.settings.largest, length - cut))
                at += length

    def _map(self, file: int, page: int, strand: ThreadStrand, time: int) -> None:
        """Blocks are allocated for a file up to a page, as they are written first."""
        if file == _METADATA or page < self._mapped.get(file, 0):
            return
        self._mapped[file] = page + 1
        place, _ = next(self.volume.places(file, page * PAGE, PAGE))
        self.journal.change(file, strand, time, True, blocks=(("blocks", place // _GROUP), ("groups", 0)))

    def _sync(self, files: Sequence[int] | None, strand: ThreadStrand, time: int, end: int, data_only: bool = False) -> None:
        """Files' pages are written, all files' without names, and what is needed of the journal; the thread waits."""
        numbers = list[int]()
        for file in list(self.cache.dirty) if files is None else files:
            if file != _METADATA:
                numbers += self._write_back(file, self.cache.dirty.get(file, ()), strand, time)
        self._wait(strand, numbers, time)
        names: set[int | str] = {name for file in files or () for name in (file, self.names.get(file, file))}
        if self.journal.has(names, data_only) or (files is None and self.journal.transaction):
            self._wait(strand, [self._commit(strand, time)], end)
        elif not names & self._folders:
            self._wait(strand, [self.requests.add(FLUSH, (0, 0), strand, time)], end)

    def _commit(self, strand: ThreadStrand, time: int) -> int:
        """Commit the journal; its metadata blocks are dirty from then on."""
        last, blocks = self.journal.commit(strand, time)
        while self._forgotten:
            self.volume.release(self._forgotten.pop())
        for block in blocks:
            self.cache.add((_METADATA, block))
            self._soil(_METADATA, block, strand, time)
        return last

    def _wait(self, strand: ThreadStrand, numbers: Sequence[int], end: int) -> None:
        """A thread waits for requests, of which the last is taken to complete last, and goes on."""
        if numbers:
            strand.wait(numbers[-1], end)

    def _label(self, file: int) -> str:
        return "metadata" if file == _METADATA else self.names.get(file, "")
