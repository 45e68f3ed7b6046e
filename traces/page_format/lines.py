"""One id a line, as the authors of LIRS keep their traces; lines that begin with a star are break points and mean nothing.

An id is a whole number of 64 bits, or a word, which is hashed (`traces.page_format.base.Parser`).
"""

import re
from pathlib import Path

from flashsim.core.transactions import ReferenceBatches, References
from flashsim.storage.packed_files import open_bytes
from traces.format import _text
from traces.page_format.base import PageExample, Parser

TITLE = "an id a line (LIRS)"
GENERIC = True
EXAMPLE = PageExample(b"7\n\n*\n-12\n7\n18446744073709551615\n0x10\n", [7, -12, 7, -1, 16])

#: Mark that some programs put before a text in UTF-8.
_MARK = b"\xef\xbb\xbf"
_STARS = re.compile(rb"(?m)^[ \t]*\*.*$")


def recognise(path: Path) -> bool:
    """Every one of the first lines is one word, or means nothing."""
    if lines := _text.head(path):
        return all(re.fullmatch(rb"\*.*|[^\s,;|\x00-\x1f]{0,1000}", line) for line in lines)
    with open_bytes(path) as file:
        return not file.read(1)


def references(path: Path) -> ReferenceBatches:
    parser = Parser(path, "id", ["id"])
    for first, _, data in _text.chunks(path):
        body = _STARS.sub(b"", data) if b"*" in data else data
        body = body.removeprefix(_MARK) if first == 1 else body
        if not body:
            continue
        lines = parser.lines(first, body)
        lines.refuse(parser.broken_lines(lines), "it has more than one word")
        blank, ids = parser.blank(lines), parser.ids(lines)
        yield References(ids[~blank] if blank.any() else ids)


def write(batches: ReferenceBatches, path: Path) -> None:
    with path.open("wb") as file:
        for batch in batches:
            _text.write_table(file, [batch.pages])
