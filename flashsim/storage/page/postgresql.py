"""PostgreSQL's heap pages: whole rows, which a server reads where they stand in place of a table's file.

    0             24                              lower    upper                                     page size
    +-------------+-------------------------------+--------+---------------+-----+-----------+-----------+
    | page header | line pointer of tuple 0 .. n-1 | unused | tuple n - 1   | ... | tuple 1   | tuple 0   |
    | 24 bytes    | 4 bytes each                  | zeros  | from a multiple of 8 on                       |
    +-------------+-------------------------------+--------+---------------+-----+-----------+-----------+

    0              4             8        12     16     18        20      22          23            24, or a multiple of 8
    +--------------+-------------+--------+------+------+---------+-------+-----------+-------------+--------+
    | inserter = 2 | deleter = 0 | row id | page | item | columns | flags | values at | a bit a     | values |
    | 4 bytes      | 4 bytes     | 4 b.   | 4 b. | 2 b. | 2 bytes | 2 b.  | 1 byte    | column, if  | ...    |
    |              |             |        |      |      |         |       |           | one is NULL |        |
    +--------------+-------------+--------+------+------+---------+-------+-----------+-------------+--------+

Numbers are little-endian.  Tuples are frozen: everybody sees them, whatever the server's transactions were.  Row ids stand where an
inserter notes which of its commands it was, of which a frozen tuple has no use.  Pages know their number: it is in every tuple, and in the
checksum, which is written in any case and compared where the number is known.
Source: src/include/storage/bufpage.h and src/include/access/htup_details.h of PostgreSQL; `flashsim.storage.page._postgresql`.
"""

from pathlib import Path
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa

from flashsim.core.errors import CapacityError, DamagedFileError, FlashsimError, InvalidParameterError, SchemaError
from flashsim.core.protocols import Progress
from flashsim.core.request import Integers
from flashsim.storage.attributes import Attribute, Values
from flashsim.storage.columns import column_of
from flashsim.storage.heap_file import HeapFile
from flashsim.storage.page import _postgresql as pg
from flashsim.storage.page._postgresql_values import Stored, stored_form, to_stored, values_at
from flashsim.storage.page.base import file_name, quote_name
from flashsim.storage.record import Bytes
from flashsim.storage.relation import Records, Relation
from flashsim.storage.rows import RowFormat, Tuples

SMALLEST_PAGE, LARGEST_PAGE = 1024, 32768
#: Columns of a table (MaxHeapAttributeNumber), and rows that ids of 4 bytes tell apart.
MOST_COLUMNS, MOST_ROWS = 1600, 1 << 32
_CHECKSUM = pg.PAGE.fields["checksum"][1]  # type: ignore[index]
_ROWS_AT_ONCE = 1 << 18
#: Bytes of a file; what follows is in another one, whose name ends in its number.
SEGMENT = 1 << 30
#: The longest name (NAMEDATALEN - 1), and columns that every table has.
_LONGEST_NAME, _SYSTEM_COLUMNS = 63, ("tableoid", "cmin", "cmax", "xmin", "xmax", "ctid")
_BYTES_AT_ONCE = 16 << 20
#: Bytes of tuples by whose they are, as long as these are in use.
_SIZES: WeakKeyDictionary[Records | RowFormat, Integers] = WeakKeyDictionary()


def check_page_size(page_size: int) -> None:
    if page_size & (page_size - 1) or not SMALLEST_PAGE <= page_size <= LARGEST_PAGE:
        raise InvalidParameterError("page size", f"{page_size} B", "PostgreSQL's pages are a power of two from 1 KiB to 32 KiB")


def room(row_format: RowFormat, page_size: int) -> int:
    return page_size - pg.PAGE_HEADER


def largest_record(row_format: RowFormat, page_size: int) -> int:
    """Bytes of the largest tuple: its line pointer takes as much as a tuple's alignment."""
    return page_size - pg.PAGE_HEADER - pg.WIDEST_ALIGNMENT


def widest_row(row_format: RowFormat) -> int:
    return int(_tuple_sizes(row_format).max(initial=0))


def cell_sizes(row_format: RowFormat, tuples: Tuples) -> Integers:
    """Bytes that each tuple takes of a page's room, shape (n,): with its line pointer, and up to a multiple of 8."""
    sizes = _tuple_sizes(row_format)
    return pg.LINE_POINTER + (np.full(len(tuples), sizes[0]) if len(sizes) == 1 else sizes[tuples.rows].astype(np.int64))


def encode_pages(row_format: RowFormat, tuples: Tuples, page_size: int) -> Bytes:
    row_format.check(tuples)
    pages = np.asarray(tuples.pages, np.int64)
    types, values = _stored_forms(row_format), _values(row_format, row_format.attribute_values(tuples))
    measured = _measure_tuples(types, values, len(tuples))
    out, starts = np.zeros((len(pages) - 1, page_size), np.uint8), np.empty(len(tuples), np.int64)
    overfull = pg.put_tuples(out, pages, len(types), np.asarray(row_format.numbers(tuples), np.int64), measured, starts)
    if overfull >= 0:
        raise CapacityError(f"page size: {page_size} B, but page {overfull} of those written would hold more of {row_format.title}")
    at, flat = starts + measured[1], out.reshape(-1)
    for number, (stored, column) in enumerate(zip(types, values, strict=True)):
        column.data.flags.writeable = False  # as Arrow's are, so that the kernel is compiled once
        pg.put_values(flat, starts, at, number, pg.TYPES[stored.type], column)
    return out


