"""How many device requests a second of processor time the compiled loop takes through devices under one clock."""

from __future__ import annotations

import time

import numpy as np

from flashsim.core.model import CompiledModel
from flashsim.core.units import GIB, KIB, MICROSECONDS
from flashsim.device import presets
from flashsim.device.station import StationParameters
from flashsim.device.station.engine import StationEngine
from flashsim.execution.closed_clients import ClosedClients
from flashsim.execution.compiled_loop import CompiledLoop, Striped
from flashsim.hdd.engine.drive import HddEngine
from flashsim.ssd.engine.drive import SsdEngine

ROUNDS, REQUESTS = 7, 100_000
PAGE = 4 * KIB


def _rates(devices: list[CompiledModel | Striped], clients: ClosedClients, pages: list[int]) -> np.ndarray:
    loop = CompiledLoop(devices, clients.side(pages))
    loop.run(completions=REQUESTS)  # loads what was compiled, and fills caches and buffers
    rates = []
    for _ in range(ROUNDS):
        before, begin = loop.completions, time.process_time()
        loop.run(completions=before + REQUESTS)
        rates.append((loop.completions - before) / (time.process_time() - begin))
    return np.array(rates)


def _told(what: str, rates: np.ndarray) -> float:
    """The median, printed with the least and the greatest."""
    middle = float(np.median(rates))
    print(f"\n{what}: {middle:,.0f} requests/s ({rates.min():,.0f} to {rates.max():,.0f})")
    return middle


def test_a_flash_drive_and_an_array_of_disks_under_one_clock() -> None:
    flash, disk = presets.load("intel-x25e-64gb").flash, presets.load("toshiba-5400-320gb").disk
    assert flash and disk
    drive = SsdEngine(flash)
    drive.load(0, GIB)
    array = Striped([HddEngine(disk) for _ in range(4)], 64 * KIB)
    clients = ClosedClients(32, write_share=0.3, page_size=PAGE)
    assert _told("flash drive and four disks", _rates([drive, array], clients, [GIB // PAGE] * 2)) >= 150_000


def test_stations_alone() -> None:
    mean = 100 * MICROSECONDS
    stations = [StationEngine(StationParameters(mean, mean, servers=count, exponential=True, seed=count)) for count in (1, 4)]
    assert _told("two stations", _rates([*stations], ClosedClients(32, mean, True), [1000, 1000])) >= 2_000_000
