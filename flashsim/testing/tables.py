"""Tables made by Hypothesis for the tests of records, pages and databases."""

from decimal import Decimal

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from flashsim.storage.columns import mixed_array
from flashsim.storage.relation import Relation
from flashsim.storage.source.base import TableRecords, load_pair

WHOLE = (
    st.integers(-(2**63), 2**63 - 1)
    | st.integers(-300, 300)
    | st.sampled_from([0, 1, 127, 128, -128, -129, 2**47 - 1, 2**47, -(2**47) - 1])
)
DOUBLES = st.floats() | st.integers(-(2**50), 2**50).map(float) | st.sampled_from([-0.0, 2.0**47, -(2.0**47)])
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
BLOBS = st.binary(max_size=40)
COLUMNS = [
    (pa.int64(), WHOLE),
    (pa.int8(), st.integers(-128, 127)),
    (pa.uint32(), st.integers(0, 2**32 - 1)),
    (pa.uint64(), st.integers(0, 2**64 - 1)),
    (pa.float64(), DOUBLES),
    (pa.float32(), st.floats(width=32)),
    (pa.string(), TEXTS),
    (pa.large_string(), TEXTS.map(lambda text: text * 3)),
    (pa.binary(), BLOBS),
    (pa.bool_(), st.booleans()),
    (pa.date32(), st.dates()),
    (pa.time64("us"), st.times()),
    (pa.timestamp("us"), st.datetimes()),
    (pa.decimal128(20, 4), st.integers(-(10**18), 10**18).map(lambda value: Decimal(value) / 10_000)),
    (pa.null(), st.none()),
]


@st.composite
def mixed_column(draw: st.DrawFn, rows: int) -> pa.Array:
    """A column of several storage classes."""
    classes = np.array(draw(st.lists(st.integers(0, 3), min_size=rows, max_size=rows)), np.int8)
    values = [
        (WHOLE | st.none(), pa.int64()),
        (st.floats(allow_nan=False), pa.float64()),
        (TEXTS, pa.large_string()),
        (BLOBS, pa.large_binary()),
    ]
    return mixed_array(classes, *(pa.array(draw(st.lists(kind, min_size=rows, max_size=rows)), type_) for kind, type_ in values))


@st.composite
def tables(draw: st.DrawFn, max_rows: int = 30, max_columns: int = 4) -> pa.Table:
    """A table with columns of all types, NULLs, and awkward names."""
    rows = draw(st.integers(0, max_rows))
    names = draw(
        st.lists(
            st.sampled_from(["a", "B", "select", 'quo"te', "two words", "ß", "1", "x,y", "c)"]),
            min_size=1,
            max_size=max_columns,
            unique=True,
        )
    )
    columns = []
    for _ in names:
        if draw(st.integers(0, 5)) == 0:
            columns.append(draw(mixed_column(rows)))
        else:
            kind, values = draw(st.sampled_from(COLUMNS))
            columns.append(pa.array(draw(st.lists(values | st.none(), min_size=rows, max_size=rows)), kind))
    return pa.table(columns, names=names)


def relation_of(table: pa.Table, column: int = 0, name: str = "t") -> Relation:
    """A table as a relation whose key is one of its columns."""
    records = TableRecords(name, table)
    return load_pair(records, records, table.column_names[column], table.column_names[column])[0]
