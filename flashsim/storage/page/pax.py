"""PAX pages: a minipage a column, so that a column is read without the others, and always at the same bytes of a page.

    +-----------------+-----------------------------+-----------------------------+-----+--------------+
    | row ids         | minipage of the 1st column  | minipage of the 2nd column  | ... | unused space |
    +-----------------+-----------------------------+-----------------------------+-----+--------------+

    0      1          2           4                     ...                              ...
    +------+----------+-----------+---------------------+--------------------------------+-----------------------------+
    | 0xA8 | number   | tuples on | a bit a tuple: is   | where each value ends, 2 bytes | values, one after the other |
    |      | (mod 256)| the page  | there a value?      | (if values differ in length)   |                             |
    |      |          | 2 bytes   | (if some are NULL)  |                                |                             |
    +------+----------+-----------+---------------------+--------------------------------+-----------------------------+

Numbers are little-endian.  Each minipage has room for as many values as a page holds tuples, every one as long as the longest of the
file; so minipages begin at the same byte on all pages.  The number of tuples stands in each, so that one can be read alone.  Row formats
without row ids have no minipage for them.
Source: A. Ailamaki, D. DeWitt, M. Hill, M. Skounakis, "Weaving Relations for Cache Performance" (VLDB 2001), section 3; there minipages
share a page's room by the average length, and page by page.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flashsim.core.errors import CapacityError, DamagedFileError, InvalidParameterError
from flashsim.core.kernel import kernel
from flashsim.core.request import SECTOR, Integers
from flashsim.storage.attributes import Attribute, Values, array_from, values_of
from flashsim.storage.record import Bytes, byte_at
from flashsim.storage.rows import RowFormat, Tuples

SMALLEST_PAGE, LARGEST_PAGE = 512, 65536
MARK = 0xA8
HEAD, _END = 4, 2


class Minipage(NamedTuple):
    """Place of the values of one column on every page."""

    number: int
    #: First bytes: of its head, its bits, where values end, the values, and what follows.
    begin: int
    bits: int
    ends: int
    values: int
    end: int
    #: How many values it has room for.
    capacity: int


def check_page_size(page_size: int) -> None:
    if page_size % SECTOR or not SMALLEST_PAGE <= page_size <= LARGEST_PAGE:
        raise InvalidParameterError("page size", f"{page_size} B", "it must be a multiple of 512 B, up to 64 KiB")


def room(row_format: RowFormat, page_size: int) -> int:
    return _capacity(row_format, page_size) * _cell_size(row_format)


def largest_record(row_format: RowFormat, page_size: int) -> int:
    """Bytes of a page beside the heads of its minipages."""
    return max(0, page_size - HEAD * len(row_format.attributes))


def widest_row(row_format: RowFormat) -> int:
    """Bytes that the only tuple of a page takes if all its values are as long as any."""
    return sum(attribute.size + _END * attribute.varies + attribute.nullable for attribute in row_format.attributes)


def cell_sizes(row_format: RowFormat, tuples: Tuples) -> Integers:
    """Bytes that each tuple takes of a page's room, shape (n,): all the same, as values have room for the longest."""
    return np.full(len(tuples), _cell_size(row_format))


def encode_pages(row_format: RowFormat, tuples: Tuples, page_size: int) -> Bytes:
    minipages, pages = _minipages(row_format, page_size), np.asarray(tuples.pages, np.int64)
    row_format.check(tuples)
    fullest = int(np.diff(pages).max(initial=0))
    if fullest > minipages[0].capacity:
        raise CapacityError(f"page size: {page_size} B, but it holds {minipages[0].capacity} of {row_format.title}, not {fullest}")
    out = np.zeros((len(pages) - 1, page_size), np.uint8)
    for minipage, attribute, column in zip(minipages, row_format.attributes, row_format.attribute_values(tuples), strict=True):
        values = values_of(attribute, column)
        values.data.flags.writeable = False  # as Arrow's are, so that the kernel is compiled once
        _put_minipage(out, pages, minipage, attribute.size, values)
    return out


def parts(row_format: RowFormat, columns: tuple[str, ...], attributes: tuple[str, ...], page_size: int) -> tuple[tuple[int, int], ...]:
    runs: list[tuple[int, int]] = []
    minipages = _minipages(row_format, page_size)
    for number in sorted(_numbers(row_format, columns, attributes)):
        first, last = minipages[number].begin // SECTOR, -(-minipages[number].end // SECTOR)
        if runs and first <= runs[-1][1]:
            first = runs.pop()[0]
        runs.append((first, last))
    return tuple((first * SECTOR, (last - first) * SECTOR) for first, last in runs)


def decode_pages(row_format: RowFormat, columns: tuple[str, ...], data: Bytes) -> Tuples:
    pages, arrays = _read(row_format, [row_format.place(column) for column in columns], data)
    return Tuples({column: row_format.numbers_of(column, array) for column, array in zip(columns, arrays, strict=True)}, pages)


def decode_values(row_format: RowFormat, attributes: tuple[str, ...], data: Bytes) -> pa.Table:
    _, arrays = _read(row_format, _numbers(row_format, (), attributes), data)
    return pa.table(dict(zip(attributes, arrays, strict=True)))


def _numbers(row_format: RowFormat, columns: tuple[str, ...], attributes: tuple[str, ...]) -> list[int]:
    names = [attribute.name for attribute in row_format.attributes]
    return [row_format.place(column) for column in columns] + [names.index(name) for name in attributes]


