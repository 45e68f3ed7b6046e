"""What both versions of fio's I/O log share: actions, files and their numbers."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from flashsim.core.errors import DamagedFileError, InvalidParameterError
from flashsim.core.request import FLUSH, READ, TRIM, WRITE, Integers
from traces.file.schema import Batches
from traces.format import _text

CARRIES = frozenset({"device", "operation", "offset", "length", "arrival", "label"})
#: Names of files are paths.
LABELS = r"/.*"

#: Requests first, so that an action's place among them tells the operation; then what manages files, then `wait`.
ACTIONS = ["read", "write", "trim", "sync", "datasync", "add", "open", "close", "wait"]
WAIT = ACTIONS.index("wait")
_OPERATIONS = np.array([READ, WRITE, TRIM, FLUSH, FLUSH])
_NAMES = {READ: "read", WRITE: "write", TRIM: "trim", FLUSH: "sync"}
#: Lines that manage files lack offset and length.
_PLAIN = re.compile(r"device(0|[1-9]\d{0,8})")
_SHORT = re.compile(rb" (add|open|close)$", re.MULTILINE)


def begins_with(path: Path, version: int) -> bool:
    """Whether the first line names that version."""
    return _text.head(path)[:1] == [b"fio version %d iolog" % version]


def read(path: Path, version: int, columns: Mapping[str, pa.DataType]) -> Iterator[_text.Lines]:
    """The lines after the first one, those of files with offset and length 0."""
    for first, _, data in _text.chunks(path):
        body = data
        if first == 1:
            title, _, body = data.partition(b"\n")
            if title.strip() != b"fio version %d iolog" % version:
                raise DamagedFileError(f"trace: {path}, line 1: it must be 'fio version {version} iolog'")
        if body:
            yield _text.parse(path, first + (first == 1), _SHORT.sub(rb" \1 0 0", body), columns, " ")


class Files:
    """Numbers of files: ``deviceN`` is N and has no label; others are numbered in order of appearance, after those."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def requests(self, lines: _text.Lines, actions: Integers) -> tuple[dict[str, Any], pa.Array, Integers]:
        """Columns and labels of the lines that are requests, and the rows they are."""
        rows = np.flatnonzero(actions < len(_OPERATIONS))
        labels = lines.table.column("filename").combine_chunks().dictionary_encode()
        names = labels.dictionary.to_pylist()
        device = np.array([self._number(name) for name in names], np.int64)[labels.indices.to_numpy()]
        labels = pa.DictionaryArray.from_arrays(labels.indices, pa.array(["" if _PLAIN.fullmatch(name) else name for name in names]))
        lines.refuse(device >= 1 << 15, f"it is of the {1 << 15}th file, and a trace holds fewer")
        extents = lines.extents("offset", "length")
        columns = {name: values[rows] for name, values in extents.items()}
        return columns | {"device": device[rows], "operation": _OPERATIONS[actions[rows]]}, labels.take(pa.array(rows)), rows

    def _number(self, name: str) -> int:
        if name not in self._numbers:
            plain = _PLAIN.fullmatch(name)
            self._numbers[name] = int(plain[1]) if plain else max(self._numbers.values(), default=-1) + 1
        return self._numbers[name]


def write(
    batches: Batches, path: Path, version: int, time_columns: Callable[[pa.RecordBatch, list[Any]], list[Any]], stamp: bool, name: str
) -> None:
    """Header, each file's `add` and `open` before its first request, requests, and at the end each file's `close`.

    `time_columns` puts the times to a batch's columns.  The file of a request is its label, where that is a path, or else ``deviceN``.
    """
    known: dict[str, None] = {}
    options = pyarrow.csv.WriteOptions(include_header=False, delimiter=" ", quoting_style="none")
    begin, end = ("0 " if stamp else ""), 0
    with path.open("wb") as file:
        file.write(b"fio version %d iolog\n" % version)
        for batch in batches:
            label = pc.fill_null(batch.column("label").cast(pa.string()), "")
            device = pc.binary_join_element_wise("device", batch.column("device").cast(pa.string()), "")
            files = pc.if_else(pc.starts_with(label, "/"), label, device)
            for entry in pc.unique(files).to_pylist():
                if re.search(r"\s", entry):
                    raise InvalidParameterError("label", repr(entry), f"{name} holds no file names with blanks")
                if entry not in known:
                    known[entry] = None
                    begin = f"{end} " if stamp else ""
                    file.write(f"{begin}{entry} add\n{begin}{entry} open\n".encode())
            action = _text.operations(batch, _NAMES, name)
            columns = time_columns(batch, [files, action, batch.column("offset"), batch.column("length")])
            _text.write_table(file, columns, options)
            if stamp and batch.num_rows:
                end = int(columns[0][-1])
        stop = f"{end} " if stamp else ""
        file.writelines(f"{stop}{entry} close\n".encode() for entry in known)
