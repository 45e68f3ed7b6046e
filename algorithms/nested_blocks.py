"""Block nested loops over any two files: chunks of R, each with a hash table, against scans of S."""

from __future__ import annotations

from algorithms.blocks import read_block, spans
from algorithms.hashing import build, probe
from flashsim.execution.requests import Algorithm
from flashsim.storage.heap_file import File


def nested_blocks(r: File, s: File, chunks: int, inner: int, *, page_io: bool) -> Algorithm:
    """Join two files.

    Parameters
    ----------
    chunks
        Into how many chunks of R, as equal as whole pages allow, each read in one I/O block before a scan of S.
    inner
        Pages of S that are read at a time.
    """
    if s.pages == 0:
        return
    for chunk in range(chunks):
        first, end = chunk * r.pages // chunks, (chunk + 1) * r.pages // chunks
        table, work = build((yield from read_block(r, first, end - first, page_io)))
        yield work
        for s_first, s_pages in spans(s.pages, inner):
            yield from probe(table, (yield from read_block(s, s_first, s_pages, page_io)))
