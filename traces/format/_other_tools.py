"""Files of other tools that are no traces, or whose columns no format has: what a file is, and what to do instead of reading it."""

import re
from pathlib import Path

from flashsim.core.errors import option
from flashsim.storage.packed_files import open_bytes
from traces.format._text import head

_CLOCK = r"\d{1,2}:\d\d:\d\d(\.\d+)?( [AP]M)?"
_DATE = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+"
_RECORD = "it has no requests; record them with blktrace -d DEVICE -o NAME, and read NAME.blktrace.0"
_CALLS = "record the calls: strace -f -y -ttt -T -o run.txt COMMAND"
_TABLE = "read it with " + option("format") + " csv " + option("columns") + " "
#: What a file begins with that is no text.
_BEGINS = {
    b"PERFILE2": "data of perf: make text of a recording of perf trace with perf trace -i FILE > run.txt, and read that",
    b"\x17\x08Dtracing": "data of trace-cmd: record with blktrace -d DEVICE -o NAME, and read NAME.blktrace.0",
}
#: Patterns of the first lines of a text, of which one that fits anywhere in them decides; what the text is, and what to do.
_TEXTS = {
    r"avg-cpu: +%user|Device:? +(r/s|tps|rrqm/s) .*": f"output of iostat: {_RECORD}",
    r"procs -+memory-+.*|disk- -+reads-+.*": f"output of vmstat: {_RECORD}",
    r"Total DISK READ *:.*": f"output of iotop: {_RECORD}",
    r"PID +COMM +D MAJ MIN DISK .*": f"output of biotop: {_RECORD}",
    r"\S+ +: count +distribution|@\w*\[.*\]: *|\[\d+[KMG]?, \d+[KMG]?\) +\d+ \|.*\|": f"histograms of bcc or bpftrace: {_RECORD}",
    r"TIME\(ms\) +DISK +COMM +PID +LAT\(ms\)": "output of bpftrace's biosnoop.bt, without places and sizes: " + _RECORD,
    r"TIME\(s\) +COMM +PID +DISK +T +SECTOR +BYTES +LAT\(ms\)": "output of bcc's biosnoop: "
    + _TABLE
    + "'time=TIME(s):s,operation=T,offset=SECTOR:sectors,length=BYTES:bytes,latency=LAT(ms):ms,label=DISK'",
    r"\d+, \d+, [0-2], \d+, \d+, \d+": "fio's log with places (log_offset): "
    + _TABLE
    + "time=1:ms,operation=3:0/1/2,length=4:bytes,offset=5:bytes",
    r"\d+, \d+, [0-2], \d+(, \d+)?": "fio's log of latency, bandwidth or IOPS: it has no places of requests; fio --write_iolog=FILE writes "
    "them, and flashsim device identify --from takes fio's JSON beside such logs",
    r'"?Time of Day"?,"?Process Name"?,"?PID"?,"?Operation"?,.*': "a table of Process Monitor: it has places in files and not on a drive; "
    "record the drive with DiskMon, and read what it saves",
    rf"\d+\t({_CLOCK}|\d+\.\d+)\t\d+\.\d+\t\d+\t(Read|Write)\t\d+\t\d+": "a log of DiskMon: with times in s (Clock Time off) "
    + _TABLE
    + "time=2:s,latency=3:s,device=4,operation=5,offset=6:sectors,length=7:sectors",
    r".* \[\d+\] .*\d+\.\d+: (block:)?block_\w+: .*": "text of ftrace, trace-cmd or perf script: record with blktrace -d DEVICE -o NAME, "
    "and read NAME.blktrace.0",
    r"Summary of events:|syscall +calls +(errors +)?total +min .*": f"sums of perf trace -s, which are no calls: {_CALLS}",
    r"% time +seconds +usecs/call +calls +errors +syscall": f"sums of strace -c, which are no calls: {_CALLS}",
    rf"{_DATE},(\d+,[^,]*,([A-Z_]+,\d+,\d+,|[\d.:a-f]+,[\d.:a-f]+,\d+,\d+,\d+,)|\d+,\d+,[^,]*,(READ|WRITE),M).*": "io-tracer's table of "
    "page-cache, page-fault or network events: read its block events, ds_*.csv.gz, or its file events, fs_*.csv.gz",
}


def advice_of(path: Path) -> str:
    """What a file of another tool is and what to do with it; nothing of other files."""
    with open_bytes(path) as file:
        begin = file.read(max(map(len, _BEGINS)))
    lines = [line.decode(errors="replace") for line in head(path)]
    by_text = (advice for pattern, advice in _TEXTS.items() if any(re.fullmatch(pattern, line) for line in lines))
    return next((advice for magic, advice in _BEGINS.items() if begin.startswith(magic)), "") or next(by_text, "")
