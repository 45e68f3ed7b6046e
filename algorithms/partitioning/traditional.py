"""Traditional partitioning: an output buffer a bucket, written by itself when full (Bratbergsengen, VLDB 1984; shin2016, section 1.2)."""

from collections.abc import Sequence

from algorithms.files import Output
from algorithms.partitioning.base import PartitionBuffers, PartitionParameters, Route, scan
from flashsim.execution.requests import Algorithm
from flashsim.storage.heap_file import File


def distribute(file: File, files: Sequence[File], buffers: PartitionBuffers, route: Route, parameters: PartitionParameters) -> Algorithm:
    """Read block after block, and write every buffer when the next tuple would need a page more than it has."""
    output = Output(files, buffers.output, page_io=parameters.page_io, in_series=parameters.in_series) if files else None
    yield from scan(file, buffers.input, route, output, page_io=parameters.page_io, in_series=parameters.in_series)
