"""ParaHash: strands of control each read a region of the file, and partition it into buckets that they share (Lai et al., WAIM 2013).

Every strand has an input buffer and a set of output buffers; they share the memory that one strand would have.  A bucket is one file, to
which strands append whole buffers: nobody waits for another, only the order of its pages depends on who comes first.
"""

from collections.abc import Sequence

from algorithms.files import Output, regions, together
from algorithms.partitioning.base import PartitionBuffers, PartitionParameters, Route, scan
from flashsim.core.errors import InvalidParameterError
from flashsim.execution.requests import Algorithm
from flashsim.storage.heap_file import File
from flashsim.storage.layout import Layout

OPTIONS = ("strands",)


def check(layouts: Sequence[Layout], buffers: PartitionBuffers, parameters: PartitionParameters) -> None:
    """Refuse more strands than have an input buffer and an output buffer a bucket of one page at least."""
    most = _most_strands(buffers)
    if parameters.strands > most:
        each = f"a page to read and one for each of {buffers.buckets} buckets"
        bound = f"each needs {each}, and {buffers.pages} pages have room for {most}"
        raise InvalidParameterError("strands", parameters.strands, bound)


def distribute(file: File, files: Sequence[File], buffers: PartitionBuffers, route: Route, parameters: PartitionParameters) -> Algorithm:
    """Let strands read a region of the file each; where a bucket is divided again, only as many as have room."""
    parts = regions(0, file.pages, min(parameters.strands, _most_strands(buffers)))
    share = _share(buffers, max(1, len(parts)))
    outputs = [Output(files, share.output, page_io=parameters.page_io) if files else None for _ in parts]
    scans = [
        scan(file, share.input, route, output, page_io=parameters.page_io, region=region)
        for region, output in zip(parts, outputs, strict=True)
    ]
    yield from together(scans)


def _most_strands(buffers: PartitionBuffers) -> int:
    return buffers.pages // (buffers.buckets + 1)


def _share(buffers: PartitionBuffers, strands: int) -> PartitionBuffers:
    """The buffers of one strand: output buffers so many times smaller, and what is left of its pages for input."""
    pages, buckets = buffers.pages // strands, buffers.buckets
    output = min(max(1, buffers.output // strands), (pages - 1) // buckets) if buckets else 0
    return PartitionBuffers(pages - buckets * output, output, buckets)
