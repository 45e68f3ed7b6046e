"""Files of other tools: each is read, or refused in one line that says what it is and what to do, and what it says can be done."""

from __future__ import annotations

import gzip
import re
import shlex
from contextlib import nullcontext
from pathlib import Path

import pytest

from flashsim.core.errors import DamagedFileError, FlashsimWarning
from flashsim.core.request import FLUSH, READ, TRIM, WRITE
from flashsim.core.units import MILLISECONDS, SECONDS
from tests.commands import Run
from traces.file.excerpt import excerpt
from traces.file.schema import SCHEMA
from traces.format import read_trace, recognise

_BLOCKS_OF_11 = """\
2024-01-15 10:30:45.123456,1234,python3,2048000,write,8192,1.234,1235,16,0,1233
2024-01-15 10:30:45.123556,1234,python3,2048016,read,4096,1.567,1235,8,1,1233
2024-01-15 10:30:45.345678,1234,python3,0,flush,0,2.345,1235,0,2,1233
"""
_BLOCKS_OF_13 = """\
2024-01-15 10:30:45.123456,1234,python3,2048000,write,8192,1.234,1235,0,1233,8:0,0.123,REQ_SYNC|REQ_META
2024-01-15 10:30:45.234567,1234,python3,2048016,discard,4096,0.567,1235,1,1233,259:1,,
2024-01-15 10:30:45.345678,1234,python3,0,write,0,2.345,1235,2,1233,8:0,,REQ_PREFLUSH
2024-01-15 10:30:45.345679,1234,python3,0,none,0,2.345,1235,2,1233,8:0,,
"""
_FILES_OF_11 = """\
2024-01-15 10:30:45.100000,READ,5678,cat,/etc/hosts,512,456789,O_RDONLY,50000,0,5678
2024-01-15 10:30:45.200000,DIO_WRITE,9999,postgres,/var/lib/postgres/data,8192,111222,O_DIRECT,250000,16384,9999
2024-01-15 10:30:45.300000,MSYNC,1234,python3,/home/user/mmap.dat,4096,789014,MS_SYNC,120000,0,1235
"""
#: A direct write, which two probes see; and a write that nothing makes durable, to a file that is then renamed.
_FILES_OF_10 = """\
2024-01-15 10:30:45.100000,WRITE,1234,python3,/a,4096,7,,8192,1235
2024-01-15 10:30:45.100001,DIO_WRITE,1234,python3,/a,4096,7,,8192,1235
2024-01-15 10:30:45.200000,WRITE,1234,python3,/b,4096,8,,,1235
2024-01-15 10:30:45.300000,RENAME,1234,python3,/b -> /c,0,8,,,1235
2024-01-15 10:30:45.400000,FSYNC,1234,python3,/c,0,8,,,1235
"""
#: Text of blkparse of Linux 2.6: no flags of syncs, and a barrier, before which the drive empties its cache.
_OLD_BLKPARSE = """\
  8,0    3        1     0.000000000   697  G   W 223490 + 8 [kjournald]
  8,0    3        2     0.000001829   697  P   R [kjournald]
  8,0    3        3     0.000002197   697  Q   W 223490 + 8 [kjournald]
  8,0    3        4     0.000005000   697  D   W 223490 + 8 [kjournald]
  8,0    3        5     0.000007000   697  Q  WB 223498 + 8 [kjournald]
  8,0    3        6     0.000008000   697  D  WB 223498 + 8 [kjournald]
  8,0    3        7     0.000010000     0  C   W 223490 + 8 [0]
  8,0    3        8     0.000012000     0  C  WB 223498 + 8 [0]
"""
#: What is read: the text, its format, and operation and bytes of the first requests.
READ_FILES = {
    "ds of 11 columns": (_BLOCKS_OF_11, "io-tracer", [(READ, 4096), (WRITE, 8192), (FLUSH, 0)]),
    "ds of 13 columns": (_BLOCKS_OF_13, "io-tracer", [(WRITE, 8192), (TRIM, 4096), (FLUSH, 0)]),
    "fs of 11 columns": (_FILES_OF_11, "io-tracer", [(READ, 4096), (WRITE, 8192)]),
    "fs of 10 columns": (_FILES_OF_10, "io-tracer", [(WRITE, 4096), (WRITE, 4096)]),
    "blkparse of Linux 2.6": (_OLD_BLKPARSE, "blkparse", [(WRITE, 4096), (FLUSH, 0), (WRITE, 4096)]),
}
WARNED = {"ds of 13 columns": "no requests are left out: none", "fs of 11 columns": "what events did: MSYNC"}
_BIOSNOOP = """\
TIME(s)     COMM           PID     DISK      T SECTOR     BYTES  LAT(ms)
0.000000    jbd2/nvme0n1-8 1230    nvme0n1   W 2048000    8192      0.52
0.000850    postgres       1234    nvme0n1   R 2048016    4096      0.11
"""
_PROCMON = """\
"Time of Day","Process Name","PID","Operation","Path","Result","Detail"
"10:30:45.1234567 AM","shop.exe","1234","ReadFile","C:\\shop.mdf","SUCCESS","Offset: 8,192, Length: 8,192"
"""
_VMSTAT = """\
procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu-----
 r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st
 1  0      0 203028  12345 345678    0    0     1     8   10   20  1  0 99  0  0
"""
_IOSTAT = """\
Linux 6.1.0-18-amd64 (shop)     01/15/2024      _x86_64_        (4 CPU)

avg-cpu:  %user   %nice %system %iowait  %steal   %idle
           0.52    0.00    0.25    0.11    0.00   99.12

Device            r/s     rkB/s   rrqm/s  %rrqm r_await rareq-sz     w/s     wkB/s
nvme0n1          1.02     32.10     0.10   8.93    0.21    31.47    2.10     40.20
"""
#: What is refused: the text, and what is said of it.
REFUSED = {
    "fs of 9 columns": ("2024-01-15 10:30:45.123456,WRITE,1234,python3,/a,4096,789012,O_RDWR,0\n", r"tells no offsets .*ds_\*.csv.gz"),
    "cache": ("2024-01-15 10:30:45.123456,1234,python3,HIT,789012,100,256,0,2049,1\n", "io-tracer's table of page-cache.*block events"),
    "nw": ("2024-01-15 10:30:45.123456,1234,curl,192.168.1.1,93.184.216.34,54321,443,512,send\n", "io-tracer's table .*network events"),
    "pagefault": ("2024-01-15 10:30:45.123456,1,1,python3,READ,MAJOR,789012,100,0x7f8a4c000000,2049\n", "io-tracer's table .*page-fault"),
    "fio's latencies": ("0, 101500, 0, 4096, 0\n1, 98200, 1, 4096, 0\n", "fio's log of latency, .*--write_iolog=FILE"),
    "fio's bandwidths": ("500, 20480, 0, 0\n1000, 20512, 0, 0\n", "fio's log of latency, bandwidth or IOPS.*--write_iolog=FILE"),
    "fio's latencies with places": ("0, 101500, 0, 4096, 8192, 0\n1, 98200, 1, 4096, 12288, 0\n", r"fio's log with places.*--columns"),
    "iostat": (_IOSTAT, "output of iostat: it has no requests; record them with blktrace"),
    "vmstat": (_VMSTAT, "output of vmstat: it has no requests; record them with blktrace"),
    "biosnoop": (_BIOSNOOP, "output of bcc's biosnoop: read it with .*--columns"),
    "biosnoop.bt": (
        "Attaching 4 probes...\nTIME(ms)     DISK     COMM      PID    LAT(ms)\n611  nvme0n1  bash   4179   10\n",
        "biosnoop.bt",
    ),
    "biolatency": ("     usecs           : count     distribution\n   64 -> 127 : 1 |*|\n", "histograms of bcc or bpftrace"),
    "biotop": ("08:04:11 loadavg: 1.48\n\nPID    COMM             D MAJ MIN DISK       I/O  Kbytes  AVGms\n", "output of biotop"),
    "iotop": ("Total DISK READ :       0.00 B/s | Total DISK WRITE :      15.63 K/s\n", "output of iotop"),
    "procmon": (_PROCMON, "a table of Process Monitor: .*record the drive with DiskMon"),
    "diskmon": ("0\t12.345\t0.00012\t0\tRead\t2048000\t16\n1\t12.346\t0.00008\t0\tWrite\t2048016\t8\n", "a log of DiskMon: .*--columns"),
    "diskmon's clock": ("0\t10:30:45.123\t0.00012\t0\tRead\t2048000\t16\n", "a log of DiskMon: with times in s .Clock Time off"),
    "ftrace": (
        "# tracer: nop\n#\n  bash-12  [000] d..1  1234.567: block_rq_issue: 8,0 R 4096 () 2048 + 8 [bash]\n",
        "text of ftrace.*blktrace",
    ),
    "perf script": ("  fio  1234 [000]  1234.567890: block:block_rq_issue: 8,0 R 4096 () 2048 + 8 [fio]\n", "perf script: .*blktrace"),
    "perf trace -s": (" Summary of events:\n\n python3 (1234), 1034 events, 99.8%\n", "sums of perf trace -s.* strace -f -y -ttt -T"),
    "strace -c": ("% time     seconds  usecs/call     calls    errors syscall\n------\n", "sums of strace -c.*strace -f -y -ttt -T"),
    "perf.data": ("PERFILE2\0\0\0", "data of perf: .*perf trace -i FILE > run.txt"),
}
#: Requests of the files that are read as a message says: operation and bytes.
AS_SAID = {
    "biosnoop": [(WRITE, 8192), (READ, 4096)],
    "fio's latencies with places": [(READ, 4096), (WRITE, 4096)],
    "diskmon": [(READ, 8192), (WRITE, 4096)],
}


