"""Tables of references: the column page, id, key or object, and where there is one, operation or write, and op_count or repeat.

Tables are divided as `traces.format.csv` says; op_count, as CacheLib's traces have it, says how often a line's reference is made.  Ids
are whole numbers of 64 bits, or words, which are hashed (`traces.page_format.base.Parser`).  A reference writes where its operation is a
word such as write, set, put, update, insert or delete, or where the column write holds 1, true or yes.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from flashsim.core.errors import DamagedFileError, InvalidParameterError, option
from flashsim.core.transactions import ReferenceBatches, References
from traces.format import _text
from traces.format import csv as requests
from traces.format._columns import guess
from traces.page_format.base import PageExample, PageTraceFormat, Parser

TITLE = "CSV with a column page, id, key or object"
EXAMPLE = PageExample(
    b"time,key,op\n1,alpha,get\n2,12,SET\n3,alpha,get\n", [3353919139673093786, 12, 3353919139673093786], [False, True, False]
)

#: Names of a column of ids, of which the first that the file has is read, and of a column that marks writes.
_IDS = ("page", "page_id", "id", "key", "object", "object_id", "obj_id")
_OPERATIONS = ("write", "is_write", "operation", "op", "rw", "type")
_READS = "r read get gets get_lease scan select 0 false no"
_WRITES = "w write set set_lease put add replace cas append prepend incr decr update insert upsert delete rmw 1 true yes"
_MEANS = dict.fromkeys(_READS.split(), False) | dict.fromkeys(_WRITES.split(), True)


class _PageColumns(PageTraceFormat):
    """Files whose columns are what their names, or the user, say; what is not given is found by its name."""

    TITLE = TITLE

    def __init__(self, page: str = "", write: str = "", means: Mapping[str, bool] = _MEANS) -> None:
        self._page, self._write, self._means = page, write, means

    def with_options(self, options: str) -> PageTraceFormat:
        """Columns by options, ``page=NAME,write=NAME:READ/WRITE``, the second of which, and its words, may be left out."""
        pairs = [option.strip().partition("=")[::2] for option in options.split(",")]
        columns = dict(pairs)
        name, _, words = columns.get("write", "").partition(":")
        if not columns.get("page") or columns.keys() - {"page", "write"} or not all(columns.values()):
            raise InvalidParameterError("columns", repr(options[:60]), "of a trace of pages it must be page=NAME,write=NAME:READ/WRITE")
        if len(columns) < len(pairs) or columns["page"] == name:
            raise InvalidParameterError("columns", repr(options[:60]), "page and write are named once each, and are two columns")
        means = dict(zip(words.lower().split("/"), (False, True), strict=False)) if words else _MEANS
        return _PageColumns(columns["page"], name, means)

    def _columns(self, names: list[str]) -> tuple[str | None, str | None]:
        plain = {name.lower().replace(" ", "_"): name for name in reversed(names)}
        ids = self._page or next((plain[name] for name in _IDS if name in plain), None)
        return ids, self._write or next((plain[name] for name in _OPERATIONS if name in plain and not self._page), None)

    def recognise(self, path: Path) -> bool:
        """The first line names a column of ids, and it is no trace of requests."""
        lines = _text.head(path)
        names = requests.LineLayout.of(lines[0].decode(errors="replace")).names if lines else []
        return self._columns(names)[0] in names and not requests.recognise(path)

    def references(self, path: Path) -> ReferenceBatches:
        """Ids, and which references write if a column says so."""
        parser = None
        for layout, number, body in requests.bodies(path):
            names, repeats = layout.names, [name for name in layout.names if guess(name)[0] == "repeat"][:1]
            ids, operations = self._columns(names)
            if parser is None:
                if ids not in names or operations not in {*names, None}:
                    why = "no column is page, id, key or object" if ids is None else f"no column is {operations if ids in names else ids}"
                    raise DamagedFileError(f"trace: {path}, line 1: {why}; name one with " + option("columns") + " page=NAME,write=NAME")
                parser = Parser(path, ids, names, layout.delimiter, quotes=True, numbers=repeats)
            if body:
                lines = parser.lines(number, body)
                lines.refuse(parser.blank(lines), f"{ids} is empty")
                pages, writes = parser.ids(lines), None if operations is None else self._writes(lines, operations)
                for rows in requests.repeats(lines, repeats[0]) if repeats else [slice(None)]:
                    yield References(pages[rows], None if writes is None else writes[rows])

    def _writes(self, lines: _text.Lines, column: str) -> _text.Bools:
        words = pc.utf8_trim_whitespace(lines.table.column(column)).combine_chunks().dictionary_encode()
        means = [self._means.get(word.lower(), -1) for word in words.dictionary.to_pylist()]
        writes = np.array(means, np.int8)[words.indices.to_numpy()]
        lines.refuse(writes < 0, f"{column} must be one of {', '.join(self._means)}")
        return writes > 0


_named = _PageColumns()
recognise, with_options, references = _named.recognise, _named.with_options, _named.references
