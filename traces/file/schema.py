"""The one schema of traces, a Parquet file: a row a request, in order of submission.

==========  ======  ====================================================================================================
column      unit    meaning
==========  ======  ====================================================================================================
id                  0, 1, 2, ... in the file
device              which device of the volume
operation           read, write, trim, flush (`core.request.OPERATIONS`, by number)
offset      bytes   on the device
length      bytes
stream
priority
flags               `core.request.FORCE_UNIT_ACCESS`
tag                 free for the recorder's use
dependency          the id of the request whose completion this one waited for; -1: none
think       ns      from that completion to this arrival
arrival     ns      when the request arrived; null where nothing was timed
started     ns      when its first command went to the device; null where nothing was timed
completed   ns      null where nothing was timed
label               the file that was accessed
==========  ======  ====================================================================================================
"""

import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from flashsim.core.errors import DamagedFileError, MissingFileError

VERSION = 1
_VERSION_KEY = b"flashsim.trace.version"
_PROVENANCE_KEY = b"flashsim.provenance"
_UNKNOWN_KEY = b"flashsim.trace.unknown"

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("device", pa.int16(), nullable=False),
        pa.field("operation", pa.int8(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("length", pa.int64(), nullable=False),
        pa.field("stream", pa.int16(), nullable=False),
        pa.field("priority", pa.int8(), nullable=False),
        pa.field("flags", pa.int16(), nullable=False),
        pa.field("tag", pa.int64(), nullable=False),
        pa.field("dependency", pa.int64(), nullable=False),
        pa.field("think", pa.int64(), nullable=False),
        pa.field("arrival", pa.int64()),
        pa.field("started", pa.int64()),
        pa.field("completed", pa.int64()),
        pa.field("label", pa.dictionary(pa.int32(), pa.string())),
    ]
)

#: Record batches of the schema.
Batches = Iterator[pa.RecordBatch]


def default(column: str) -> int | None:
    """What a column holds where nothing is known; None stands for null."""
    if SCHEMA.field(column).nullable:
        return None
    return -1 if column == "dependency" else 0


def make_batch(columns: Mapping[str, Any], first: int = 0, label: Any = "", unknown: Collection[str] = ()) -> pa.RecordBatch:
    """A batch of the schema, shape (n,), from the columns that are known.

    Parameters
    ----------
    columns
        Arrays by name, `offset` at least; what is missing gets its `default`.
    first
        The id of the first row.
    label
        One for all rows, or one a row.
    unknown
        Columns that the source does not tell, although their values cannot be null (`unknown_columns`).

    Examples
    --------
    >>> make_batch({"offset": [0, 512], "length": [512, 512]}, first=7).column("id").to_pylist()
    [7, 8]
    """
    count = len(columns["offset"])
    arrays = []
    for field in SCHEMA:
        value = columns.get(field.name)
        if field.name == "id":
            value = np.arange(first, first + count)
        elif field.name == "label":
            same = (
                pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), pa.array([label])) if isinstance(label, str) else None
            )
            arrays.append(label.cast(field.type) if same is None else same)
            continue
        elif value is None and field.nullable:
            value = pa.nulls(count, field.type)
        elif value is None:
            value = np.full(count, default(field.name))
        arrays.append(value if isinstance(value, pa.Array) and value.type == field.type else pa.array(value, field.type))
    return pa.record_batch(arrays, schema=SCHEMA.with_metadata(_told_unknown(unknown)))


def schema_with(provenance: dict[str, Any], unknown: Collection[str] = ()) -> pa.Schema:
    """The schema, carrying its version, where the trace comes from, and what that did not tell."""
    told = {_VERSION_KEY: str(VERSION).encode(), _PROVENANCE_KEY: json.dumps(provenance).encode()}
    return SCHEMA.with_metadata(told | (_told_unknown(unknown) or {}))


def _told_unknown(unknown: Collection[str]) -> dict[bytes, bytes] | None:
    return {_UNKNOWN_KEY: ",".join(sorted(unknown)).encode()} if unknown else None


def unknown_columns(schema: pa.Schema) -> frozenset[str]:
    """Columns that the source of a trace did not tell, such as ``operation``, and that hold what stands for it."""
    told = (schema.metadata or {}).get(_UNKNOWN_KEY, b"").decode(errors="replace")
    return frozenset(told.split(",")) & set(SCHEMA.names)


def open_trace(path: str | Path) -> pq.ParquetFile:
    """A trace file, checked."""
    try:
        file = pq.ParquetFile(path, page_checksum_verification=True)
    except OSError as problem:
        if not Path(path).is_file():
            raise MissingFileError(f"trace: no file at {path}") from problem
        raise DamagedFileError(f"trace: {path} cannot be read: {problem}".split("\n", 1)[0]) from problem
    except pa.ArrowException as problem:
        raise DamagedFileError(f"trace: {path} is no Parquet file or is damaged: {problem}".split("\n", 1)[0]) from problem
    found = (file.schema_arrow.metadata or {}).get(_VERSION_KEY)
    if found is None:
        raise DamagedFileError(f"trace: {path} is a Parquet file, but no flashsim trace")
    if found != str(VERSION).encode():
        raise DamagedFileError(f"trace: {path} has schema version {found.decode(errors='replace')}, but this flashsim reads {VERSION}")
    if file.schema_arrow.names != SCHEMA.names or file.schema_arrow.types != SCHEMA.types:
        raise DamagedFileError(f"trace: {path} has not the columns of the schema")
    return file


def provenance_of(schema: pa.Schema) -> dict[str, Any]:
    """Where a trace comes from, as it was recorded; empty where its schema does not say."""
    try:
        provenance = json.loads((schema.metadata or {}).get(_PROVENANCE_KEY, b"{}"))
    except ValueError:
        return {}
    return provenance if isinstance(provenance, dict) else {}
