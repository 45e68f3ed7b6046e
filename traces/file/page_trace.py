"""References to pages in any trace that can be read: of pages (`traces.page_format`), or of requests to devices, whose pages they touch."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from flashsim.core import errors, units
from flashsim.core.protocols import Progress
from flashsim.core.request import READ, WRITE, Integers
from flashsim.core.transactions import ReferenceBatches, References
from traces.file.excerpt import Excerpt, Source, recognised
from traces.file.recording import complete_file
from traces.file.schema import column, unknown_columns
from traces.format.base import FORMATS, candidates, doubts, unknown_file
from traces.page_format.base import PAGE_FORMATS, load_page_format
from traces.references.base import expanded, pieces

#: Pages of a database, and what requests to devices are split into where nobody says.
PAGE_SIZE = 4 * units.KIB
_LEAST_PAGE, _LARGEST_PAGE = 512, 64 * units.MIB
#: Pages of one device; they are numbered one device after the other, without overlap up to an exbibyte each of 4 KiB.
_DEVICE_SHIFT = 48


@dataclass(frozen=True)
class PageTrace:
    """A trace file as references to pages."""

    #: The file, with its format, and which requests are wanted of a trace of requests.
    excerpt: Excerpt
    #: Bytes of the pages that requests are split into; a trace of pages has pages of its own.
    page_size: int = PAGE_SIZE
    #: The format of a trace of pages; None of a trace of requests.
    page_format: str | None = None

    def __post_init__(self) -> None:
        if self.page_format and not self.excerpt.whole:
            raise errors.InvalidParameterError("excerpt", self.name, "a trace of pages has neither devices nor times to choose by")
        if not _LEAST_PAGE <= self.page_size <= _LARGEST_PAGE:
            bound = f"it must be in [{units.format_size(_LEAST_PAGE)}, {units.format_size(_LARGEST_PAGE)}]"
            raise errors.InvalidParameterError("page size", units.format_size(self.page_size), bound)

    @property
    def name(self) -> str:
        return self.excerpt.name

    def batches(self) -> ReferenceBatches:
        """All references, from the first; each call begins anew."""
        empty = True
        for batch in self._batches():
            empty &= len(batch.pages) == 0
            yield from pieces(batch)
        if empty:
            raise errors.DamagedFileError(f"trace: {self.excerpt.path} refers to no page")

    def _batches(self) -> ReferenceBatches:
        path = Path(self.excerpt.path)
        if self.page_format is None:
            yield from _of_requests(self.excerpt, self.page_size)
            return
        try:
            yield from load_page_format(self.page_format).references(path)
        except OSError as problem:
            raise errors.DamagedFileError(f"trace: {path} cannot be read: {problem}".split("\n", 1)[0]) from problem


def _of_requests(excerpt: Excerpt, page_size: int) -> ReferenceBatches:
    for batch in excerpt.batches():
        device, operation, offset, length = (column(batch, name) for name in ("device", "operation", "offset", "length"))
        touching = (operation == READ) | (operation == WRITE)
        begin, counts = pages_touched(device.astype(np.int64), offset, np.where(touching, length, 0), page_size)
        known = "operation" not in unknown_columns(batch.schema)
        for pages, requests in expanded(begin, counts):
            yield References(pages, operation[requests] == WRITE if known else None)


def pages_touched(device: Integers, offset: Integers, length: Integers, page_size: int) -> tuple[Integers, Integers]:
    """The first page of each request, unlike those of other devices, and how many it touches, in whole or in part, shape (n,) each."""
    first = offset // page_size
    return (device << _DEVICE_SHIFT) + first, np.where(length > 0, -(-(offset + length) // page_size) - first, 0)


def page_trace(source: Source, page_size: int = PAGE_SIZE) -> PageTrace:
    """A trace of which it is known how to read it: of the format that is named, or recognised by its content.

    A name that formats of pages and of requests share (csv, oracle-general, parquet) means the first where the content is of that kind.
    """
    excerpt = source if isinstance(source, Excerpt) else Excerpt(source)
    path, name = Path(excerpt.path), excerpt.format or ""
    if not path.is_file():
        raise errors.MissingFileError(f"trace: {'it is no file' if path.exists() else 'no file at'} {path}")
    own, of_requests = PAGE_FORMATS.names(), FORMATS.names()
    try:
        fitting = [each for each in own if name in ("", each) and PAGE_FORMATS.load(each).recognise(path)]
    except OSError as problem:
        raise errors.MissingFileError(f"trace: cannot read {path}: {problem.strerror or problem}") from problem
    fitting = [each for each in fitting if not PAGE_FORMATS.load(each).GENERIC] or fitting
    if not name and (why := doubts(path, fitting, PAGE_FORMATS.load)):
        raise errors.DamagedFileError(f"trace: {path} has no format that can be told: {why}")
    kind, _, columns = name.partition(":")
    if kind == "csv" and re.match(r"\s*(page|write)\s*=", columns):
        load_page_format(name)
        return PageTrace(excerpt, page_size, name)
    if not fitting and (PAGE_FORMATS.is_defined_in(Path(kind)) if kind.endswith(".py") else kind in {*own} - {*of_requests}):
        fitting = [kind]
    if fitting:
        return PageTrace(excerpt, page_size, fitting[0])
    if kind and not kind.endswith(".py") and kind not in of_requests:
        raise errors.UnknownNameError("trace format", kind, {*own, *of_requests})
    if not kind and not candidates(path):
        raise unknown_file(path, sorted({*own, *of_requests}))
    return PageTrace(recognised(excerpt), page_size)


def keep(batches: ReferenceBatches, path: str | Path, to: str = "parquet", progress: Progress | None = None) -> int:
    """Write references as a trace of pages, which appears under its name only once it is complete; return how many they are."""
    count = 0

    def counting() -> ReferenceBatches:
        nonlocal count
        for batch in batches:
            yield batch
            count += len(batch.pages)
            if progress:
                progress(count, count)

    with complete_file(Path(path)) as partial:
        PAGE_FORMATS.load(to).write(counting(), partial)
    return count
