"""Tables of references with a header: the column page, id, key or object, and where there is one, operation or write.

Ids are whole numbers of 64 bits, or words, which are hashed (`traces.page_format._ids`).  A reference writes where its operation is a word
such as write, set, put, update, insert or delete, or where the column write holds 1, true or yes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from flashsim.core.errors import DamagedFileError
from flashsim.core.references import ReferenceBatches, References
from traces.format import _text
from traces.format import csv as requests
from traces.page_format import _ids
from traces.page_format.base import PageExample

TITLE = "CSV with a column page, id, key or object"
EXAMPLE = PageExample(
    b"time,key,op\n1,alpha,get\n2,12,SET\n3,alpha,get\n", [3353919139673093786, 12, 3353919139673093786], [False, True, False]
)

#: What a column of ids may be called, the first that is there; and one that tells writes.
_IDS = ("page", "page_id", "id", "key", "object", "object_id", "obj_id")
_OPERATIONS = ("write", "is_write", "operation", "op", "rw", "type")
_READS = "r read get gets scan select 0 false no"
_WRITES = "w write set put add replace cas append prepend incr decr update insert upsert delete rmw 1 true yes"
_MEANS = dict.fromkeys(_READS.split(), False) | dict.fromkeys(_WRITES.split(), True)


def _columns(line: str) -> tuple[str, list[str], str | None, str | None]:
    """What separates fields, the names in a first line, that of the ids, and that of what is done with them."""
    delimiter, names = requests.header(line)
    plain = {name.lower().replace(" ", "_"): name for name in reversed(names)}
    ids, operations = (next((plain[name] for name in known if name in plain), None) for known in (_IDS, _OPERATIONS))
    return delimiter, names, ids, operations


def recognise(path: Path) -> bool:
    """The first line names a column of ids, and it is no trace of requests."""
    lines = _text.head(path)
    return bool(lines) and _columns(lines[0].decode(errors="replace"))[2] is not None and not requests.recognise(path)


def references(path: Path) -> ReferenceBatches:
    """Ids, and which references write if a column says so."""
    delimiter, names, ids, operations = ",", list[str](), None, None
    parser = None
    for number, _, data in _text.chunks(path):
        body = data.replace(b'"', b"")
        if parser is None:
            title, _, body = body.partition(b"\n")
            number += 1
            delimiter, names, ids, operations = _columns(title.decode(errors="replace"))
            if ids is None or len(set(names)) < len(names):
                why = "no column is page, id, key or object" if ids is None else "two columns have the same name"
                raise DamagedFileError(f"trace: {path}, line 1: {why}")
            parser = _ids.Parser(path, ids, names, delimiter)
        if body:
            lines = parser.lines(number, body)
            lines.refuse(parser.blank(lines), f"{ids} is empty")
            yield References(parser.ids(lines), None if operations is None else _writes(lines, operations))


def _writes(lines: _text.Lines, column: str) -> _text.Bools:
    words = pc.utf8_trim_whitespace(lines.table.column(column)).combine_chunks().dictionary_encode()
    means = [_MEANS.get(word.lower(), -1) for word in words.dictionary.to_pylist()]
    found = np.array(means, np.int8)[words.indices.to_numpy()]
    lines.refuse(found < 0, f"{column} must be one of {', '.join(_MEANS)}")
    return found > 0