@pytest.mark.parametrize("name", READ_FILES)
@pytest.mark.parametrize("packed", [False, True])
def test_files_that_are_read(name: str, packed: bool, tmp_path: Path) -> None:
    text, format_name, requests = READ_FILES[name]
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    assert recognise(path) == format_name
    with pytest.warns(FlashsimWarning, match=WARNED[name]) if name in WARNED else nullcontext():
        rows = [row for batch in read_trace(path) for row in batch.to_pylist()]
    of_data = [
        (row["operation"], row["length"]) for row in rows if format_name != "io-tracer" or "fs" not in name or row["offset"] >= 128 << 20
    ]
    assert of_data[: len(requests)] == requests


def test_block_events_have_the_times_and_devices_of_io_tracer(tmp_path: Path) -> None:
    (tmp_path / "ds.csv").write_text(_BLOCKS_OF_13)
    with pytest.warns(FlashsimWarning):
        rows = [row for batch in read_trace(tmp_path / "ds.csv") for row in batch.select(SCHEMA.names).to_pylist()]
    assert [(row["offset"], row["device"], row["label"]) for row in rows] == [
        (2048000 * 512, 0, "8,0"),
        (2048016 * 512, 1, "259,1"),
        (0, 0, "8,0"),
    ]
    assert [row["completed"] - row["arrival"] for row in rows] == [1_234_000, 567_000, 2_345_000]
    assert rows[0]["completed"] == 1_705_314_645 * SECONDS + 123_456_000


