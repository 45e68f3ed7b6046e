"""Steady states of flash drives, kept between runs: making one takes seconds, and reading it a fraction of one."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from flashsim.core.source_files import is_trustworthy, make_private
from flashsim.core.units import GIB
from flashsim.device.device import Device
from flashsim.experiments.runs import kept
from flashsim.experiments.runs.outputs import whole

#: Bytes of all states that are kept, and of one of them, at most.
_ALL, _LARGEST = 4 * GIB, 2 * GIB
_KIND, _END = "states", b"\n"


def recall(device: Device, name: str) -> str | None:
    """Bring an unused drive into the state that is kept under a name; its description, or None: there is no such state."""
    path = kept.place(_KIND, name)
    try:
        if not is_trustworthy(path):
            return None
        with path.open("rb") as file:
            sentence = file.readline().removesuffix(_END).decode()
            if path.stat().st_size != file.tell() + device.content.size:
                return None
            device.content.read_content(file)
        os.utime(path)
    except (OSError, ValueError):
        return None
    return sentence


def keep(device: Device, name: str, sentence: str) -> None:
    """Keep what a drive holds, and its description, under a name; the states that were not used for longest make room."""
    size = device.content.size
    if size > _LARGEST:
        return
    path = kept.place(_KIND, name)
    with suppress(OSError):
        make_private(path.parent)
        _make_room(path.parent, size)
        with whole(path) as partial, partial.open("wb") as file:
            file.write(sentence.encode() + _END)
            device.content.write_content(file)


def _make_room(folder: Path, size: int) -> None:
    states = sorted((each.stat().st_mtime, each.stat().st_size, each) for each in folder.iterdir() if each.is_file())
    excess = sum(bytes_ for _, bytes_, _ in states) + size - _ALL
    for _, bytes_, path in states:
        if excess <= 0:
            break
        path.unlink(missing_ok=True)
        excess -= bytes_
