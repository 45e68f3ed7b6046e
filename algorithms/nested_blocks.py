"""Block nested loops over any two files: chunks of R, each with a hash table, against scans of S."""

from collections.abc import Generator

from algorithms.blocks import read_block, spans
from algorithms.hashing import HashTable, build, build_work, probe
from algorithms.scanning import regions, together
from flashsim.execution.requests import Algorithm, Request, Strand
from flashsim.storage.heap_file import File
from flashsim.storage.rows import Tuples


def nested_blocks(r: File, s: File, chunks: int, inner: int, *, page_io: bool, strands: int = 1) -> Algorithm:
    """Join two files.

    Parameters
    ----------
    chunks
        Into how many chunks of R, as equal as whole pages allow, each read in one I/O block before a scan of S.
    inner
        Pages of S that are read at a time, by all strands together.
    strands
        So many build one table together, each from a region of the chunk, then probe it, each with a region of S (ParaHashJoin: Lai et al.,
        WAIM 2013); fewer do where there are not so many pages.
    """
    if s.pages == 0:
        return
    for chunk in range(chunks):
        first, end = chunk * r.pages // chunks, (chunk + 1) * r.pages // chunks
        table = yield from _table(r, regions(first, end, strands), page_io)
        parts = regions(0, s.pages, min(strands, inner))
        yield from together([_meet(table, s, part, inner // len(parts), page_io) for part in parts])


def _table(r: File, parts: list[tuple[int, int]], page_io: bool) -> Generator[Request, Tuples | Strand | None, HashTable]:
    """A table of the tuples of R in some regions, in their order, whichever is read first."""
    taken: dict[int, Tuples] = {}

    def take(first: int, end: int) -> Algorithm:
        taken[first] = yield from read_block(r, first, end - first, page_io)
        yield build_work(taken[first])

    yield from together([take(*part) for part in parts])
    return build([taken[first] for first, _ in parts])


def _meet(table: HashTable, s: File, part: tuple[int, int], block: int, page_io: bool) -> Algorithm:
    begin, end = part
    for first, pages in spans(end - begin, block):
        yield from probe(table, (yield from read_block(s, begin + first, pages, page_io)))
