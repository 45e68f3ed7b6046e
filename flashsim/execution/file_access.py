"""What an algorithm asks of files becomes requests to devices, by where a volume has put the pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from flashsim.core.request import FLUSH, READ, REQUEST, TRIM, WRITE, Requests
from flashsim.execution.requests import Mode, Read, Write
from flashsim.storage.content import ColumnContent
from flashsim.storage.heap_file import File
from flashsim.storage.rows import Tuples
from flashsim.storage.volume import Extents, Volume

#: The label of requests that the file system makes itself.
METADATA = "metadata"


@dataclass(frozen=True, slots=True)
class Group:
    """Requests that an algorithm makes at a time: one after another, or all at once."""

    operation: int
    extents: Extents
    label: str
    at_once: bool = False

    def requests(self, start: int = 0) -> Requests:
        """As the device takes them, on which the volume begins at byte `start`."""
        extents, count = self.extents, len(self.extents.lengths)
        requests = np.zeros(count, REQUEST)
        requests["device"], requests["operation"] = extents.device, self.operation
        requests["offset"], requests["length"] = extents.offsets + start, extents.lengths
        requests["dependency"] = -1 if self.at_once else np.arange(-1, count - 1)
        return requests


class FileAccess:
    """What is asked of files, as groups of requests to devices; what pages hold is kept beside.

    Parameters
    ----------
    volume, content
        Where pages are and what they hold; base relations must have been added.
    issue
        Takes the requests, in order.
    trim
        Whether dropped temporary files are trimmed on the devices.
    """

    def __init__(self, volume: Volume, content: ColumnContent, issue: Callable[[Group], None], *, trim: bool = False) -> None:
        self.volume = volume
        self.content = content
        self.issue = issue
        self.trim = trim

    def read(self, request: Read) -> Tuples | None:
        """Issue reads; the tuples, if any are wanted, come from the content."""
        self._issue(READ, request, request.parts)
        if request.columns == ():
            return None
        tuples = self.content.read(request.file, request.starts, request.counts)
        return tuples if request.columns is None else tuples.only(request.columns)

    def write(self, request: Write) -> None:
        """Place pages that are new, issue the writes, and keep what they hold."""
        self.volume.extend(request.file, request.new_pages)
        self.content.write(request.file, request.starts, request.counts, request.tuples)
        self._issue(WRITE, request)
        self._commit(now=False)

    def flush(self, file: File) -> None:
        """Flush the device that holds the file."""
        self._commit(now=True)
        self._issue_at(FLUSH, self.volume.device(file), 0, 0, file.name)

    def drop(self, file: File) -> None:
        """Free a temporary file, and trim it if asked to."""
        self.content.drop(file)
        for device, offset, length in self.volume.drop(file):
            if self.trim:
                self._issue_at(TRIM, device, offset, length, file.name)

    def _issue(self, operation: int, request: Read | Write, parts: Sequence[tuple[int, int]] | None = None) -> None:
        extents = self.volume.locate(request.file, request.starts, request.counts)
        if parts is not None:
            extents = extents.parts(request.file.page_size, parts)
        self.issue(Group(operation, extents, request.file.name, request.mode is Mode.BATCH))

    def _issue_at(self, operation: int, device: int, offset: int, length: int, label: str) -> None:
        self.issue(Group(operation, Extents(device, np.array([offset]), np.array([length])), label))

    def _commit(self, now: bool) -> None:
        """Write what the file system itself has to write."""
        for due in self.volume.metadata_due(now):
            self.issue(Group(WRITE, due, METADATA))