def number_pages(data: Bytes, numbers: Integers) -> None:
    pg.number_tuples(data, numbers)
    data[:, _CHECKSUM : _CHECKSUM + 2] = pg.checksums(data, numbers).astype("<u2").view(np.uint8).reshape(-1, 2)


def verify_pages(row_format: RowFormat, data: Bytes, numbers: Integers) -> None:
    checksums = np.ascontiguousarray(data[:, _CHECKSUM : _CHECKSUM + 2]).view("<u2").reshape(-1)
    for page in np.flatnonzero(checksums != pg.checksums(data, numbers))[:1]:
        raise DamagedFileError(f"{row_format.title}: page {numbers[page]} has another checksum than its bytes")


def decode_pages(row_format: RowFormat, columns: tuple[str, ...], data: Bytes) -> Tuples:
    pages, arrays = _read(row_format, [row_format.place(column) for column in columns], data)
    return Tuples({column: row_format.numbers_of(column, array) for column, array in zip(columns, arrays, strict=True)}, pages)


def decode_values(row_format: RowFormat, attributes: tuple[str, ...], data: Bytes) -> pa.Table:
    names = [attribute.name for attribute in row_format.attributes]
    _, arrays = _read(row_format, [names.index(name) for name in attributes], data)
    return pa.table(dict(zip(attributes, arrays, strict=True)))


