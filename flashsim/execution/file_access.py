"""Translation of an algorithm's requests to files into requests to devices, by the places of pages on a volume."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from flashsim.core.protocols import Label
from flashsim.core.request import FLUSH, READ, REQUEST, TRIM, WRITE, Integers, Requests
from flashsim.execution.requests import Blocks, Mode, NewPages, PageReads, Read, Write
from flashsim.storage.content import ColumnContent
from flashsim.storage.heap_file import File, in_order
from flashsim.storage.rows import Tuples
from flashsim.storage.volume import Extents, Volume

METADATA = "metadata"  #: The label of requests that the file system makes itself.


@dataclass(frozen=True, slots=True)
class Group:
    """Requests that an algorithm makes at a time of one device: one after another, or all at once."""

    operation: int
    extents: Extents
    label: Label
    at_once: bool = False

    def requests(self, start: int = 0) -> Requests:
        """Requests as the device takes them, on which the volume begins at byte `start`."""
        extents, count = self.extents, len(self.extents.lengths)
        requests = np.zeros(count, REQUEST)
        requests["device"], requests["operation"] = extents.device, self.operation
        requests["offset"], requests["length"] = extents.offsets + start, extents.lengths
        requests["dependency"] = -1 if self.at_once else np.arange(-1, count - 1)
        return requests


def together(groups: Sequence[Group]) -> list[Group]:
    """Groups that go at once as one a device, which has a label a request."""
    by_device: dict[int, list[Group]] = {}
    for group in groups:
        if len(group.extents.lengths):
            by_device.setdefault(group.extents.device, []).append(group)
    merged = []
    for device, own in by_device.items():
        offsets, lengths = (np.concatenate([getattr(group.extents, name) for group in own]) for name in ("offsets", "lengths"))
        merged.append(Group(groups[0].operation, Extents(device, offsets, lengths), labels(own), at_once=True))
    return merged


def labels(groups: Sequence[Group]) -> Label:
    """The label of all requests of some groups, or one a request."""
    if len(groups) == 1:
        return groups[0].label
    each: list[str] = []
    for group in groups:
        each += [group.label] * len(group.extents.lengths) if isinstance(group.label, str) else group.label
    return each


def place(request: Write, volume: Volume) -> Write:
    """Make room for pages that are new; returns the request with its pages counted from the file's first."""
    file = request.file
    if request.append:
        request = Write(file, request.starts + file.pages, request.counts, request.tuples, request.mode)
        file.tuples += len(request.tuples)
    volume.extend(file, request.new_pages)
    return request


