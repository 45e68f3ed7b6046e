"""Latencies in parts: they sum to each latency, and known waits are found where they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from flashsim.core.host_queue import one_command_each
from flashsim.core.request import READ, WRITE, Completions, Integers, Requests, make_requests
from flashsim.core.rng import generator
from flashsim.device.block_layer import split
from flashsim.device.latency_parts import PARTS, parts_of_disk, parts_of_flash
from flashsim.hdd.engine.drive import HddEngine
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.specification.drive import SsdSpecification
from flashsim.testing.disks import random_drive as random_disk
from flashsim.testing.disks import random_workload as disk_workload
from flashsim.testing.flash_drives import PAGE, Model, drive, random_drive, random_workload, with_steps
from tests.flashsim.hdd.deep_disks import deep_drive
from tests.flashsim.ssd.drive_kinds import KINDS, drive_for
from tests.tiers import seeds

NAMES = list(PARTS)


def served(model: Model, requests: Requests, at: Integers) -> tuple[Integers, Completions]:
    """The parts of requests on a flash drive, and their completions, in order of submission."""
    model.record_spans(True)
    model.submit(requests, one_command_each(requests), at)
    completions = np.sort(model.advance(every=True), order="id")
    return parts_of_flash(model.spans(), requests["operation"].astype(np.int64), completions, model.parameters), completions


def shares(parameters: SsdParameters, requests: Requests, at: Any, loaded: int | None = None) -> list[dict[str, int]]:
    """The parts that are not 0 of each request on a drive that is loaded up to so many bytes, or as a whole."""
    model = SsdEngine(parameters)
    model.load(0, parameters.capacity if loaded is None else loaded)
    parts, _ = served(model, requests, np.broadcast_to(np.asarray(at, np.int64), len(requests)))
    return [{name: int(value) for name, value in zip(NAMES, row, strict=True) if value} for row in parts]


@pytest.mark.parametrize("block", seeds(0, 2, deep=25))
def test_parts_sum_to_latencies_in_engine_and_specification_alike(block: int) -> None:
    """Drives of all kinds, half of whose reads interrupt programs and erases."""
    for seed in range(20 * block, 20 * block + 20):
        parameters = drive_for(KINDS[seed % len(KINDS)], random_drive(seed))
        parameters = with_steps(seed, parameters) if seed % 2 else parameters
        requests, at = random_workload(seed, parameters, 60)
        loaded = int(generator(seed, "load").integers(0, parameters.logical_pages + 1)) * parameters.unit_size
        results = []
        for model in (SsdEngine(parameters), SsdSpecification(parameters)):
            model.load(0, loaded)
            parts, completions = served(model, requests, at)
            assert (parts >= 0).all() and np.array_equal(parts.sum(axis=1), completions["completed"] - completions["submitted"]), seed
            results.append(parts)
        assert np.array_equal(*results), seed


@pytest.mark.parametrize("block", seeds(0, 2, deep=25))
def test_parts_of_a_disk_sum_to_latencies(block: int) -> None:
    for seed in range(20 * block, 20 * block + 20):
        disk = deep_drive(seed) if seed % 3 else random_disk(seed)
        requests, at = disk_workload(seed, disk.capacity, 60)
        model = HddEngine(disk)
        model.record_spans(True)
        model.submit(requests, split(requests, 512 * int(generator(seed, "split").choice([8, 256]))), at)
        completions = model.advance(every=True)
        parts = parts_of_disk(model.spans(), completions)
        assert (parts >= 0).all() and np.array_equal(parts.sum(axis=1), completions["completed"] - completions["submitted"]), seed


def test_a_read_alone_waits_for_nothing() -> None:
    parameters = drive()
    (parts,) = shares(parameters, make_requests(READ, 0, PAGE), 0)
    assert set(parts) == {"controller", "cells", "channel", "link"} and parts["cells"] == parameters.read


def test_pages_of_a_request_on_one_die_are_read_in_turn() -> None:
    """A drive of one die: of four pages the last waits for three, each of which is read and crosses the channel."""
    parameters = replace(drive(), channels=1, packages_per_channel=1, dies_per_package=1, planes_per_die=1, blocks_per_plane=64)
    parameters = replace(parameters, capacity=32 * PAGE, multi_plane=False)
    transfer = SsdEngine(parameters).state.timing.transfer
    (parts,) = shares(parameters, make_requests(READ, 0, 4 * PAGE), 0)
    assert parts["own"] == 3 * (parameters.read + transfer) and parts["cells"] == parameters.read


def test_a_read_behind_a_write_waits_for_its_program() -> None:
    """One die, no write buffer: the read finds the die programming."""
    parameters = replace(drive(), channels=1, packages_per_channel=1, dies_per_package=1, planes_per_die=1, blocks_per_plane=64)
    parameters = replace(parameters, capacity=32 * PAGE, multi_plane=False)
    requests = np.concatenate([make_requests(WRITE, 0, PAGE), make_requests(READ, 8 * PAGE, PAGE)])
    transfer = SsdEngine(parameters).state.timing.transfer
    write, read = shares(parameters, requests, 0)
    assert write["cells"] == parameters.program and parameters.program - parameters.read_latency < read["programs"]
    assert read["programs"] <= parameters.program + transfer


def test_what_waits_for_a_slot_says_so() -> None:
    parameters = replace(drive(), queue_depth=1)
    first, second = shares(parameters, make_requests(READ, np.array([0, 8]) * PAGE, PAGE), 0)
    assert "slot" not in first and second["slot"] == sum(first.values())


def test_writes_that_find_no_room_wait_for_it() -> None:
    parameters = replace(drive(), write_buffer=2 * PAGE, write_buffer_mode="write-back")
    parts = shares(parameters, make_requests(WRITE, np.arange(40) * PAGE, PAGE), 0, 0)
    assert sum(each.get("buffer", 0) for each in parts) > 10 * parameters.program
