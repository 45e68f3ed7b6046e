"""References to pages in any trace that can be read: of pages (`traces.page_format`), or of requests to devices, whose pages they touch."""

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from flashsim.core import errors, units
from flashsim.core.protocols import Progress
from flashsim.core.request import READ, WRITE
from flashsim.core.transactions import ReferenceBatches, References
from traces.file.excerpt import Excerpt, Source, with_format
from traces.file.recording import complete_file
from traces.file.schema import column, unknown_columns
from traces.format.base import FORMATS, candidates, doubts, unknown_file
from traces.page_format.base import PAGE_FORMATS, load_page_format
from traces.references.base import expand, pieces

#: Pages of a database, and what requests to devices are split into where nobody says.
PAGE_SIZE = 4 * units.KIB
_LEAST_PAGE, _LARGEST_PAGE = 512, 64 * units.MIB
#: No device takes larger requests; of those that files claim, so much counts as touched.
MOST_TOUCHED = 4 * units.GIB
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
            for batch in self.excerpt.batches():
                yield from references_of(batch, self.page_size)
            return
        try:
            yield from load_page_format(self.page_format).references(path)
        except OSError as problem:
            raise errors.DamagedFileError(f"trace: {path} cannot be read: {problem}".split("\n", 1)[0]) from problem


def references_of(batch: pa.RecordBatch, page_size: int = PAGE_SIZE) -> ReferenceBatches:
    """References to the pages that requests read or write, request by request."""
    device, operation, offset, length = (column(batch, name) for name in ("device", "operation", "offset", "length"))
    first, end = offset // page_size, -(-(offset + np.minimum(length, MOST_TOUCHED)) // page_size)
    touching = (length > 0) & ((operation == READ) | (operation == WRITE))
    known = "operation" not in unknown_columns(batch.schema)
    for pages, requests in expand((device.astype(np.int64) << _DEVICE_SHIFT) + first, np.where(touching, end - first, 0)):
        yield References(pages, operation[requests] == WRITE if known else None)


def page_trace(source: Source, page_size: int = PAGE_SIZE) -> PageTrace:
    """A trace of which it is known how to read it: of the format that is named, or recognised by its content.

    A name that formats of pages and of requests share (csv, oracle-general, parquet) means the first where the content is of that kind.
    """
    excerpt = source if isinstance(source, Excerpt) else Excerpt(source)
    path, name = Path(excerpt.path), excerpt.format or ""
    own, of_requests = PAGE_FORMATS.names(), FORMATS.names()
    fitting = candidates(path, [each for each in own if name in ("", each)], PAGE_FORMATS.load)
    if not name and (why := doubts(path, fitting, PAGE_FORMATS.load)):
        raise errors.DamagedFileError(f"trace: {path} has no recognizable format: " + why)
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
    return PageTrace(with_format(excerpt), page_size)


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