def write_files(heap_file: HeapFile, folder: Path, progress: Progress | None = None) -> None:
    """Write a base relation as the files of a table, and a statement that creates it.

    The pages go to one file, and to others beside it where it would be longer than 1 GiB.  In place of the files of a table that was
    created so, in a cluster that is shut down, a server shows exactly these rows.
    """
    name = file_name(heap_file.name)
    (folder / f"{name}.sql").write_text(create_table(heap_file.name, _stored_forms(heap_file.relation)), encoding="utf-8")
    size, path = heap_file.page_size, folder / name
    path.write_bytes(b"")
    for start in range(0, heap_file.pages, _BYTES_AT_ONCE // size):
        end, number = min(heap_file.pages, start + _BYTES_AT_ONCE // size), start * size // SEGMENT
        with (path.with_name(f"{name}.{number}") if number else path).open("ab") as out:
            out.write(heap_file.layout.encode(heap_file.run(start, end), np.arange(start, end)).data)
        if progress is not None:
            progress(end, heap_file.pages, heap_file.name)


def _stored_forms(row_format: RowFormat) -> list[Stored]:
    attributes = [attribute for attribute in row_format.attributes if attribute.name is not None]
    if len(attributes) > MOST_COLUMNS:
        raise SchemaError(f"{row_format.title}: {len(attributes)} columns, but a table of PostgreSQL has at most {MOST_COLUMNS}")
    return [stored_form(attribute, row_format.title) for attribute in attributes]


def _values(row_format: RowFormat, columns: list[pa.Array]) -> list[Values]:
    attributes, types = row_format.attributes, _stored_forms(row_format)
    first = len(attributes) - len(types)
    mine = zip(attributes[first:], types, columns[first:], strict=True)
    return [to_stored(attribute, stored, column, row_format.title) for attribute, stored, column in mine]


def _measure_tuples(types: list[Stored], values: list[Values], count: int) -> pg.Measured:
    nulls = np.zeros(count, np.bool_)
    for column in values:
        if len(column.valid):
            nulls |= ~column.valid
    heads = np.where(nulls, _align(pg.TUPLE_HEADER + -(-len(types) // 8)), _align(pg.TUPLE_HEADER))
    sizes = heads.copy()
    for stored, column in zip(types, values, strict=True):
        pg.advance(sizes, pg.TYPES[stored.type], column)
    return nulls, heads, sizes


def _align(size: int) -> int:
    return -(-size // pg.WIDEST_ALIGNMENT) * pg.WIDEST_ALIGNMENT


def _tuple_sizes(row_format: RowFormat) -> Integers:
    """Bytes of all rows' tuples, up to a multiple of 8, shape (rows,), or (1,) if they are the same for all."""
    owner = row_format.records if isinstance(row_format, Relation) else row_format
    if owner in _SIZES:
        return _SIZES[owner]
    types = _stored_forms(row_format)
    kinds = [attribute for attribute in row_format.attributes if attribute.name is not None]
    alike = not any(attribute.varies or attribute.nullable for attribute in kinds) and all(stored.type != "numeric" for stored in types)
    rows = len(row_format) if isinstance(row_format, Relation) else 1
    if rows > MOST_ROWS:
        raise CapacityError(f"{row_format.title}: {rows} rows, but row ids have 4 bytes in PostgreSQL's tuples")
    sizes = [np.zeros(0, np.int32)]
    for begin in range(0, min(rows, 1) if alike else rows, _ROWS_AT_ONCE):
        chunk = np.arange(begin, min(rows, 1 if alike else begin + _ROWS_AT_ONCE))
        stored = row_format.attribute_values(Tuples(dict.fromkeys(row_format.columns, chunk)))
        lengths = _measure_tuples(types, _values(row_format, stored), len(chunk))[2]
        sizes.append((-(-lengths // pg.WIDEST_ALIGNMENT) * pg.WIDEST_ALIGNMENT).astype(np.int32))
    _SIZES[owner] = np.concatenate(sizes)
    return _SIZES[owner]


def _read(row_format: RowFormat, places: list[int], data: Bytes) -> tuple[Integers, list[pa.Array]]:
    """The first tuple of each page, and some attributes, row ids among them where there are some."""
    types = _stored_forms(row_format)
    numbered, size = len(row_format.attributes) - len(types), data.shape[1]
    heads = np.ascontiguousarray(data[:, : pg.PAGE_HEADER]).view(pg.PAGE)[:, 0]
    lower, upper = heads["lower"].astype(np.int64), heads["upper"].astype(np.int64)
    wrong = (heads["size_and_layout"] != size | pg.LAYOUT) | (heads["special"] != size) | (lower < pg.PAGE_HEADER) | (lower > upper)
    wrong |= (upper > size) | ((lower - pg.PAGE_HEADER) % pg.LINE_POINTER != 0)
    if wrong.any():
        raise DamagedFileError(f"{row_format.title}: page {wrong.argmax()} of those read is not a heap page of PostgreSQL")
    pages = np.concatenate([[0], np.cumsum((lower - pg.PAGE_HEADER) // pg.LINE_POINTER)])
    count, last = int(pages[-1]), max(places, default=0) + 1 - numbered
    rows, starts, lengths = (np.empty(count, np.int64) for _ in range(3))
    damaged = pg.find_tuples(data, pages, len(types), rows, starts, lengths)
    at, sizes = (np.empty((last, count), np.int64) for _ in range(2))
    if damaged < 0 and last:
        kinds = np.array([pg.TYPES[stored.type][1:] for stored in types[:last]], np.int64)
        problem, row, _ = pg.locate_values(data.reshape(-1), starts, lengths, kinds, at, sizes)
        damaged = int(starts[row]) // data.shape[1] if problem else -1
    if damaged >= 0:
        raise DamagedFileError(f"{row_format.title}: page {damaged} of those read holds a tuple of no row")
    arrays = []
    for place in places:
        if place < numbered:
            arrays.append(column_of(rows))
            continue
        column = place - numbered
        arrays.append(_array(row_format, row_format.attributes[place], types[column], data, at[column], sizes[column]))
    return pages, arrays


def _array(row_format: RowFormat, attribute: Attribute, stored: Stored, data: Bytes, at: Integers, sizes: Integers) -> pa.Array:
    """A column whose values lie at some places; a size of -1 is NULL."""
    kind, valid = attribute.kind, sizes >= 0
    if not stored.attribute.nullable and not valid.all():
        raise DamagedFileError(f"{row_format.title}: a page that was read has no value of column {attribute.name}")
    try:
        if pa.types.is_null(kind):
            if valid.any():
                raise DamagedFileError(f"column {attribute.name} has a value")
            return pa.nulls(len(at))
        exact = kind if pa.types.is_decimal(kind) else pa.decimal128(20, 0)
        return values_at(stored.type, data.reshape(-1), np.where(valid, at, -1), sizes, exact).cast(kind)
    except pa.ArrowInvalid as problem:
        reason = f"column {attribute.name} has a value beyond its type: {str(problem).splitlines()[0]}"
        raise DamagedFileError(f"{row_format.title}: {reason}") from None
    except FlashsimError as problem:
        raise DamagedFileError(f"{row_format.title}: {problem}") from None


def create_table(name: str, columns: list[Stored]) -> str:
    r"""The statement that creates the table of such columns.

    Examples
    --------
    >>> from flashsim.storage.page._postgresql_values import stored_form
    >>> from flashsim.storage.attributes import Attribute
    >>> import pyarrow as pa
    >>> create_table("t", [stored_form(Attribute(name, kind, 4), "t") for name, kind in (("k", pa.int32()), ("day", pa.date32()))])
    'CREATE TABLE "t" (\n    "k" int4,\n    "day" date\n);\n'
    """
    lines = ",\n".join(f"    {_quote_name('column', str(column.attribute.name))} {column.declared}" for column in columns)
    return f"CREATE TABLE {_quote_name('table', name)} (\n{lines}\n);\n"


def _quote_name(what: str, name: str) -> str:
    if not name or "\0" in name or len(name.encode()) > _LONGEST_NAME or (what == "column" and name in _SYSTEM_COLUMNS):
        bound = f"PostgreSQL takes names of 1 to {_LONGEST_NAME} bytes, and for columns none of {', '.join(_SYSTEM_COLUMNS)}"
        raise SchemaError(f"{what}: {name!r}, but {bound}")
    return quote_name(name)
