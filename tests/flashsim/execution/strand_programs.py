"""Drawn programs of strands on tiny machines, full of events that fall on one nanosecond."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from flashsim.core.errors import DeadlockError
from flashsim.core.request import SECTOR, Completions, Integers, Requests
from flashsim.core.rng import generator
from flashsim.device.device import Device
from flashsim.device.presets import Preset
from flashsim.device.station import StationParameters
from flashsim.device.striped import Striping
from flashsim.execution.cpu import CpuModel
from flashsim.execution.machine import Machine
from flashsim.execution.requests import (
    HOST,
    Acquire,
    Algorithm,
    Cpu,
    Flush,
    Latch,
    Mode,
    Phase,
    Psync,
    Read,
    Release,
    Sleep,
    Spawn,
    Strand,
    Wait,
    Write,
)  # fmt: skip
from flashsim.execution.run import ConcurrentRun
from flashsim.storage.heap_file import File, HeapFile
from flashsim.storage.layout import Layout
from flashsim.storage.rows import FixedRows, Tuples, key_tuples
from flashsim.storage.volume import Extents
from flashsim.testing import disks
from flashsim.testing import flash_drives as drives

PAGE = 2048
PAGES = 12  # of each base file, and of the room for temporary ones


def station(servers: int, service: int, rate: int = 0, model: str = "engine") -> Device:
    """Servers that take a fixed time a request, and for its bytes."""
    return Device(Preset("station", "station", "", StationParameters(service, service, servers=servers, rate=rate), {}), model)


class Places:
    """A volume and its content: base file number i lies on device i, temporary files in the room behind."""

    resets_zones = False

    def locate(self, file: File, starts: Integers, counts: Integers) -> Extents:
        device, number = (int(part) for part in file.name.split("."))
        base = 0 if number == 0 else PAGES
        first = starts if number == 0 else np.minimum((starts + 5 * number) % PAGES, PAGES - counts)
        return Extents(device, (base + first) * PAGE, counts * PAGE)

    def device(self, file: File) -> int:
        return int(file.name.split(".")[0])

    def extend(self, file: File, count: int) -> None:
        file.pages += count

    def metadata_due(self, now: bool = False) -> list[Extents]:
        return []

    def read(self, file: File, starts: Integers, counts: Integers) -> Tuples:
        return _tuples(int(counts.sum()))

    def write(self, file: File, starts: Integers, counts: Integers, tuples: Tuples) -> None:
        """Nothing is kept."""


def _tuples(pages: int) -> Tuples:
    return key_tuples(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(pages + 1, np.int64))


LAYOUT = Layout(FixedRows("digest", {"key": 8, "row": 4}), PAGE)


@dataclass
class Kept:
    """A sink that keeps everything."""

    rows: list[Any] = field(default_factory=list)

    def record(self, requests: Requests, completions: Completions | None, label: str, after: int | None = None) -> None:
        times = [] if completions is None else completions[["submitted", "started", "completed"]].tolist()
        self.rows.append((requests.tolist(), times, label, after))

    def close(self) -> None:
        """Nothing to do."""


def cpu_model(cores: int) -> CpuModel:
    """Work of 10 ns a unit, on the host and in the device."""
    prices = {"default": 10.0}
    kernel = {"hdd": 20.0, "ssd": 10.0, "station": 10.0}
    return CpuModel(
        "tiny",
        {"page": 0.0, **prices},
        kernel,
        dict.fromkeys(kernel, 0.0),
        {},
        {HOST: cores, "device": 1},
        {"device": prices},
        {"hdd": 10.0, "ssd": 5.0},
    )


def machine(seed: int, model: str = "engine", most: int = 3) -> Machine:
    """1 to 3 devices, or `most`, and 1 to 4 cores."""
    draw = generator(seed, "machine")
    devices: list[Any] = []
    for number in range(int(draw.integers(1, most + 1))):
        kind = draw.choice(["hdd", "ssd", "station"])
        if kind == "station":
            devices.append(station(int(draw.integers(1, 4)), int(draw.choice([10, 100, 130])), int(draw.choice([0, 2048 * 10**9])), model))
            continue
        own = int(draw.integers(50)) * 3 + number
        parameters: Any = disks.random_drive(own) if kind == "hdd" else replace(drives.random_drive(own), endurance=0, wear="none")
        if parameters.capacity < 2 * PAGES * PAGE:
            parameters = disks.small_drive() if kind == "hdd" else drives.drive()
        array = Striping(drives=int(draw.integers(2, 4)), stripe=8 * SECTOR) if kind == "hdd" and draw.random() < 0.3 else None
        devices.append(Device(Preset(str(kind), str(kind), "", parameters, {}, array=array), model))
    return Machine(devices, cpu_model(int(draw.integers(1, 5))), Kept())


class Program:
    """Strands that are drawn as they run, each from its own seed; at most `most` of them."""

    def __init__(self, seed: int, devices: int, most: int) -> None:
        self.seed, self.most = seed, most
        self.files = [HeapFile(f"{number}.0", LAYOUT, temporary=False, pages=PAGES) for number in range(devices)]
        self.common = File("0.99", LAYOUT)  # to which all strands append
        self.latches = [Latch(name) for name in "abc"]
        self.begun = 1

    def strand(self, number: int = 0) -> Algorithm:
        draw = generator(self.seed, f"strand {number}")
        temporary = File(f"{int(draw.integers(len(self.files)))}.{number + 1}", LAYOUT)
        children: list[Strand] = []
        held: list[Latch] = []
        for _ in range(int(draw.integers(5, 25))):
            action = draw.choice(
                ["read", "read", "write", "psync", "cpu", "cpu", "sleep", "spawn", "spawn", "spawn", "wait", "latch", "flush", "phase"]
            )
            if action == "spawn" and self.begun < self.most:
                self.begun += 1
                child = yield Spawn(self.strand(self.begun - 1))
                assert isinstance(child, Strand)
                children.append(child)
            elif action == "wait":
                yield Wait(children)
            elif action == "latch":
                yield from self._latch(draw, held)
            elif action == "psync":
                yield from self._psync(draw, temporary)
            else:
                yield from self._work(draw, str(action), temporary)
        for latch in held:
            yield Release(latch)

    def alone(self) -> Algorithm:
        """What the serial driver takes too: requests and sets of them, and work of the host."""
        draw = generator(self.seed, "alone")
        temporary = File(f"{int(draw.integers(len(self.files)))}.1", LAYOUT)
        for _ in range(int(draw.integers(5, 25))):
            action = str(draw.choice(["read", "write", "psync", "psync", "cpu", "flush", "phase"]))
            if action == "cpu":
                yield Cpu({"hash": int(draw.integers(0, 30))})
            elif action == "psync":
                yield from self._psync(draw, temporary)
            else:
                yield from self._work(draw, action, temporary)

    def _latch(self, draw: np.random.Generator, held: list[Latch]) -> Algorithm:
        free = [latch for latch in self.latches if not held or latch.name > max(other.name for other in held)]
        if held and (draw.random() < 0.6 or not free):
            yield Release(held.pop(int(draw.integers(len(held)))))
        else:
            latch = free[int(draw.integers(len(free)))]
            yield Acquire(latch)
            held.append(latch)

    def _psync(self, draw: np.random.Generator, temporary: File) -> Algorithm:
        """A set of reads of any files, or of writes: pages that are new, and some of base files."""
        count = int(draw.integers(1, 4))
        chosen = [self.files[int(number)] for number in draw.integers(0, len(self.files), count)]
        if draw.random() < 0.5:
            ones = [draw.integers(1, 4, int(draw.integers(0, 3))) for _ in chosen]
            yield Psync([Read(file, draw.integers(0, PAGES - 3, len(counts)), counts) for file, counts in zip(chosen, ones, strict=True)])
            return
        new = Write(temporary, temporary.pages + np.arange(count), np.ones(count, np.int64), _tuples(count))
        others = [Write(file, np.array([int(draw.integers(PAGES))]), np.array([1]), _tuples(1)) for file in dict.fromkeys(chosen)]
        yield Psync([new, *others])

    def _work(self, draw: np.random.Generator, action: str, temporary: File) -> Algorithm:
        count = int(draw.integers(1, 4))
        mode = Mode.BATCH if draw.random() < 0.5 else Mode.SERIAL
        if action == "read":
            file = self.files[int(draw.integers(len(self.files)))]
            yield Read(file, draw.integers(0, PAGES - 3, count), draw.integers(1, 4, count), mode)
        elif action == "write" and draw.random() < 0.4:
            yield Write(self.common, np.arange(count), np.ones(count, np.int64), _tuples(count), mode, append=True)
        elif action == "write":
            yield Write(temporary, temporary.pages + np.arange(count), np.ones(count, np.int64), _tuples(count), mode)
        elif action == "cpu":
            yield Cpu({"hash": int(draw.integers(0, 30)), "digest": 1}, "device" if draw.random() < 0.2 else HOST)
        elif action == "sleep":
            yield Sleep(10 * int(draw.choice([0, 1, 5, 50])))
        elif action == "flush" and temporary.pages:
            yield Flush(temporary)
        elif action == "phase":
            yield Phase(f"phase {draw.integers(3)}")


def outcome(driver: Any, devices: int, seed: int) -> ConcurrentRun | str:
    """What a drawn program of 1 to 8 strands costs, or how it ends."""
    most = int(generator(seed, "strands").integers(1, 9))
    try:
        run = driver.run(Program(seed, devices, most).strand())
    except DeadlockError:
        return "deadlock"
    assert isinstance(run, ConcurrentRun)
    return run