class FileAccess(ABC):
    """Requests to files as groups of requests to devices; the content of pages is apart.

    The volume says where pages are and the content what they hold; base relations must have been added.  With `trim`, dropped temporary
    files are trimmed on the devices.
    """

    has_priced_pages = False  #: CPU work for a page takes time, so that it passes between the writes of a series.
    takes_blocks = False  #: Blocks are read, and pages written, all together.

    def __init__(self, volume: Volume, content: ColumnContent, *, trim: bool = False) -> None:
        self.volume = volume
        self.content = content
        self.trim = trim or volume.resets_zones

    def finish(self) -> None:  # noqa: B027 - most backends gather nothing
        """The algorithm has ended: have done what was gathered."""

    @abstractmethod
    def issue(self, groups: Sequence[Group]) -> None:
        """Take requests, in order; several groups, of different devices, go at once."""

    def read(self, request: Read) -> Tuples | None:
        """Issue reads; the tuples, if any are wanted, come from the content."""
        self.issue([self._group(request)])
        return self._tuples(request)

    def read_pages(self, request: PageReads) -> Tuples | None:
        """Issue reads of pages, all on one device, one after another; see `read`."""
        files, of, count = request.files, request.of, len(request.of)
        one, offsets, size = np.ones(count, np.int64), np.empty(count, np.int64), files[0].page_size
        parts, order = list[Tuples](), list[Integers]()
        for place, file in enumerate(files):
            which = np.flatnonzero(of == place)
            if len(which):
                read = Read(file, request.numbers[which], one[: len(which)], columns=request.columns)
                offsets[which] = self.volume.locate(file, read.starts, read.counts).offsets
                tuples = self._tuples(read)
                parts += [] if tuples is None else [tuples]
                order.append(which)
        names = [file.name for file in files]
        label: Label = names[of[0]] if len(order) == 1 else [names[place] for place in of.tolist()]
        self.issue([Group(READ, Extents(self.volume.device(files[0]), offsets, one * size), label)])
        if len(parts) <= 1:
            return parts[0] if parts else None
        place_of = np.empty(count, np.int64)
        place_of[np.concatenate(order)] = np.arange(count)
        return in_order(parts, place_of)

    def write(self, request: Write) -> None:
        """Place pages that are new, issue the writes, and keep what they hold."""
        self.issue([self._group(self._put(request))])
        self._commit(now=False)

    def psync(self, requests: Sequence[Read] | Sequence[Write]) -> tuple[Tuples | None, ...] | None:
        """Do all that `read` or `write` do, but issue all requests at once."""
        groups = together([self._group(self._put(request) if isinstance(request, Write) else request) for request in requests])
        if groups:
            self.issue(groups)
        if isinstance(requests[0], Write):
            self._commit(now=False)
            return None
        return tuple(self._tuples(request) for request in requests if isinstance(request, Read))

    def new_pages(self, request: NewPages, *, at_once: bool) -> None:
        """Issue writes all at once, as `psync` does, or one after another, without making each of them where pages lie in a row."""
        files, (device, *others) = request.files, {self.volume.device(file) for file in request.files}
        if others or not self.volume.lays_in_a_row(device):
            if at_once:
                self.psync(request.requests)
            else:
                for write in request.requests:
                    self.write(replace(write, mode=Mode.SERIAL))
            return
        of, firsts, lengths = request.extents
        names, size = [file.name for file in files], files[0].page_size
        before, offsets = self.volume.extend_each(files, request.pages)
        self.content.write_each(files, before, request.pages, request.counts, request.tuples)
        extents = Extents(device, offsets[of] + firsts * size, lengths * size)
        label: Label = names[0] if len(names) == 1 else [names[number] for number in of.tolist()]
        self.issue([Group(WRITE, extents, label, at_once)])
        self._commit(now=False)

    def blocks(self, blocks: Blocks) -> None:
        """Issue reads of blocks and writes of new pages, one after another, and let the work between them be done."""
        raise NotImplementedError

    def flush(self, file: File) -> None:
        self._commit(now=True)
        self._issue_at(FLUSH, self.volume.device(file), 0, 0, file.name)

    def drop(self, file: File) -> None:
        self.content.drop(file)
        for device, offset, length in self.volume.drop(file):
            if self.trim:
                self._issue_at(TRIM, device, offset, length, file.name)

    def _group(self, request: Read | Write) -> Group:
        extents, operation = self.volume.locate(request.file, request.starts, request.counts), WRITE
        if isinstance(request, Read):
            operation = READ
            if request.parts is not None:
                extents = extents.parts(request.file.page_size, request.parts)
        return Group(operation, extents, request.file.name, request.mode is Mode.BATCH)

    def _tuples(self, request: Read) -> Tuples | None:
        if request.columns == ():
            return None
        tuples = self.content.read(request.file, request.starts, request.counts)
        return tuples if request.columns is None else tuples.only(request.columns)

    def _put(self, request: Write) -> Write:
        request = place(request, self.volume)
        self.content.write(request.file, request.starts, request.counts, request.tuples)
        return request

    def _issue_at(self, operation: int, device: int, offset: int, length: int, label: str) -> None:
        self.issue([Group(operation, Extents(device, np.array([offset]), np.array([length])), label)])

    def _commit(self, now: bool) -> None:
        for extents in self.volume.metadata_due(now):
            self.issue([Group(WRITE, extents, METADATA)])
