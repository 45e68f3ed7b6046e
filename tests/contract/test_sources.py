"""Every source, and records of generated rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from flashsim.storage.columns import plain_array
from flashsim.storage.record import encode_records
from flashsim.storage.source import SOURCES, open_source
from flashsim.testing.contracts.storage import SourceContract
from tests.contract.members import each_of

MINE = '''
from pathlib import Path

import numpy as np
import pyarrow as pa

from flashsim.storage.source.base import TableRecords, reading

SUFFIXES = (".numbers",)


class Numbers(TableRecords):
    """Whole numbers, one a line, and their places."""


def open_records(text):
    path = Path(text)
    with reading(path):
        values = [int(line) for line in path.read_text().splitlines()]
    return Numbers(path.stem, pa.table({"place": range(len(values)), "value": values}))


def example(folder):
    path = folder / "example.numbers"
    path.write_text("5\\n-3\\n70000\\n")
    return str(path)
'''


@each_of(SOURCES)
class TestSources(SourceContract):
    """Every member."""


def test_a_generated_record_is_what_the_general_encoder_makes() -> None:
    """The paper's keys take 4 bytes whatever their value; apart from that width its records are like any other's."""
    source = open_source("do2009:customer@0.001")
    rows = np.arange(source.rows)
    whole = source.take(rows)
    data, starts = source.encode(rows)
    general, general_starts = encode_records(pa.table({name: plain_array(whole.column(name)) for name in whole.column_names}))
    for row in rows.tolist():
        record, other = data[starts[row] : starts[row + 1]], general[general_starts[row] : general_starts[row + 1]]
        assert np.array_equal(record[-130:], other[-130:]) and np.array_equal(record[2:4], other[2:4])
        key = int.from_bytes(record[4:8].tobytes(), "big")
        assert key == whole.column(0)[row].as_py() and record[0] == 4 and record[1] == 4