def test_a_direct_write_that_two_probes_see_is_one_write(tmp_path: Path) -> None:
    (tmp_path / "fs.csv").write_text(_FILES_OF_10)
    rows = [row for batch in read_trace(tmp_path / "fs.csv") for row in batch.to_pylist()]
    writes = [row for row in rows if row["operation"] == WRITE and row["offset"] >= 128 << 20]
    assert [row["length"] for row in writes] == [4096, 4096]
    assert [row["arrival"] // MILLISECONDS for row in writes] == [0, 300], "the direct one at once, the other with its sync"


def _refusal(flashsim: Run, text: str) -> str:
    """The one line with which a file of a text is refused."""
    Path("file").write_text(text)
    result = flashsim("trace info file")
    assert result.exit_code == 2
    assert result.output.count("\n") == 1
    return result.output.strip()


@pytest.mark.parametrize("name", REFUSED)
def test_files_that_are_refused_say_what_to_do(name: str, flashsim: Run) -> None:
    text, message = REFUSED[name]
    line = _refusal(flashsim, text)
    assert re.search(message, line), line


@pytest.mark.parametrize("name", AS_SAID)
def test_what_the_message_says_can_be_done(name: str, flashsim: Run) -> None:
    words = shlex.split(_refusal(flashsim, REFUSED[name][0]).partition("read it with ")[2])
    assert words[:3] == ["--format", "csv", "--columns"]
    rows = [row for batch in excerpt(Path("file"), "csv", columns=words[3]).batches() for row in batch.to_pylist()]
    assert [(row["operation"], row["length"]) for row in rows] == AS_SAID[name]
    assert all(row["arrival"] is not None for row in rows)


@pytest.mark.parametrize(
    "line", ["2024-01-15 10:30:45.1,1,a,x,read,1,1,1,1,1,1", "2024-13-15 10:30:45.1,1,a,8,read,512,1,1,1,1,1", "nothing"]
)
def test_a_line_that_is_no_event_is_named(line: str, tmp_path: Path) -> None:
    (tmp_path / "ds.csv").write_text(f"{_BLOCKS_OF_11}{line}\n")
    with pytest.raises(DamagedFileError, match=r"ds.csv, line 4: "):
        list(read_trace(tmp_path / "ds.csv"))
