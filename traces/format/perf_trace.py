"""Text of ``perf trace`` (Linux, ``tools/perf``): the requests that the calls cause of a device, on a host as in `traces.format.calls`."""

from io import TextIOWrapper
from pathlib import Path

from flashsim.core.request import FLUSH, READ, WRITE
from flashsim.storage.packed_files import open_bytes
from traces.calls.host import HostSettings
from traces.calls.perf import LINE, recording_of
from traces.calls.schema import Recording
from traces.format._text import looks_like
from traces.format.base import Example
from traces.format.calls import Host


class _PerfTrace(Host):
    NAME = "perf-trace"
    TITLE = "text of perf trace, through a page cache and a file system"
    BASIS = "calls as perf trace prints them in its first lines; times in ms"
    LEAVES_OUT = "calls that reach no device, names of files that are made, renamed or removed, contents, mapped memory"

    def recognise(self, path: Path) -> bool:
        return looks_like(path, LINE.pattern.encode())

    def recording(self, path: Path) -> Recording:
        with TextIOWrapper(open_bytes(path), "utf-8", "backslashreplace") as lines:
            return recording_of(lines, path)


_host = _PerfTrace(HostSettings())
TITLE, LEAVES_OUT, BASIS = _host.TITLE, _host.LEAVES_OUT, _host.BASIS
recognise, configured, read = _host.recognise, _host.configured, _host.read
EXAMPLE = Example(
    b"""     1.000 ( 0.010 ms): shop/7 openat(dfd: CWD, filename: 0xe71f1d00, flags: RDWR|CLOEXEC)                     = 3
     1.020 ( 0.010 ms): shop/7 pread64(fd: 3</a>, buf: 0x7ffd, count: 100)                             = 100
     1.060 (         ): shop/7 pwrite64(fd: 4</b>, buf: 0x7ffd, count: 4096)                           ...
     1.060 ( 0.020 ms): shop/7  ... [continued]: pwrite64())                                           = 4096
     1.100 ( 0.010 ms): shop/7 fsync(fd: 4)                                                            = 0
""",
    [
        (READ, 128 << 20, 4096, 1_020_000),
        (WRITE, (128 << 20) + 4096, 4096, 1_100_000),
        (WRITE, 0, 4 * 4096, 1_100_000),
        (FLUSH, 0, 0, 1_100_000),
        (WRITE, 4 * 4096, 4096, 1_100_000),
        (WRITE, 64 << 20, 3 * 4096, 1_100_000),
    ],
)
