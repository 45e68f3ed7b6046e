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
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from flashsim.core.errors import DamagedFileError, MissingFileError

VERSION = 1
#: What Arrow ends in where a Parquet file is damaged; names of columns may be no text.
DAMAGE = (OSError, UnicodeDecodeError, pa.ArrowException)
_VERSION_KEY = b"flashsim.trace.version"
_PROVENANCE_KEY = b"flashsim.provenance"
_UNKNOWN_KEY = b"flashsim.trace.unknown"

_KNOWN = {"id": "int64", "device": "int16", "operation": "int8", "offset": "int64", "length": "int64", "stream": "int16"}
_KNOWN |= {"priority": "int8", "flags": "int16", "tag": "int64", "dependency": "int64", "think": "int64"}
_FIELDS = [pa.field(name, kind, nullable=False) for name, kind in _KNOWN.items()]
_FIELDS += [pa.field(name, "int64") for name in ("arrival", "started", "completed")]
SCHEMA = pa.schema([*_FIELDS, pa.field("label", pa.dictionary(pa.int32(), pa.string()))])

Batches = Iterator[pa.RecordBatch]


def default(column: str) -> int | None:
    """The value of a column where nothing is known; None stands for null."""
    if SCHEMA.field(column).nullable:
        return None
    return -1 if column == "dependency" else 0


def make_batch(columns: Mapping[str, Any], first: int = 0, label: Any = "", unknown: Collection[str] = ()) -> pa.RecordBatch:
    """A batch of the schema, shape (n,), from the columns that are known, `offset` at least; what is missing gets its `default`.

    `first` is the id of the first row, and `label` one for all rows, or one a row.  `unknown` are columns that the source does not tell,
    although their values cannot be null (`unknown_columns`).

    Examples
    --------
    >>> make_batch({"offset": [0, 512], "length": [512, 512]}, first=7).column("id").to_pylist()
    [7, 8]
    """
    count = len(columns["offset"])
    if isinstance(label, str):
        label = pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), pa.array([label]))
    values = {**columns, "id": np.arange(first, first + count), "label": label.cast(SCHEMA.field("label").type)}
    arrays = []
    for field in SCHEMA:
        value = values.get(field.name)
        if value is None:
            value = pa.nulls(count, field.type) if field.nullable else np.full(count, default(field.name))
        arrays.append(value if isinstance(value, pa.Array) and value.type == field.type else pa.array(value, field.type))
    return pa.record_batch(arrays, schema=SCHEMA.with_metadata(_unknown_metadata(unknown)))


def column(batch: pa.RecordBatch, name: str) -> npt.NDArray[Any]:
    """A column of numbers without nulls, shape (n,)."""
    return batch.column(name).to_numpy(zero_copy_only=False)


def schema_with(provenance: dict[str, Any], unknown: Collection[str] = ()) -> pa.Schema:
    """The schema, carrying its version, where the trace comes from, and what that did not tell."""
    metadata = {_VERSION_KEY: str(VERSION).encode(), _PROVENANCE_KEY: json.dumps(provenance).encode()}
    return SCHEMA.with_metadata(metadata | _unknown_metadata(unknown))


def _unknown_metadata(unknown: Collection[str]) -> dict[bytes, bytes]:
    return {_UNKNOWN_KEY: ",".join(sorted(unknown)).encode()} if unknown else {}


def unknown_columns(schema: pa.Schema) -> frozenset[str]:
    """Columns that the source of a trace did not tell, such as ``operation``, and that hold what stands for it."""
    names = (schema.metadata or {}).get(_UNKNOWN_KEY, b"").decode(errors="replace")
    return frozenset(names.split(",")) & set(SCHEMA.names)


def open_trace(path: str | Path) -> pq.ParquetFile:
    try:
        file = pq.ParquetFile(path, page_checksum_verification=True)
    except OSError as problem:
        if not Path(path).is_file():
            raise MissingFileError(f"trace: no file at {path}") from problem
        raise DamagedFileError(f"trace: {path} cannot be read: {problem}".split("\n", 1)[0]) from problem
    except DAMAGE as problem:
        raise DamagedFileError(f"trace: {path} is not a Parquet file or is damaged: {problem}".split("\n", 1)[0]) from problem
    version = (file.schema_arrow.metadata or {}).get(_VERSION_KEY)
    if version is None:
        raise DamagedFileError(f"trace: {path} is a Parquet file, but no flashsim trace")
    if version != str(VERSION).encode():
        raise DamagedFileError(f"trace: {path} has schema version {version.decode(errors='replace')}, but this flashsim reads {VERSION}")
    if file.schema_arrow.names != SCHEMA.names or file.schema_arrow.types != SCHEMA.types:
        raise DamagedFileError(f"trace: {path} has not the columns of the schema")
    return file


def provenance_of(schema: pa.Schema) -> dict[str, Any]:
    """Provenance of a trace, as it was recorded; empty where its schema does not say."""
    try:
        provenance = json.loads((schema.metadata or {}).get(_PROVENANCE_KEY, b"{}"))
    except ValueError:
        return {}
    return provenance if isinstance(provenance, dict) else {}
