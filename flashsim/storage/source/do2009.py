"""The two relations of Do and Patel, "Join Processing for Flash SSDs" (DaMoN 2009, section 3.2), generated and never stored.

TPC-H's customers and orders with nothing but the customer key, as an integer of 4 bytes, and padding: 130 bytes a customer and 90 an
order.  Both are in random order, and orders refer to customers as TPC-H's generator lets them: every third customer places no order.
The padding is a function of the row id, so that a row costs 4 bytes of memory.
"""

from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from flashsim.core.errors import InvalidParameterError
from flashsim.core.kernel import kernel
from flashsim.core.request import Integers
from flashsim.core.rng import generator
from flashsim.storage.attributes import Attribute
from flashsim.storage.columns import column_of
from flashsim.storage.page.sqlite import cell_size, leaf_room
from flashsim.storage.record import Bytes, put_varint, varint_size
from flashsim.storage.source.base import check_column, check_memory, table_and_scale

SUFFIXES = ()
SEED = 2009
#: Customers and orders of TPC-H at scale factor 1.
CUSTOMERS, ORDERS = 150_000, 1_500_000
#: Bytes of padding a row, and bytes of each relation at scale factor 1: 730 MiB and 5 GiB at scale factor 30.
PADDING = {"customer": 130, "orders": 90}
PUBLISHED_BYTES = {"customer": 93_440 * 8192 / 30, "orders": 655_360 * 8192 / 30}
KEYS = {"customer": "c_custkey", "orders": "o_custkey"}

_KEY_TYPE, _KEY_BYTES = 4, 4
_CHUNK = 1 << 20
_LETTERS = np.frombuffer(b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ .", np.uint8)


class PaperRecords:
    """One of the two relations, ``customer`` or ``orders``, at a scale factor of TPC-H; the paper's is 30.

    The seed is that of the order of rows and the choice of customers.
    """

    def __init__(self, name: str, scale: Decimal | float, seed: int = SEED) -> None:
        self.name = name
        self.scale = Decimal(str(scale))
        self.padding = PADDING[name]
        self._seed = seed
        self._customers = int(self.scale * CUSTOMERS)
        if not 3 <= self._customers < 2**31:
            raise InvalidParameterError("scale factor", scale, "it must give from 3 to 2**31 - 1 customers (150,000 at scale factor 1)")
        self.rows = self._customers if name == "customer" else int(self.scale * ORDERS)
        self.names: list[str] = [KEYS[name], "padding"]
        self.types: list[pa.DataType] = [pa.uint32(), pa.large_string()]

    @cached_property
    def keys(self) -> npt.NDArray[np.uint32]:
        if self.name == "customer":
            return generator(self._seed, "do2009", self.name).permutation(np.arange(1, self._customers + 1, dtype=np.uint32))
        return _customers_of_orders(self._customers, self.rows, self._seed)

    def key(self, column: str) -> pa.Array:
        check_column(self, column, self.name)
        return column_of(self.keys) if column == KEYS[self.name] else self.take(np.arange(self.rows)).column(column)

    def record_sizes(self) -> int:
        return self._header() + _KEY_BYTES + self.padding

    def encode(self, rows: Integers) -> tuple[Bytes, Integers]:
        size = self.record_sizes()
        out = np.empty((len(rows), size), np.uint8)
        header = self._header()
        out[:, 0], out[:, 1] = header, _KEY_TYPE
        put_varint(out[0] if len(rows) else np.empty(size, np.uint8), 2, 2 * self.padding + 13)
        out[1:, 2:header] = out[:1, 2:header]
        out[:, header : header + _KEY_BYTES] = self.keys[rows].astype(">u4").view(np.uint8).reshape(-1, _KEY_BYTES)
        _pad(out, rows, header + _KEY_BYTES)
        return out.reshape(-1), np.arange(len(rows) + 1) * size

    def attributes(self) -> tuple[Attribute, ...]:
        key, padding = self.types
        return Attribute(KEYS[self.name], key, _KEY_BYTES), Attribute("padding", padding, self.padding)

    def take(self, rows: Integers) -> pa.Table:
        texts = np.empty((len(rows), self.padding), np.uint8)
        _pad(texts, np.asarray(rows, np.int64), 0)
        offsets = pa.py_buffer(np.arange(len(rows) + 1) * self.padding)
        padding = pa.LargeStringArray.from_buffers(len(rows), offsets, pa.py_buffer(texts))
        return pa.table({KEYS[self.name]: column_of(self.keys[rows]), "padding": padding})

    def published_pages(self, page_size: int) -> int:
        """Pages that the paper's relation takes (93,440 and 655,360 of 8 KiB at scale factor 30), pro rata.

        Small pages leave more room unused: the count is at least what evenly spread rows need.
        """
        rows = max(1, self.rows)
        needed = -(-rows // max(1, leaf_room(page_size) // int(cell_size(self.record_sizes(), rows - 1))))
        return max(1, needed, round(PUBLISHED_BYTES[self.name] * float(self.scale) / page_size))

    def _header(self) -> int:
        return 2 + int(varint_size(2 * self.padding + 13))


def open_records(text: str) -> PaperRecords:
    """The rows of ``customer@30`` or ``orders@30``; the number is TPC-H's scale factor."""
    records = PaperRecords(*table_and_scale(text, "do2009", tuple(PADDING)))
    check_memory(f"do2009:{text}", records.rows * _KEY_BYTES, f"{records.rows:,} rows of {_KEY_BYTES} B take")
    return records


def example(folder: Path) -> str:
    return "do2009:orders@0.0001"


def _customers_of_orders(customers: int, orders: int, seed: int) -> npt.NDArray[np.uint32]:
    """The customer of each order.

    TPC-H's generator draws from all customers and moves off every third: to the next, or back if there is none (dbgen, mk_order).
    So customers 1, 4, 7... place twice as many orders as 2, 5, 8...
    """
    random = generator(seed, "do2009", "orders")
    keys = np.empty(orders, np.uint32)
    for start in range(0, orders, _CHUNK):
        part: npt.NDArray[Any] = random.integers(1, customers + 1, min(_CHUNK, orders - start), dtype=np.uint32)
        third = part % 3 == 0
        keys[start : start + len(part)] = np.where(third, np.where(part < customers, part + 1, part - 1), part)
    return keys


@kernel
def _pad(out: Bytes, rows: Integers, start: int) -> None:
    """Write the padding of some rows from column `start` on: letters from a hash of the row id and the place."""
    for index in range(rows.shape[0]):
        low = (rows[index] * 40503 + 12345) & 0x7FFFFFFF
        state = ((low ^ (low >> 15)) * 0x2C1B3C6D + (rows[index] >> 16)) & 0x7FFFFFFF
        place = start
        while place < out.shape[1]:
            state = (state * 1103515245 + 12345) & 0x7FFFFFFF
            letters = state >> 1
            for _ in range(5):
                if place < out.shape[1]:
                    out[index, place] = _LETTERS[letters & 63]
                    place += 1
                letters >>= 6
