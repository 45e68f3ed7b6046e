"""References to pages in any trace that can be read: of pages (`traces.page_format`), or of requests to devices, whose pages they touch."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from flashsim.core.errors import DamagedFileError, FlashsimError, InvalidParameterError, MissingFileError, UnknownNameError
from flashsim.core.protocols import Progress
from flashsim.core.request import READ, WRITE, Integers
from flashsim.core.transactions import BATCH, ReferenceBatches, References
from flashsim.core.units import KIB, MIB, format_size
from traces.file.excerpt import Excerpt, Source, recognised
from traces.file.schema import unknown_columns
from traces.format.base import FORMATS, candidates
from traces.page_format.base import PAGE_FORMATS, load_page_format
from traces.references.base import expanded

#: Pages of a database, and what requests to devices are split into where nobody says.
PAGE_SIZE = 4 * KIB
_LEAST_PAGE, _LARGEST_PAGE = 512, 64 * MIB
#: Pages of one device; they are numbered one device after the other, without overlap up to an exbibyte each of 4 KiB.
_DEVICE_SHIFT = 48


@dataclass(frozen=True)
class PageTrace:
    """A trace file as references to pages.

    Parameters
    ----------
    excerpt
        The file, with its format, and which requests are wanted of a trace of requests.
    page_size
        Bytes of the pages that requests are split into; a trace of pages has pages of its own.
    page_format
        The format of a trace of pages; None of a trace of requests.
    """

    excerpt: Excerpt
    page_size: int = PAGE_SIZE
    page_format: str | None = None

    def __post_init__(self) -> None:
        if self.page_format and not self.excerpt.whole:
            raise InvalidParameterError("excerpt", self.name, "a trace of pages has neither devices nor times to choose by")
        if not _LEAST_PAGE <= self.page_size <= _LARGEST_PAGE:
            bound = f"it must be in [{format_size(_LEAST_PAGE)}, {format_size(_LARGEST_PAGE)}]"
            raise InvalidParameterError("page size", format_size(self.page_size), bound)

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
            raise DamagedFileError(f"trace: {self.excerpt.path} refers to no page")

    def _batches(self) -> ReferenceBatches:
        path = Path(self.excerpt.path)
        if self.page_format is None:
            yield from _of_requests(self.excerpt, self.page_size)
            return
        try:
            yield from load_page_format(self.page_format).references(path)
        except OSError as problem:
            raise DamagedFileError(f"trace: {path} cannot be read: {problem}".split("\n", 1)[0]) from problem


def _of_requests(excerpt: Excerpt, page_size: int) -> ReferenceBatches:
    for batch in excerpt.batches():
        device, operation, offset, length = (batch.column(name).to_numpy() for name in ("device", "operation", "offset", "length"))
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
    path, name = Path(excerpt.path), excerpt.format
    if not path.is_file():
        raise MissingFileError(f"trace: {'it is no file' if path.exists() else 'no file at'} {path}")
    try:
        found = [each for each in PAGE_FORMATS.names() if name in (None, each) and PAGE_FORMATS.load(each).recognise(path)]
    except OSError as problem:
        raise MissingFileError(f"trace: cannot read {path}: {problem.strerror or problem}") from problem
    found = [each for each in found if not PAGE_FORMATS.load(each).GENERIC] or found
    if len(found) > 1:
        raise DamagedFileError(f"trace: {path} could be {' or '.join(found)}; name it with --format")
    kind, _, columns = (name or "").partition(":")
    if kind == "csv" and re.match(r"\s*(page|write)\s*=", columns):
        load_page_format(f"{name}")
        found = [f"{name}"]
    of_requests = FORMATS.names()
    own = kind.endswith(".py")
    if not found and (PAGE_FORMATS.is_defined_in(Path(kind)) if own else kind in set(PAGE_FORMATS.names()) - set(of_requests)):
        found = [kind]
    if not found and kind and not own and kind not in of_requests:
        raise UnknownNameError("trace format", kind, {*PAGE_FORMATS.names(), *of_requests})
    if not found and not kind and not candidates(path):
        known = f"known are {', '.join(sorted({*PAGE_FORMATS.names(), *of_requests}))}; which column of a table is what, --columns says"
        raise DamagedFileError(f"trace: {path} has no format that can be told: {known}")
    return PageTrace(excerpt if found else recognised(excerpt), page_size, found[0] if found else None)


def pieces(batch: References) -> Iterator[References]:
    for begin in range(0, len(batch.pages), BATCH):
        part = slice(begin, begin + BATCH)
        yield References(batch.pages[part], None if batch.writes is None else batch.writes[part])


def keep(batches: ReferenceBatches, path: str | Path, to: str = "parquet", progress: Progress | None = None) -> int:
    """Write references as a trace of pages, which appears under its name only once it is complete; return how many they are."""
    member, target, written = PAGE_FORMATS.load(to), Path(path), 0

    def counted() -> ReferenceBatches:
        nonlocal written
        for batch in batches:
            yield batch
            written += len(batch.pages)
            if progress:
                progress(written, written)

    partial = target.with_name(f".{target.name}.{os.getpid()}.keeping")
    try:
        member.write(counted(), partial)
        os.replace(partial, target)
    except OSError as problem:
        raise FlashsimError(f"trace: cannot write {target}: {problem.strerror or problem}") from problem
    finally:
        partial.unlink(missing_ok=True)
    return written
