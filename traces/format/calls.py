"""Recordings of programs (`traces.calls.schema`), as the requests that they cause of a device, through a page cache and a file system.

Options are those of `traces.calls.page_cache.HostSettings`, such as ``calls:memory=256MiB,read-ahead=0B,journal=no``.
"""

import io
import warnings
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from flashsim.core.errors import DamagedFileError, FlashsimWarning
from flashsim.core.request import FLUSH, READ, WRITE
from flashsim.core.units import NEVER
from flashsim.storage.packed_files import open_bytes
from traces.calls.device_requests import DeviceRequests
from traces.calls.page_cache import HostSettings
from traces.calls.schema import KEY, Recording, table_of
from traces.file.schema import DAMAGE, Batches
from traces.format.base import Example, Format
from traces.references.base import parse

TITLE = "a recording of a program, through a page cache and a file system"
BASIS = "Parquet with the mark of a recording"
LEAVES_OUT = "calls that reach no device, contents, and what was read or written through mapped memory"


class RecordingHost(Format):
    """Recordings, on a host with settings of its own."""

    NAME, TITLE, LEAVES_OUT, BASIS = "calls", TITLE, LEAVES_OUT, BASIS

    def __init__(self, settings: HostSettings) -> None:
        self._settings = settings

    def recording(self, path: Path) -> Recording:
        return Recording.read(path)

    def recognise(self, path: Path) -> bool:
        """The metadata of a Parquet file say that it is one."""
        with path.open("rb") as file:
            if file.read(4) != b"PAR1":
                return False
        try:
            return KEY in (pq.read_metadata(path).metadata or {})
        except DAMAGE:
            return False

    def with_options(self, options: str) -> Format:
        return type(self)(parse(f"{self.NAME}:{options}", HostSettings, {}))

    def read(self, path: Path) -> Batches:
        """The requests in order of their issue, with what each waited for."""
        recording = self.recording(path)
        for name in ("time", "duration", "offset", "length"):
            values = pc.fill_null(recording.table[name], 0).to_numpy()
            if len(values) and not 0 <= values.min() <= values.max() < NEVER // 4:
                raise DamagedFileError(f"{path}: call {int(np.argmax((values < 0) | (values >= NEVER // 4)))}: its {name} is out of bounds")
        for line in recording.missed:
            warnings.warn(f"trace: {path} does not have {line}", FlashsimWarning, stacklevel=2)
        batches = DeviceRequests(recording.table, self._settings, recording.extents).batches()
        yield from batches if recording.facts.get("timed", True) else map(_without_times, batches)


class RecordingInText(RecordingHost):
    """Recordings that lines of text tell, on a host with settings of its own."""

    #: What ends a line, as of `io.TextIOWrapper`.
    NEWLINE: str | None = None

    @staticmethod
    def recording_of(lines: Iterable[str], source: Path) -> Recording:
        """The recording that lines tell; a `DamagedFileError` names their source, and a line that is of another kind."""
        raise NotImplementedError

    def recording(self, path: Path) -> Recording:
        with io.TextIOWrapper(open_bytes(path), "utf-8", "backslashreplace", newline=self.NEWLINE) as lines:
            return self.recording_of(lines, path)


def _without_times(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Requests of calls of which only the order is known."""
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    columns |= {"think": pa.array(np.zeros(batch.num_rows, np.int64)), "arrival": pa.nulls(batch.num_rows, pa.int64())}
    return pa.record_batch([*columns.values()], schema=batch.schema)


def _example() -> bytes:
    """A file is read, a page of another one is written, and made durable."""
    common = {"process": 1, "thread": 1, "kind": "file", "duration": 10, "flags": 0}
    rows = [
        {"time": 0, "call": "pread64", "file": 0, "path": "/a", "offset": 0, "length": 100, "result": 100},
        {"time": 50, "call": "pwrite64", "file": 1, "path": "/b", "offset": 0, "length": 4096, "result": 4096},
        {"time": 90, "call": "fsync", "file": 1, "path": "/b", "result": 0},
    ]
    content = io.BytesIO()
    Recording(table_of([common | row for row in rows])).write(content, {})
    return content.getvalue()


_FILES, _META = 128 << 20, 64 << 20
EXAMPLE = Example(
    _example(),
    [
        (READ, _FILES, 4096, 0),
        (WRITE, _FILES + 4096, 4096, 90),
        (WRITE, 0, 4 * 4096, 90),
        (FLUSH, 0, 0, 90),
        (WRITE, 4 * 4096, 4096, 90),
        (WRITE, _META, 3 * 4096, 90),
    ],
)
_host = RecordingHost(HostSettings())
recognise, with_options, read = _host.recognise, _host.with_options, _host.read
