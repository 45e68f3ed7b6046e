"""What an algorithm may ask of files: pages that there are, whole sectors of them, and tuples that fit."""

from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from flashsim.core.errors import CapacityError, InvalidParameterError
from flashsim.core.request import SECTOR
from flashsim.execution.requests import Drop, Mode, Psync, Read, Write
from flashsim.storage.heap_file import File, ranges
from flashsim.storage.layout import Layout
from flashsim.storage.rows import Tuples


def check_read(request: Read) -> None:
    """Refuse pages behind the file's end, parts that are no whole sectors of a page, and columns that are not on them."""
    file = request.file
    _check_extents("read", request)
    ends = request.starts + request.counts
    if ends.max(initial=0) > file.pages:
        raise InvalidParameterError("read", f"pages up to {int(ends.max())} of {file.name}", f"it has {file.pages}")
    if request.parts == ():
        raise InvalidParameterError("read", f"no part of {file.name}'s pages", "there must be at least one")
    for offset, length in request.parts or ():
        if offset % SECTOR or length % SECTOR or not 0 <= offset < offset + length <= file.page_size:
            bound = f"whole sectors of {SECTOR} B of a page of {file.page_size} B"
            raise InvalidParameterError("read", f"bytes {offset} to {offset + length} of {file.name}'s pages", f"they must be {bound}")
    _check_columns(request, file)


def check_psync(request: Psync) -> None:
    """Refuse a set of no requests, of reads and writes, of anything else, or with two writes of one file, and what one may not ask for."""
    requests = request.requests
    kinds = sorted({type(each).__name__.lower() for each in requests})
    if kinds not in (["read"], ["write"]):
        bound = "a set has reads, or writes, and at least one"
        raise InvalidParameterError("psync", f"a set of {' and '.join(kinds) or 'no request'}", bound)
    files: set[File] = set()
    of_layout: dict[Layout, list[Write]] = {}
    for each in requests:
        if isinstance(each, Read):
            check_read(each)
            continue
        if each.file in files:
            raise InvalidParameterError("psync", f"two writes of {each.file.name}", "the extents of a file belong into one")
        files.add(each.file)
        _check_places(each, at_once=True)
        of_layout.setdefault(each.file.layout, []).append(each)
    for writes in of_layout.values():
        _check_tuples(writes)


def check_drop(request: Drop) -> None:
    """Refuse to drop a base relation."""
    if not request.file.temporary:
        raise InvalidParameterError("drop", request.file.name, "only temporary files are dropped")


def _check_extents(kind: str, request: Read | Write) -> None:
    if request.starts.shape != request.counts.shape:
        extents = f"{request.starts.size} first pages of {request.file.name} with {request.counts.size} counts"
        raise InvalidParameterError(kind, extents, "an extent has one of each")
    if request.starts.min(initial=0) < 0 or request.counts.min(initial=1) < 1:
        extents = f"{int(request.counts.min())} pages of {request.file.name} from {int(request.starts.min())}"
        raise InvalidParameterError(kind, extents, "extents have at least one page, and pages count from 0")


def _check_columns(request: Read, file: File) -> None:
    known = file.layout.row_format.columns
    columns = known if request.columns is None else request.columns
    for column in columns:
        if column not in known:
            raise InvalidParameterError("read", f"column {column} of {file.name}", f"it has {', '.join(known)}")
    if request.attributes or (request.parts is not None and columns):
        needed, covered = file.layout.parts(columns, request.attributes), np.zeros(file.page_size // SECTOR, np.bool_)
        for offset, length in ((0, file.page_size),) if request.parts is None else request.parts:
            covered[offset // SECTOR : (offset + length) // SECTOR] = True
        for offset, length in needed:
            if not covered[offset // SECTOR : (offset + length) // SECTOR].all():
                wanted = f"columns {', '.join(columns + request.attributes)} of parts of {file.name}'s pages"
                raise InvalidParameterError("read", wanted, f"they take bytes {offset} to {offset + length}")


def check_write(request: Write) -> None:
    """Refuse pages that are neither there nor next, and tuples that do not fit on them."""
    _check_places(request, at_once=request.mode is Mode.BATCH)
    _check_tuples([request])


def _check_places(request: Write, *, at_once: bool) -> None:
    file = request.file
    _check_extents("write", request)
    end = 0 if request.append else file.pages
    for start, count in zip(request.starts.tolist(), request.counts.tolist(), strict=True):
        if start + count > end:
            if start != end or not file.temporary:
                bound = f"it has {file.pages}" + (", and new ones follow those" if file.temporary else "")
                behind = "behind the end " if request.append else ""
                raise InvalidParameterError("write", f"pages {start} to {start + count - 1} {behind}of {file.name}", bound)
            end += count
    if at_once and len(request.counts) > 1 and not (np.diff(np.sort(ranges(request.starts, request.counts))) > 0).all():
        raise InvalidParameterError("write", f"a page of {file.name} twice at once", "which one stays is open")


def _check_tuples(writes: Sequence[Write]) -> None:
    """Refuse tuples that do not fit on their pages; of many writes to files of one layout together, as they are mostly in order."""
    for write in writes:
        _check_columns_written(write)
    layout, parts = writes[0].file.layout, [write.tuples for write in writes]
    tuples = parts[0]
    if len(parts) > 1:
        begins = [0, *accumulate(len(part) for part in parts)]
        pages = [part.pages[:-1] + begin for part, begin in zip(parts, begins, strict=False)]
        columns = {name: np.concatenate([part.columns[name] for part in parts]) for name in tuples.columns}
        tuples = Tuples(columns, np.concatenate([*pages, begins[-1:]]))
    layout.row_format.check(tuples)
    boundaries = tuples.pages
    rising = bool((boundaries[1:] >= boundaries[:-1]).all())
    before = np.concatenate([[0], np.cumsum(layout.cell_sizes(tuples))])
    fullest = int(np.diff(before[boundaries]).max(initial=0)) if rising else 0
    if rising and fullest <= layout.room:
        return
    if len(writes) > 1:
        for write in writes:
            _check_tuples([write])
    name = writes[0].file.name
    if not rising:
        raise InvalidParameterError("write", f"page boundaries up to {int(boundaries[-1])} of {name}", "they must rise")
    raise CapacityError(f"write: {fullest} B of tuples on a page of {name}, which holds {layout.room} B")


def _check_columns_written(request: Write) -> None:
    """Refuse other columns than the file has, columns that differ in length, and more or fewer pages of tuples than are written."""
    file, tuples, known = request.file, request.tuples, request.file.layout.row_format.columns
    if tuples.columns.keys() != set(known):
        raise InvalidParameterError("write", f"columns {', '.join(tuples.columns)}", f"{file.name} has {', '.join(known)}")
    lengths = {len(column) for column in tuples.columns.values()}
    if len(lengths) > 1:
        uneven = f"columns of {min(lengths)} to {max(lengths)} tuples of {file.name}"
        raise InvalidParameterError("write", uneven, "they must be equally long")
    boundaries, pages = tuples.pages, int(request.counts.sum())
    if len(boundaries) != pages + 1:
        raise InvalidParameterError("write", f"{len(boundaries) - 1} pages of tuples", f"the extents have {pages}")
    if boundaries[0] != 0 or boundaries[-1] != len(tuples):
        told = f"page boundaries from {int(boundaries[0])} to {int(boundaries[-1])}"
        raise InvalidParameterError("write", told, f"they must rise from 0 to {len(tuples)}")
