"""Two joins in a row: R with S, and what joins with T, by FlashJoin, with columns of the result materialised late or early.

Late, the first join takes keys and row ids, and of S the column that meets T; the second takes its join index, and columns of the result
are fetched at the end, each page once.  Early, columns are read by the scans and go along through both joins.

Source: Tsirogiannis, Harizopoulos, Shah, Wiener and Graefe, "Query Processing Techniques for Solid State Drives" (SIGMOD 2009), section 4.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from algorithms.files import Output, cell_size, drop, gather
from algorithms.joins.base import JoinParameters, plan
from algorithms.joins.flash_join import FlashJoinOptions
from algorithms.late_fetch.columns import KeyColumn, Scan, Scanned, Selection, key_column, scan_columns
from algorithms.late_fetch.fetch import LateFetch, Side, check_columns_apart
from flashsim.core.errors import InvalidParameterError
from flashsim.core.request import Integers
from flashsim.execution.requests import Algorithm, Answer, Emit, Read, Request
from flashsim.storage.heap_file import File, HeapFile, ranges
from flashsim.storage.layout import Layout
from flashsim.storage.relation import Relation
from flashsim.storage.rows import FixedRows, Tuples, key_tuples

#: The parts of memory that the first join's result has, and the second one's join index.
_SHARE = 8
#: Pages of memory at least: three for a join, and one for each of these.
_LEAST = 5


@dataclass(frozen=True)
class Onward:
    """Join of T with the rows of S that joined."""

    #: S by the column that meets T, coded with T's key: ``load_pair(s, t, column, key)`` gives both.
    s: Relation
    #: T's file.
    t: HeapFile


def pipeline(
    r: HeapFile,
    s: HeapFile,
    onward: Onward,
    parameters: JoinParameters,
    *,
    columns: Mapping[str, tuple[str, ...]] | None = None,
    where: Mapping[str, Selection] | None = None,
    late: bool = True,
) -> Algorithm:
    """Join R with S, and what joins with T; row ids of R, S and T are emitted.

    Parameters
    ----------
    parameters
        Their options are FlashJoin's: `kernel` joins keys; `columns` is not looked at.
    columns
        Those that the result wants of ``"R"``, ``"S"`` and ``"T"``, all of a relation that is not named.
    where
        Which rows of these take part; all without it.
    late
        Columns are fetched after both joins; else the scans read them.

    Raises
    ------
    InvalidParameterError
        Pages that do not keep columns apart, or too little memory.
    UnknownNameError, CapacityError
        A column is wanted that is not stored, or a page does not hold what goes along with a row.
    """
    sides = _sides({"R": r, "S": s, "T": onward.t}, columns or {}, parameters.memory)
    scans = {label: _scan(side, onward, (where or {}).get(label), parameters, late=late) for label, side in sides.items()}
    share, page_io = max(1, parameters.memory // _SHARE), parameters.page_io
    kernel = parameters.options_of(FlashJoinOptions).kernel
    fetch = LateFetch("pipeline", [sides[label] for label in "RST"], parameters.memory, share, page_io=page_io)
    pairs = FixedRows("pairs that joined", {"key": 8, "row": 8}, 0 if late else sides["R"].width + sides["S"].width)
    between = _Between(scans["R"], scans["S"].name, pairs, share, page_io=page_io)

    def take_first(r_rows: Integers, s_rows: Integers) -> Algorithm:
        yield from between.append(onward.s.keys(s_rows), r_rows * max(1, s.tuples) + s_rows)  # both row ids as one number

    def take_second(pairs: Integers, t_rows: Integers) -> Algorithm:
        r_rows, s_rows = np.divmod(pairs, max(1, s.tuples))
        if late:
            yield from fetch.append(r_rows, s_rows, t_rows)
        else:
            yield Emit(r_rows, s_rows, (t_rows,))

    def run() -> Algorithm:
        first, second = (replace(parameters, memory=parameters.memory - shares * share, options=None) for shares in (1, 2 if late else 1))
        yield from scan_columns(plan(kernel, scans["R"], scans["S"], first), take_first, "first ")
        pairs = yield from between.finish()
        yield from scan_columns(plan(kernel, pairs, scans["T"], second), take_second, "second ")
        if not isinstance(pairs, Scanned):
            yield from drop(pairs)
        if late:
            yield from fetch.finish(sort_again=True)

    return run()


def _sides(files: Mapping[str, HeapFile], columns: Mapping[str, tuple[str, ...]], memory: int) -> dict[str, Side]:
    if memory < _LEAST:
        raise InvalidParameterError("memory", f"{memory} pages", f"two joins in a row need at least {_LEAST}")
    for file in files.values():
        check_columns_apart(file, "columns are read alone")
    return {label: Side(label, file, columns.get(label)) for label, file in files.items()}


def _scan(side: Side, onward: Onward, selection: Selection | None, parameters: JoinParameters, *, late: bool) -> KeyColumn:
    carried = () if late else side.columns
    if side.label == "S":
        carried = tuple(dict.fromkeys((*carried, onward.s.key)))
    width = sum(side.size_of(name) for name in carried)
    return key_column(side.file, page_io=parameters.page_io, selection=selection, carried=carried, width=width)


class _Between:
    """Takes what the first join finds: it stays in memory as far as that goes, and is written otherwise."""

    def __init__(self, r: KeyColumn, s_name: str, rows: FixedRows, room: int, *, page_io: bool) -> None:
        layout = Layout(rows, r.page_size, r.layout.page_format)
        self._file, self._room, self._a_page = File(f"pipeline/{r.name}+{s_name}", layout), room, layout.room // cell_size(layout)
        self._output = Output([self._file], room, page_io=page_io)
        self._buffer: list[Tuples] = []

    def append(self, keys: Integers, rows: Integers) -> Algorithm:
        self._buffer.append(key_tuples(keys, rows).joinable())
        if self._file.pages or sum(map(len, self._buffer)) > self._room * self._a_page:
            for part in self._buffer:
                yield from self._output.append(part)
            self._buffer = []

    def finish(self) -> Generator[Request, Answer, File]:
        if self._file.pages:
            yield from self._output.finish()
            return self._file
        return _Held(self._file.name, self._file.layout, gather(self._buffer), self._a_page)


class _Held(Scanned):
    """A file of digests that is in memory."""

    def __init__(self, name: str, layout: Layout, content: Tuples, a_page: int) -> None:
        super().__init__(name, layout, pages=-(-len(content) // a_page), tuples=len(content))
        self._content, self._a_page = content, a_page

    def scan(self, request: Read) -> Scan:
        yield from ()
        numbers = ranges(request.starts * self._a_page, request.counts * self._a_page)
        return self._content.select(numbers[numbers < self.tuples])