def _cell(row_format: RowFormat) -> tuple[int, int]:
    """Bytes and bits that a tuple takes of the minipages."""
    attributes = row_format.attributes
    return sum(attribute.size + _END * attribute.varies for attribute in attributes), sum(attribute.nullable for attribute in attributes)


def _cell_size(row_format: RowFormat) -> int:
    width, bits = _cell(row_format)
    return width + -(-bits // 8)


def _capacity(row_format: RowFormat, page_size: int) -> int:
    width, bits = _cell(row_format)
    room = page_size - HEAD * len(row_format.attributes)
    count = max(0, room * 8 // max(1, 8 * width + bits))
    while count and count * width + -(-count // 8) * bits > room:
        count -= 1
    return count


def _minipages(row_format: RowFormat, page_size: int) -> list[Minipage]:
    capacity, begin, minipages = _capacity(row_format, page_size), 0, []
    for number, attribute in enumerate(row_format.attributes):
        bits = begin + HEAD
        ends = bits + -(-capacity // 8) * attribute.nullable
        values = ends + capacity * _END * attribute.varies
        minipages.append(Minipage(number, begin, bits, ends, values, values + capacity * attribute.size, capacity))
        begin = minipages[-1].end
    return minipages


def _read(row_format: RowFormat, numbers: list[int], data: Bytes) -> tuple[Integers, list[pa.Array]]:
    """The first tuple of each page, and the values of some minipages."""
    minipages, pages = _minipages(row_format, data.shape[1]), np.zeros(len(data) + 1, np.int64)
    for place, number in enumerate(numbers):
        begin = minipages[number].begin
        mark, own_number, low, high = data[:, begin : begin + HEAD].astype(np.int64).T
        counts = low | high << 8
        if place == 0:
            pages[1:] = np.cumsum(counts)
        wrong = (mark != MARK) | (own_number != number & 255) | (counts > minipages[number].capacity) | (counts != np.diff(pages))
        if wrong.any():
            page = int(wrong.argmax())
            raise DamagedFileError(f"{row_format.title}: page {page} of those read has no minipage {number} of as many tuples")
    arrays = [_values(row_format, row_format.attributes[number], minipages[number], data, pages) for number in numbers]
    return pages, arrays


def _values(row_format: RowFormat, attribute: Attribute, minipage: Minipage, data: Bytes, pages: Integers) -> pa.Array:
    count = int(pages[-1])
    valid = np.zeros(count if attribute.nullable else 0, np.bool_)
    ends = np.zeros(count + 1 if attribute.varies else 0, np.int64)
    damaged = _get_ends(data, pages, minipage, attribute.size, valid, ends)
    if damaged >= 0:
        raise DamagedFileError(f"{row_format.title}: page {damaged} of those read has a value behind its minipage {minipage.number}")
    values = np.empty(int(ends[-1]) if attribute.varies else count * attribute.size, np.uint8)
    _get_values(data, pages, minipage, attribute.size, ends, values)
    try:
        return array_from(attribute, count, Values(valid, ends, values))
    except DamagedFileError as problem:
        raise DamagedFileError(f"{row_format.title}: {problem}") from None


@kernel
def _put_minipage(out: Bytes, pages: Integers, minipage: Minipage, size: int, values: Values) -> None:
    valid, ends = values.valid, values.ends
    for page in range(out.shape[0]):
        first, last = pages[page], pages[page + 1]
        at = minipage.begin
        out[page, at], out[page, at + 1] = MARK, minipage.number & 255
        out[page, at + 2], out[page, at + 3] = (last - first) & 255, (last - first) >> 8
        if valid.shape[0]:
            for index in range(last - first):
                if valid[first + index]:
                    out[page, minipage.bits + (index >> 3)] |= 1 << (index & 7)
        begin, end = first * size, last * size
        if ends.shape[0]:
            begin, end = ends[first], ends[last]
            for index in range(last - first):
                length = ends[first + index + 1] - begin
                out[page, minipage.ends + 2 * index] = length & 255
                out[page, minipage.ends + 2 * index + 1] = length >> 8
        out[page, minipage.values : minipage.values + end - begin] = values.data[begin:end]


@kernel
def _get_ends(data: Bytes, pages: Integers, minipage: Minipage, size: int, valid: npt.NDArray[np.bool_], ends: Integers) -> int:
    """Fill in the values' presence and ends, one page after the other; returns the first damaged page, or -1."""
    for page in range(data.shape[0]):
        first, count = pages[page], pages[page + 1] - pages[page]
        if valid.shape[0]:
            for index in range(count):
                valid[first + index] = (byte_at(data[page], minipage.bits + (index >> 3)) >> (index & 7)) & 1
        if ends.shape[0]:
            before = 0
            for index in range(count):
                end = byte_at(data[page], minipage.ends + 2 * index) | (byte_at(data[page], minipage.ends + 2 * index + 1) << 8)
                if not before <= end <= min(before + size, minipage.end - minipage.values):
                    return page
                ends[first + index + 1] = ends[first] + end
                before = end
    return -1


@kernel
def _get_values(data: Bytes, pages: Integers, minipage: Minipage, size: int, ends: Integers, values: Bytes) -> None:
    for page in range(data.shape[0]):
        begin, end = pages[page] * size, pages[page + 1] * size
        if ends.shape[0]:
            begin, end = ends[pages[page]], ends[pages[page + 1]]
        values[begin:end] = data[page, minipage.values : minipage.values + end - begin]
