"""Tables of a PostgreSQL cluster that is shut down, read from their relation files.

``pg:BASE/16384/16385:orders.sql`` names the table's file (``SELECT pg_relation_filepath('orders')``) and statements that create the table;
without them, ``16385.sql`` beside the file is taken.  Rows are those that are visible when no transaction runs, in the order in which they
lie, as a sequential scan of the server has them.
Source: src/include/storage/bufpage.h and src/backend/access/heap/heapam_visibility.c of PostgreSQL 15.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from flashsim.core.errors import DamagedFileError, FlashsimError, MissingFileError, SchemaError, UnknownNameError
from flashsim.core.input_files import read_text
from flashsim.core.request import Integers
from flashsim.core.units import format_size
from flashsim.storage.heap_file import heap_file
from flashsim.storage.page import _postgresql as pg
from flashsim.storage.page._postgresql_values import decimal_type, values_at
from flashsim.storage.record import Bytes
from flashsim.storage.source._postgresql_cluster import Cluster, cluster_of
from flashsim.storage.source._postgresql_schema import ColumnDefinition, TableDefinition, column_type, parse_table
from flashsim.storage.source.base import TableRecords, check_memory, load_pair, reading

SUFFIXES = ()
FORM = "FILE:DEFINITION.sql"

Flags = npt.NDArray[np.bool_]

_SIZES = tuple(1 << power for power in range(10, 16))
#: Places of values that are kept at once: as many pages are read at once as can have so many.
_PLACES_AT_ONCE, _MOST_PAGES = 1 << 22, 512
#: Bytes of values in memory over those on disk, at most: the end of a text takes 8 bytes, a number of a few digits 16.
_COPIES = 2
_TEXT = re.compile(r"(?P<file>.*?)(?::(?:(?P<statement>\s*CREATE\s.*)|(?P<path>.+?\.sql)(?::(?P<table>.+))?))?", re.IGNORECASE | re.DOTALL)
_OTHER_FORK = re.compile(r"(\d+)(_(?:fsm|vm|init)(?:\.\d+)?|\.\d+)")
_ROWS_A_PAGE = (pg.PAGE_SIZE - pg.PAGE_HEADER) // (pg.TUPLE_HEADER + 1 + pg.LINE_POINTER)


def open_records(text: str) -> TableRecords:
    """The rows of a table, in the order in which they lie.

    The text is ``FILE``, ``FILE:DEFINITION.sql``, ``FILE:DEFINITION.sql:TABLE`` or ``FILE:CREATE TABLE ...``.
    """
    path = file_of(text)
    if fork := _OTHER_FORK.fullmatch(path.name):
        raise SchemaError(f"{path}: it is a part of relation {fork[1]}; name that file instead")
    with reading(path):
        cluster = cluster_of(path)
        definition = _definition(path, *_split(text).group("statement", "path", "table"))
        return TableRecords(definition.name, read_heap(path, definition.columns, cluster))


def file_of(text: str) -> Path:
    return Path(_split(text)["file"])


def _split(text: str) -> re.Match[str]:
    match = _TEXT.fullmatch(text)
    assert match, "any text is at least the path of a file"
    return match


def _definition(path: Path, statement: str | None, file_name: str | None, table: str | None) -> TableDefinition:
    """The table that statements define: those of the text, of the file of this name, or of one beside the table's."""
    where = Path(file_name) if file_name else path.with_name(f"{path.name}.sql")
    if statement is None:
        if not file_name and not where.is_file():
            raise SchemaError(f"{path}: its columns are unknown; name a file with the table's CREATE TABLE, as in pg:{path}:orders.sql")
        with reading(where):
            text = read_text(where)
    else:
        text, where = statement, path
    try:
        return parse_table(text, table or "")
    except IndexError:
        raise SchemaError(f"{where}: a statement is incomplete") from None
    except LookupError as names:
        if names.args and table:
            raise UnknownNameError(f"table in {where}", table, names.args) from None
        why = f"it creates {', '.join(names.args)}; name one, as in {where}:{names.args[0]}" if names.args else "it has no CREATE TABLE"
        raise SchemaError(f"{where}: {why}") from None
    except ValueError as problem:
        raise SchemaError(f"{where}: {problem}") from None


