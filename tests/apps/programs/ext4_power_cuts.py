"""Power cuts of embedded stores on ext4: on a loop device over a file that ``nbdfuse`` serves from a simulated drive, which logs writes.

A cut leaves the writes that the drive had by then: all of them, those before its last flush, or these and any of the others, which may be
torn between pages of 4 KiB.  Each such image is mounted, which replays the journal, and the store's own check looks at it.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import flashsim as fs
from flashsim.apps.programs import embedded_stores
from flashsim.apps.programs.store_survey import KINDS
from flashsim.apps.serving import command
from flashsim.apps.serving.content import MemoryContent
from flashsim.core.rng import generator

PAGE, MIB = 4096, 1 << 20
#: Bytes of the file system.
SIZE = 48 * MIB
#: The workload's output with the time of each line, after which it is stopped until ext4 has written its journal by itself.
SCRIPT = """
set -e
nbdfuse drive/raw "$uri" & until test -f drive/raw; do kill -0 $!; sleep 0.05; done
mkfs.ext4 -q -b 4096 -E lazy_itable_init=0,lazy_journal_init=0 drive/raw {blocks}
mount -o loop,commit=1 drive/raw disk
mkdir disk/files; sync; date +%s%N > mounted
{python} -c '
import subprocess, signal, sys, time
with subprocess.Popen(sys.argv[1:], cwd="disk/files", stdout=subprocess.PIPE, text=True) as run, open("printed", "w") as printed:
    for line in run.stdout:
        print(time.time_ns(), line, end="", file=printed)
        run.send_signal(signal.SIGSTOP)
        time.sleep({pause})
        run.send_signal(signal.SIGCONT)
' {run}
sleep {pause}
umount disk; fusermount3 -u drive
"""


class Entry(NamedTuple):
    """What the drive is asked for: a write, or a flush if there are no bytes."""

    time: int
    offset: int
    data: bytes


LOG: list[Entry] = []


class LoggedContent(MemoryContent):
    """Content that logs what changes it."""

    def write(self, offset: int, data: bytes) -> None:
        LOG.append(Entry(time.time_ns(), offset, bytes(data)))
        super().write(offset, data)

    def clear(self, offset: int, length: int) -> None:
        for begin in range(offset, offset + min(length, SIZE), MIB):
            LOG.append(Entry(time.time_ns(), begin, bytes(min(MIB, offset + length - begin))))
        super().clear(offset, length)

    def flush(self) -> None:
        LOG.append(Entry(time.time_ns(), 0, b""))


def record(name: str, setting: str, python: str, pause: float) -> tuple[int, list[tuple[int, int]]]:
    """Run a workload; the number of entries before it, and the acknowledgements with their times."""
    LOG.clear()
    for folder in ("drive", "disk"):
        Path(folder).mkdir(exist_ok=True)
    run = shlex.join([python, "-B", embedded_stores.__file__, "run", name, setting])
    Path("script.sh").write_text(SCRIPT.format(blocks=SIZE // PAGE, run=run, python=sys.executable, pause=pause))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "MemoryContent", LoggedContent)
        served = fs.device_serve("intel-x25e-64gb", run="sh script.sh", time_scale=0.0, empty=True)
    assert served.status == 0
    mounted = int(Path("mounted").read_text())
    acknowledged = [(int(when), int(number)) for when, number in (line.split() for line in Path("printed").read_text().splitlines())]
    return sum(each.time < mounted for each in LOG), acknowledged


def images(begin: int, seed: int, each: int = 2) -> Iterator[tuple[int, str, bytes]]:
    """What the drive may hold after each of its entries: the time, how, and its bytes."""
    draw = generator(seed, "power cuts of ext4")
    durable, pending = bytearray(SIZE), list[Entry]()

    def put(image: bytearray, entry: Entry) -> None:
        image[entry.offset : entry.offset + len(entry.data)] = entry.data[: max(0, SIZE - entry.offset)]

    for number, entry in enumerate(LOG):
        if not entry.data:
            for write in pending:
                put(durable, write)
            pending.clear()
            continue
        pending.append(entry)
        if number < begin:
            continue
        when = LOG[number + 1].time if number + 1 < len(LOG) else entry.time
        for how in ("all", "flushed", *["some"] * each):
            image = bytearray(durable)
            for write in pending:
                pages = range(0, len(write.data), PAGE)
                kept = [how == "all" or (how == "some" and draw.random() < 0.5) for _ in pages]
                for page, is_kept in zip(pages, kept, strict=True):
                    if is_kept:
                        put(image, Entry(0, write.offset + page, write.data[page : page + PAGE]))
            yield when, how, bytes(image)


def judge(name: str, setting: str, python: str = sys.executable, pause: float = 1.5, most: int = 400, seed: int = 0) -> dict[str, Any]:
    """Images that were checked, and that fail, by kind and by how much of the drive's cache was lost; needs root and loop devices."""
    begin, acknowledged = record(name, setting, python, pause)
    whole = list(dict.fromkeys((image, tuple(n for t, n in acknowledged if t <= when), how) for when, how, image in images(begin, seed)))
    chosen = whole if len(whole) <= most else [whole[at] for at in sorted(generator(seed, "which").choice(len(whole), most, replace=False))]
    failing, words = Counter[str](), dict[str, str]()
    serve = [python, "-B", embedded_stores.__file__, "serve", name, setting]
    with subprocess.Popen(serve, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin and server.stdout
        for image, numbers, how in chosen:
            Path("image").write_bytes(image)
            Path("acknowledged").write_text("".join(f"{number}\n" for number in numbers))
            subprocess.run(["mount", "-o", "loop", "image", "disk"], check=True)
            try:
                print(os.path.abspath("disk/files"), os.path.abspath("acknowledged"), sep="\t", file=server.stdin, flush=True)
                code, _, answer = server.stdout.readline().strip().partition(" ")
            finally:
                while subprocess.run(["umount", "disk"], stderr=subprocess.DEVNULL).returncode:
                    time.sleep(0.01)  # the process that looked has not ended yet
            if code != "0":
                failing[f"{KINDS[int(code)]}, {how}"] += 1
                words.setdefault(KINDS[int(code)], answer)
        server.stdin.close()
    return {"entries": len(LOG) - begin, "images": len(chosen), "failing": dict(failing), "words": words}


if __name__ == "__main__":
    print(json.dumps(judge(sys.argv[1], sys.argv[2], sys.argv[3])))
