"""The three drives of Shin et al. (2016): their times are those that table 1 leaves, and requests take what a closed form of them says.

Solved from the rows of 5 and 200 MB alone; the other rows are predictions.  How many requests a row makes follows from its buffers: N-Hash
makes 1587 calls of 340 writes of 4 KiB at 5 MB, and 11 of 27 at 200.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from flashsim.core.request import READ, WRITE, Integers, make_requests
from flashsim.core.units import GIB, KIB, MIB, SECONDS
from flashsim.device import presets
from flashsim.device.block_layer import MAXIMUM_COMMAND
from flashsim.device.device import Device
from flashsim.ssd.timing import timing_of

DRIVES = ("iodrive-slc-160gb", "micron-p300", "ocz-vertex-3")
#: The drive whose controller works on a command while the link moves the bytes of others.
OVERLAPPED = "ocz-vertex-3"
FILE = 268_000 * 8 * KIB
#: Seconds of the rows of 5 and 200 MB: N-Hash and the traditional method at 5 MB, then both at 200.
WRITES = {DRIVES[0]: (3.51, 21.85, 3.54, 3.48), DRIVES[1]: (15.43, 21.75, 8.04, 7.95), DRIVES[2]: (8.25, 15.05, 5.06, 5.42)}
READS = {DRIVES[0]: (3.05, 3.16, 2.8, 2.82), DRIVES[1]: (5.99, 6.09, 5.72, 5.68), DRIVES[2]: (5.59, 5.52, 4.35, 4.25)}
#: Seconds that neither reads nor writes took at 5 MB.
CPU = {DRIVES[0]: (1.42, 2.55), DRIVES[1]: (1.88, 2.4), DRIVES[2]: (2.09, 2.19)}
#: Calls, requests a call and bytes of a request of the same four.
CALLS = ((1587, 340, 4 * KIB), (268_800, 1, 8 * KIB), (11, 27, FILE // 297), (168, 1, FILE // 168))


class Solved(NamedTuple):
    """Nanoseconds of a call and of each of its commands, and of a byte."""

    call: float
    command: float
    byte: float


def commands(length: int) -> int:
    """The commands of a request."""
    return -(-length // MAXIMUM_COMMAND)


def solved(published: tuple[float, ...], work: list[tuple[float, float, float]]) -> Solved:
    """The least squares of relative errors, none of the three below 0."""
    rows, seconds = np.array(work), np.array(published)
    return Solved(*lsq_linear(rows / SECONDS / seconds[:, None], np.ones(len(seconds)), bounds=(0, np.inf), tol=1e-12).x)


def writes_of(name: str) -> Solved:
    """What writes take; where a command overlaps with transfers, of each call the longer of the two counts, and one of the shorter."""
    work: list[tuple[float, float, float]] = []
    for calls, requests, length in CALLS:
        number, size = calls * requests, calls * requests * length
        if name != OVERLAPPED:
            work.append((calls, number * commands(length), size))
        elif length < 8 * KIB:
            work.append((calls, number, calls * length))
        else:
            work.append((calls, calls, size))
    return solved(WRITES[name], work)


def reads_of(name: str) -> Solved:
    """What reads of 856 and 13,312 KiB take, each a call."""
    return solved(READS[name], [(-(-FILE // (size * KIB)), 0, FILE) for size in (856, 856, 13_312, 13_312)])


@pytest.mark.parametrize("name", DRIVES)
def test_times_of_writes_are_solved_from_two_rows(name: str) -> None:
    flash, told = presets.load(name).flash, writes_of(name)
    assert flash
    overhead = timing_of(flash).write_overhead
    assert flash.link_write_rate == pytest.approx(SECONDS / told.byte, rel=1e-3)
    if name == OVERLAPPED:
        assert (flash.write_submission, overhead) == pytest.approx((told.call, told.command), rel=2e-3)
    else:
        assert flash.write_submission + overhead == pytest.approx(told.call, rel=2e-3)
        assert flash.link_write_command == pytest.approx(told.command, rel=2e-3, abs=1)


@pytest.mark.parametrize("name", DRIVES)
def test_times_of_reads_are_solved_from_two_rows(name: str) -> None:
    flash, told = presets.load(name).flash, reads_of(name)
    assert flash
    assert flash.link_read_rate == pytest.approx(SECONDS / told.byte, rel=1e-3)
    fixed = flash.read_submission + flash.read_latency
    if name == OVERLAPPED:  # reads wait for programs, which the next test has
        assert fixed < told.call
    else:
        assert fixed == pytest.approx(told.call, rel=2e-3)


def seconds_of_reads(preset: presets.Preset, name: str) -> float:
    """Of the row of 5 MB, N-Hash and the traditional method on average, each with the writes that come between two reads.

    Before each call of writes the time passes in which tuples are moved.  Reads go anywhere, so that they meet busy dies as often as in a
    whole run.
    """
    size, between = 856 * KIB, []
    for (calls, requests, length), cpu in zip(CALLS[:2], CPU[name], strict=True):
        device, random = Device(preset), np.random.default_rng(1)
        device.load(0, FILE)
        reads, waited, due = 120, 0, 0.0
        for _ in range(reads):
            due += calls * size / FILE
            while due >= 1:
                due -= 1
                places = FILE + random.integers(0, GIB // length, requests) * length
                device.serve(make_requests(WRITE, places, length), device.now + int(cpu * SECONDS / calls), settle=False)
            waited += span(device, READ, random.integers(0, FILE // size, 1) * size, size)
        between.append(waited / reads)
    return float(np.mean(between)) * FILE / size / SECONDS


@pytest.mark.parametrize("name", DRIVES)
def test_reads_between_writes_take_what_the_row_of_5_mb_says(name: str) -> None:
    """The published values of both methods are 1 to 4 % apart."""
    assert seconds_of_reads(presets.load(name), name) == pytest.approx(np.mean(READS[name][:2]), rel=0.03)


@pytest.mark.deep
def test_on_half_the_dies_reads_would_wait_longer_for_programs_than_they_take() -> None:
    """Even if nothing but the chip, the controller and the link took time."""
    preset = presets.load(OVERLAPPED)
    assert preset.flash
    half = replace(preset.flash, dies_per_package=1, blocks_per_plane=2 * preset.flash.blocks_per_plane, read_submission=0)
    assert seconds_of_reads(replace(preset, parameters=half), OVERLAPPED) > 1.02 * np.mean(READS[OVERLAPPED][:2])


def span(device: Device, operation: int, offsets: Integers, length: int) -> int:
    """Nanoseconds from handing requests over at once until the last is done."""
    completed = device.serve(make_requests(operation, offsets, length), settle=False)
    return int(completed["completed"].max() - completed["submitted"].min())


@pytest.mark.parametrize("name", DRIVES)
def test_writes_at_once_take_a_call_and_each_its_command_and_bytes(name: str) -> None:
    """Whole flash pages, on an idle drive."""
    preset = presets.load(name)
    flash, device = preset.flash, Device(preset)
    assert flash
    timing = timing_of(flash)
    for length, requests in product((4 * KIB, 8 * KIB, 64 * KIB, MIB), (1, 16, 64)):
        number = requests * commands(length)
        sent = requests * -(-length // flash.unit_size) * timing.link_write[min(length, flash.unit_size) // 512]
        alone, each = flash.write_submission + timing.write_overhead, max(timing.write_overhead, sent / number)
        adding = alone + number * flash.link_write_command + sent
        overlapping = alone + (number - 1) * each + sent / number
        taken = span(device, WRITE, np.arange(requests) * 3 * MIB, length)
        assert taken == pytest.approx(overlapping if name == OVERLAPPED else adding, rel=0.01), (length, requests)
        device.advance(every=True)


@pytest.mark.parametrize("name", DRIVES)
def test_a_read_takes_what_is_fixed_and_its_bytes(name: str) -> None:
    preset, device = presets.load(name), Device(presets.load(name))
    flash = preset.flash
    assert flash
    device.load(0, MIB)
    for length in (8 * KIB, 208 * KIB, 856 * KIB):
        told = flash.read_submission + flash.read_latency + length * SECONDS / flash.link_read_rate
        assert span(device, READ, np.array([0]), length) == pytest.approx(told, rel=0.1)