def example(folder: Path) -> str:
    columns = {"k": [5, 300, None, -7, 5], "text": ["a", None, "ccc" * 50, "", "e"], "real": [1.0, 2.5, None, -0.0, 1e300]}
    records = TableRecords("t", pa.table(columns))
    file = heap_file(load_pair(records, records, "k", "k")[0], pg.PAGE_SIZE, page_format="postgresql")
    path = folder / "16385"
    path.write_bytes(file.layout.encode(file.run(0, file.pages)).tobytes())
    path.with_name("16385.sql").write_text("CREATE TABLE t (k bigint, text text, real double precision);\n")
    return f"pg:{path}"


def read_heap(path: Path, columns: list[ColumnDefinition], cluster: Cluster) -> pa.Table:
    """The rows of a relation file that are visible when no transaction runs."""
    reader = _RowReader(path, columns, cluster)
    live = [column for column in columns if not column.dropped]
    chunks: list[list[pa.Array]] = [[] for _ in live]
    for first, pages in _batches(path, len(columns)):
        data = np.concatenate([pages.reshape(-1), np.zeros(pg.WIDEST_ALIGNMENT, np.uint8)])
        at, size = reader.places(first, pages, data)
        for values, place in zip(chunks, (index for index, column in enumerate(columns) if not column.dropped), strict=True):
            try:
                values.append(decode(columns[place], data, at[place], size[place]))
            except FlashsimError as problem:
                raise type(problem)(f"{path}: column {columns[place].name}: {problem}") from None
    if cluster.checksums is None and reader.summed >= 0 and reader.unsummed >= 0:
        raise reader.damage_error(reader.unsummed, f"it has no checksum, but page {reader.summed} has")
    return pa.table({column.name: joined_chunks(chunks.pop(0)) for column in live})  # one by one: two of no other are in memory


