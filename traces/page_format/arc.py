"""Traces of the authors of ARC: a line a request, of its first page, the number of pages, a field that is ignored, and its own number."""

from pathlib import Path

import pyarrow as pa

from flashsim.core.transactions import ReferenceBatches, References
from traces.format import _text
from traces.page_format.base import PageExample
from traces.references.base import expand

TITLE = "first page, pages, ignored, number of the request (ARC)"
EXAMPLE = PageExample(b"5 3 0 0\n100 1 0 1\n6 2 0 2\n", [5, 6, 7, 100, 6, 7])

_COLUMNS = dict.fromkeys(("first page", "pages", "ignored", "request"), pa.int64())
_MOST_PAGES = 1 << 31


def recognise(path: Path) -> bool:
    return _text.looks_like(path, rb"\d+[ \t]+\d+[ \t]+\d+[ \t]+\d+")


def doubt(path: Path) -> str:
    """The last column must count the requests, and the one before must say nothing."""
    lines = [line.split() for line in _text.head(path) if line]
    fits = all(len(line) == 4 and line[2] == lines[0][2] and int(line[3]) == int(lines[0][3]) + row for row, line in enumerate(lines))
    return "" if fits else "its last column does not count the requests, as ARC's authors have it"


def references(path: Path) -> ReferenceBatches:
    """All pages of each request; nothing is known of writes."""
    for lines in _text.read_words(path, _COLUMNS):
        begin, counts = lines.scaled_column("first page", 1), lines.numbers("pages")
        lines.refuse((counts < 1) | (counts > _MOST_PAGES), f"pages must be in [1, {_MOST_PAGES}]")
        for pages, _ in expand(begin, counts):
            yield References(pages)