def _batches(path: Path, columns: int) -> Iterator[tuple[int, Bytes]]:
    """Pages of all segments, and the number of the first; one empty batch if there are none."""
    most = max(1, min(_MOST_PAGES, _PLACES_AT_ONCE // (_ROWS_A_PAGE * columns)))
    first, empty = 0, True
    segments = _segments(path)
    size = sum(pages for _, pages in segments) * pg.PAGE_SIZE
    check_memory(str(path), _COPIES * size, f"{format_size(size)} take up to", " to read")
    for segment, pages in segments:
        with reading(segment), segment.open("rb") as file:
            for start in range(0, pages, most):
                count = min(most, pages - start)
                data = np.fromfile(file, np.uint8, count * pg.PAGE_SIZE)
                if len(data) < count * pg.PAGE_SIZE:
                    raise DamagedFileError(f"{segment}: it became shorter while it was read")
                yield first + start, data.reshape(-1, pg.PAGE_SIZE)
                empty = False
        first += pages
    if empty:
        yield 0, np.zeros((0, pg.PAGE_SIZE), np.uint8)


def _segments(path: Path) -> list[tuple[Path, int]]:
    """The files of a relation and their pages: all are as long as the first, but for the last; empty ones may follow."""
    with reading(path):
        numbers = sorted(int(each.suffix[1:]) for each in path.parent.glob(f"{escape(path.name)}.*") if each.suffix[1:].isdigit())
        with path.open("rb") as opened:
            _check_size(path, opened.read(pg.PAGE_HEADER))
        files = [path, *(path.with_name(f"{path.name}.{number}") for number in numbers)]
        sizes = [each.stat().st_size for each in files]
    for file, size in zip(files, sizes, strict=True):
        if size % pg.PAGE_SIZE:
            raise DamagedFileError(f"{file}: it is truncated: {size:,} B are not a whole number of pages of {pg.PAGE_SIZE} B")
    missing = next((index for index, number in enumerate(numbers, 1) if number != index), None)
    if missing is not None:
        raise MissingFileError(f"{path}.{missing}: this segment is missing, but later ones exist")
    last = max((index for index, size in enumerate(sizes) if size), default=0)
    for file, size in zip(files[: last + 1], sizes, strict=False):
        if size > sizes[0] or (size < sizes[0] and file is not files[last]):
            raise DamagedFileError(f"{file}: a segment of {size:,} B, but the first is of {sizes[0]:,} B and only the last is shorter")
    return [(file, size // pg.PAGE_SIZE) for file, size in zip(files, sizes, strict=True)]


def _check_size(path: Path, head: bytes) -> None:
    """Refuse a first page of another size, byte order or layout, or that is none."""
    if len(head) < pg.PAGE_HEADER or not any(head):
        return
    at = pg.PAGE.fields["size_and_layout"][1] if pg.PAGE.fields else 0
    mark, turned = (int.from_bytes(head[at : at + 2], order) for order in ("little", "big"))
    if mark & 0xFF00 in _SIZES and mark & 0xFF == pg.LAYOUT:
        if mark & 0xFF00 != pg.PAGE_SIZE:
            raise DamagedFileError(f"{path}: its pages are of {mark & 0xFF00} B, but only those of {pg.PAGE_SIZE} B are read")
    elif turned & 0xFF00 in _SIZES and turned & 0xFF == pg.LAYOUT:
        raise DamagedFileError(f"{path}: its numbers are big-endian, as on another kind of machine; only little-endian ones are read")
    elif mark & 0xFF00 in _SIZES and mark & 0xFF < pg.LAYOUT:
        raise DamagedFileError(f"{path}: its pages are of layout {mark & 0xFF}, before PostgreSQL 8.3; only layout {pg.LAYOUT} is read")
    else:
        raise DamagedFileError(f"{path}: it is not a PostgreSQL relation file, or it is damaged: its first page has no page header")


@dataclass
class _RowReader:
    """Finds the values of visible rows."""

    path: Path
    columns: list[ColumnDefinition]
    cluster: Cluster
    #: A page that has a checksum, and one that has none; either may be -1.
    summed: int = -1
    unsummed: int = -1

    def damage_error(self, page: int, what: str) -> DamagedFileError:
        return DamagedFileError(f"{self.path}: page {page} is damaged: {what}")

    def places(self, first: int, pages: Bytes, data: Bytes) -> tuple[Integers, Integers]:
        """Places of values in pages, and their bytes, shape (columns, rows) each."""
        heads = pages[:, : pg.PAGE_HEADER].copy().view(pg.PAGE)[:, 0]
        used: Flags = heads["upper"] > 0
        used[~used] = pages[~used].any(axis=1)  # a page that was never written is zero
        self._check_sums(first, pages, heads, used)
        self._check_pages(first, heads, used)
        items, starts, lengths = self._tuples(first, pages, heads, used)
        visible = self._visible(first, data, starts)
        items, starts, lengths = items[visible], starts[visible], lengths[visible]
        self._check_headers(first, data, items, starts, lengths)
        at, size = (np.empty((len(self.columns), len(starts)), np.int64) for _ in range(2))
        stored = np.array([pg.TYPES[column.kind][1:] for column in self.columns], np.int64)
        problem, row, column = pg.locate_values(data, starts, lengths, stored, at, size)
        if problem:
            self._refuse(problem, first + int(starts[row]) // pg.PAGE_SIZE, int(items[row]), column)
        return at, size

    def _check_sums(self, first: int, pages: Bytes, heads: npt.NDArray[np.void], used: Flags) -> None:
        if self.cluster.checksums is False:
            return
        have = heads["checksum"] != 0
        for mask, name in ((used & have, "summed"), (used & ~have, "unsummed")):
            if mask.any() and getattr(self, name) < 0:
                setattr(self, name, first + int(mask.argmax()))
        if self.summed >= 0 or self.cluster.checksums:
            wrong = used & (pg.checksums(pages, first) != heads["checksum"])
            if wrong.any():
                raise self.damage_error(first + int(wrong.argmax()), "its checksum is wrong")

    def _check_pages(self, first: int, heads: npt.NDArray[np.void], used: Flags) -> None:
        lower, upper, special = (heads[name].astype(np.int64) for name in ("lower", "upper", "special"))
        right = (heads["size_and_layout"] == pg.PAGE_SIZE | pg.LAYOUT) & (heads["flags"] <= pg.PAGE_FLAGS)
        right &= (lower >= pg.PAGE_HEADER) & (lower <= upper) & (upper <= special) & (special <= pg.PAGE_SIZE)
        wrong = used & ~(right & ((lower - pg.PAGE_HEADER) % pg.LINE_POINTER == 0))
        if wrong.any():
            raise self.damage_error(first + int(wrong.argmax()), "its header is not a page header")
        if (used & (special < pg.PAGE_SIZE)).any():
            raise SchemaError(f"{self.path}: it is an index or a sequence, but only tables are read")

    def _tuples(self, first: int, pages: Bytes, heads: npt.NDArray[np.void], used: Flags) -> tuple[Integers, Integers, Integers]:
        counts = np.where(used, (heads["lower"].astype(np.int64) - pg.PAGE_HEADER) // pg.LINE_POINTER, 0)
        ends = np.cumsum(counts)
        page = np.repeat(np.arange(len(pages)), counts)
        item = np.arange(len(page)) - np.repeat(ends - counts, counts)
        words = pages.reshape(-1).view("<u4")[(page * pg.PAGE_SIZE + pg.PAGE_HEADER) // pg.LINE_POINTER + item].astype(np.int64)
        offset, state, length = words & 0x7FFF, (words >> 15) & 3, words >> 17
        upper, special = (heads[name].astype(np.int64)[page] for name in ("upper", "special"))
        normal = state == pg.NORMAL
        inside = (offset >= upper) & (offset % pg.WIDEST_ALIGNMENT == 0) & (length > pg.TUPLE_HEADER) & (offset + length <= special)
        wrong = (
            (normal & ~inside)
            | ((state != pg.NORMAL) & (length > 0) & (state != pg.DEAD))
            | ((state == pg.REDIRECT) & (offset > counts[page]))
        )
        if wrong.any():
            raise self.damage_error(first + int(page[wrong.argmax()]), f"its item {int(item[wrong.argmax()]) + 1} points nowhere")
        starts, lengths = (page * pg.PAGE_SIZE + offset)[normal], length[normal]
        order = np.argsort(starts)
        over = (starts[order] + lengths[order])[:-1] > starts[order][1:]
        if over.any():
            raise self.damage_error(first + int(starts[order][:-1][over][0]) // pg.PAGE_SIZE, "two of its rows overlap")
        return item[normal] + 1, starts, lengths

    def _visible(self, first: int, data: Bytes, starts: Integers) -> Flags:
        flags = data.view("<u2")[(starts + pg.FLAGS) // 2].astype(np.int64)
        inserter, deleter = (data.view("<u4")[(starts + place) // 4].astype(np.int64) for place in (pg.INSERTER, pg.DELETER))
        moved = flags & pg.MOVED > 0
        if moved.any():
            page = first + int(starts[moved][0]) // pg.PAGE_SIZE
            raise SchemaError(f"{self.path}: page {page} holds rows that a VACUUM FULL before PostgreSQL 9.0 moved; run a newer one first")
        visible = flags & pg.INSERT_COMMITTED > 0
        unknown = flags & pg.FROZEN == 0
        visible[unknown] = self._states(self.cluster.committed_mask, inserter[unknown])
        locked = (flags & pg.ONLY_LOCKED > 0) | (flags & (pg.DELETER_IS_MULTI | pg.EXCLUSIVE_LOCK | pg.KEY_SHARE_LOCK) == pg.EXCLUSIVE_LOCK)
        deleted = visible & (flags & pg.DELETE_ABORTED == 0) & ~locked
        several = deleted & (flags & pg.DELETER_IS_MULTI > 0)
        if several.any():
            deleter[several] = self._states(self.cluster.changers, deleter[several])
        unknown = deleted & (several | (flags & pg.DELETE_COMMITTED == 0))
        deleted[unknown] = self._states(self.cluster.committed_mask, deleter[unknown])
        return visible & ~deleted

    def _states(self, ask: Callable[[Integers], npt.NDArray[Any]], transactions: Integers) -> npt.NDArray[Any]:
        try:
            return ask(transactions)
        except MissingFileError as problem:
            raise MissingFileError(f"{self.path}: {problem}") from None

    def _check_headers(self, first: int, data: Bytes, items: Integers, starts: Integers, lengths: Integers) -> None:
        """Refuse rows of more columns than there are, and those whose values begin where none can."""
        counts = data.view("<u2")[(starts + pg.COLUMNS) // 2] & pg.COLUMN_COUNT
        flags = data.view("<u2")[(starts + pg.FLAGS) // 2]
        begins = pg.TUPLE_HEADER + np.where(flags & pg.HAS_NULL, (counts + 7) // 8, 0) + np.where(flags & pg.HAS_ROW_ID, 4, 0)
        begins = (begins + pg.WIDEST_ALIGNMENT - 1) // pg.WIDEST_ALIGNMENT * pg.WIDEST_ALIGNMENT
        wrong = (data[starts + pg.VALUES_AT] != begins) | (begins > lengths)
        if wrong.any():
            row = int(wrong.argmax())
            raise self.damage_error(first + int(starts[row]) // pg.PAGE_SIZE, f"the header of row {items[row]} is not a row header")
        if len(counts) and counts.max() > len(self.columns):
            most = int(counts.max())
            why = f"but its definition has {len(self.columns)}; a dropped column is declared by ALTER TABLE ... DROP COLUMN"
            raise SchemaError(f"{self.path}: rows have {most} columns, {why}")

    def _refuse(self, problem: int, page: int, item: int, column: int) -> NoReturn:
        name = self.columns[column].name
        if problem in (pg.TOASTED, pg.COMPRESSED):
            how = "outside the table (TOASTed)" if problem == pg.TOASTED else "compressed"
            raise SchemaError(f"{self.path}: column {name}: row {item} of page {page} has a value that is stored {how}, which is not read")
        raise SchemaError(f"{self.path}: row {item} of page {page} does not fit the table's definition, or is damaged, at column {name}")


def decode(column: ColumnDefinition, data: Bytes, at: Integers, size: Integers) -> pa.Array:
    """The values of a column.

    `data` is bytes that hold them; `at` and `size`, shape (n,), are where each begins, or NULL or pg.MISSING, and its bytes.
    """
    values = values_at(column.kind, data, at, size, column_type(column))
    if column.modifier and column.kind in ("varchar", "bpchar", "text"):
        bounds, length = pc.min_max(pc.utf8_length(values)).as_py(), column.modifier[0]
        least, most = bounds["min"], bounds["max"]
        if most is not None and (most > length or (column.kind == "bpchar" and least < length)):
            raise SchemaError(f"a text of {most if most > length else least} characters, but its definition says {length}")
    late = at == pg.MISSING
    if late.any():
        if column.problem:
            raise SchemaError(f"rows are older than it, and {column.problem}")
        if column.missing is not None:
            values = _beside(values, column.missing, late)
    if not column.nullable and values.null_count:
        raise SchemaError("it has no value in some row, but its definition says NOT NULL")
    return values


def joined_chunks(chunks: list[pa.Array]) -> pa.Array:
    """Arrays of one type, or of numbers of several precisions, as one column."""
    kinds = {chunk.type for chunk in chunks}
    if len(kinds) > 1:
        chunks = [chunk.cast(_common(kinds)) for chunk in chunks]
    return pa.concat_arrays(chunks)


def _common(kinds: set[pa.DataType]) -> pa.DataType:
    scale = max(kind.scale for kind in kinds)
    return decimal_type(scale + max(kind.precision - kind.scale for kind in kinds), scale)


def _beside(values: pa.Array, missing: pa.Scalar, late: npt.NDArray[np.bool_]) -> pa.Array:
    if values.type != missing.type:
        common = _common({values.type, missing.type})
        values, missing = values.cast(common), missing.cast(common)
    return pc.if_else(pa.array(late), missing, values)
