"""Pools on simulated drives: parts of drives are as fast as the whole, an SSD begins in a state, and its wear is told by design."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import flashsim as fs
from flashsim.core.errors import InvalidParameterError, RefusedError
from flashsim.core.request import READ, make_requests
from flashsim.core.units import KIB, SECONDS
from flashsim.device import presets
from flashsim.device.device import Device
from flashsim.device.scaling import part_of
from flashsim.experiments.designs.report import wear_table
from flashsim.experiments.designs.results import DesignResult
from flashsim.experiments.designs.session import DesignRuns, PoolStudy, execute
from flashsim.experiments.replaying.preconditioning import parse_state
from flashsim.pools import PoolOptions
from flashsim.pools.devices import WORN

FLASH, SMALL, DISK = "iodrive-slc-160gb", "mtron-msd-sata3025-16gb", "seagate-barracuda-7200.12"
PAGE = 8 * KIB


def reads_a_second(preset: presets.Preset, share: float) -> float:
    """Random ones of a page, sixteen outstanding, on the first share of a drive."""
    device = Device(preset)
    count = 2000
    pages = np.random.default_rng(1).integers(0, int(share * device.capacity) // PAGE, count)
    requests = make_requests(READ, pages * PAGE, PAGE)
    requests["dependency"] = np.maximum(np.arange(count) - 16, -1)
    return count / float(device.serve(requests)["completed"].max()) * SECONDS


@pytest.mark.parametrize(("name", "share"), [(FLASH, 1.0), (DISK, 1.0), (DISK, 0.04)])
def test_a_part_is_as_fast_as_the_whole(name: str, share: float) -> None:
    whole = presets.load(name)
    part = part_of(whole, 100)
    assert part.capacity == pytest.approx(whole.capacity / 100, rel=0.01)
    # within a cylinder of the part there is no seek: it is a fiftieth of the outer twenty-fifth
    assert reads_a_second(part, share) == pytest.approx(reads_a_second(whole, share), rel=0.02)


def test_a_part_collects_garbage_as_the_whole() -> None:
    whole = presets.load(FLASH)
    found = []
    for parts in (50, 200):
        part = part_of(whole, parts)
        assert part.flash is not None and whole.flash is not None
        assert part.flash.effective_overprovisioning == pytest.approx(whole.flash.effective_overprovisioning, rel=1e-3)
        found.append(Device(part).precondition(parse_state("steady", part)).write_amplification)
    assert found[0] == pytest.approx(found[1], rel=0.02)


def test_parts_that_a_drive_has_not_are_refused() -> None:
    with pytest.raises(InvalidParameterError, match="parts of a drive: 100000, but a plane of iodrive-slc-160gb has 7676 blocks"):
        part_of(presets.load(FLASH), 100_000)
    with pytest.raises(InvalidParameterError, match="parts of a drive: 10000, but a zone of seagate-barracuda-7200.12 has 20400"):
        part_of(presets.load(DISK), 10_000)
    with pytest.raises(InvalidParameterError, match="parts of a drive: 0"):
        part_of(presets.load(FLASH), 0)


def asked(state: str, design: str = "dw", ssd: str = f"{FLASH}/1000") -> PoolStudy:
    switches = PoolOptions(clients=8, read_ahead=1, expansion=1)
    return PoolStudy(
        workload="zipf:pages=30000,skew=0,write-share=0.5,each=4",
        designs=[design],
        memory=40 * PAGE,
        ssd=140_000_000,
        time=SECONDS,
        devices={"disk": "rates:read=30000,write=30000,servers=64", "ssd": ssd},
        states={"ssd": (state, 1)},
        options=switches,
    )


@pytest.fixture(scope="module")
def steady() -> DesignRuns:
    return execute(asked("steady"))


def sums(each: DesignResult) -> dict[str, int]:
    return {name: int(each.counts[name].sum()) for name in (*WORN, "ssd_writes", "transactions")}


def test_wear_is_what_the_drive_counted(steady: DesignRuns) -> None:
    (ran,), (row,) = steady.runs, steady.rows()
    (drive,), told = ran.devices["ssd"], sums(ran)
    assert told["flash_written"] == drive["host_write_bytes"]
    assert told["flash_programmed"] == 4 * KIB * drive["flash_programs"]
    assert told["flash_erases"] == drive["flash_erases"]
    # what was written was programmed, but for what the buffer holds; the rest is what was moved
    held = told["flash_written"] + told["flash_moved"] - told["flash_programmed"]
    assert 0 <= held <= 1 << 20
    assert 0 <= told["ssd_writes"] * PAGE - told["flash_written"] <= 200 * PAGE  # asked for, and on the way
    last = {name: float(ran.counts[name][-20:].sum()) for name in (*WORN, "transactions")}
    assert row["ssd_write_amplification"] == pytest.approx(last["flash_programmed"] / last["flash_written"])
    assert row["ssd_programmed_per_transaction"] == pytest.approx(last["flash_programmed"] / last["transactions"])
    whole = presets.load(FLASH)
    assert whole.flash is not None
    blocks = whole.flash.good_blocks * whole.flash.pools
    assert row["ssd_years"] * row["ssd_erases_s"] * 365.25 * 86400 == pytest.approx(100_000 * blocks)
    shown = wear_table(steady)
    assert shown is not None
    columns = ["design", "written MB/s", "programmed MB/s", "B a transaction", "write amplification", "erases/s", "years"]
    assert [*shown] == columns
    assert shown.iloc[0, 3:5].tolist() == [row["ssd_programmed_per_transaction"], row["ssd_write_amplification"]]


def test_a_steady_drive_amplifies_from_the_first_write_on(steady: DesignRuns) -> None:
    """As many blocks are erased as pages are programmed for them; a new drive collects nothing until it has been filled."""
    (ran,) = steady.runs
    (new,) = execute(asked("empty")).runs
    begin = {name: ran.counts[name][:10].sum() for name in WORN}
    assert begin["flash_programmed"] > 2 * begin["flash_written"]
    assert sums(new)["flash_moved"] == 0
    assert sums(ran)["flash_erases"] == pytest.approx(sums(ran)["flash_programmed"] / (64 * 4 * KIB), rel=0.1)


def test_what_is_no_flash_drive_has_no_state() -> None:
    with pytest.raises(RefusedError, match="precondition: the ssd, rates, is not a flash drive"):
        execute(asked("steady", ssd="rates"))
    with pytest.raises(InvalidParameterError, match="ssd: 140 MB"):
        execute(asked("steady", ssd=f"{FLASH}/1500"))


def test_drives_of_ones_own_are_taken_in_their_state() -> None:
    sizes: dict[str, Any] = {
        "memory": "2MiB",
        "ssd": "10MiB",
        "clients": 4,
        "expansion": 1,
        "read_ahead": 1,
        "time": "2s",
        "design": ["dw"],
        "partitions": 1,
    }
    done = fs.pool("zipf:pages=2000,each=5", ssd_device=fs.drive(SMALL, "new"), disk=fs.drive(DISK), **sizes)
    assert done.result.study.devices == {"disk": DISK, "ssd": SMALL} and done.result.study.states == {"ssd": ("empty", 0)}
    assert (done.summary().flash_programmed > 0).all()
    used = fs.drive(SMALL, "new")
    used.write(random="1MiB")
    with pytest.raises(RefusedError, match="has been used since it was made"):
        fs.pool("zipf:pages=2000,each=5", ssd_device=used, **sizes)


def test_arrays_have_parts_too() -> None:
    done = execute(replace(asked("empty", ssd=f"2x{FLASH}/1000"), time=SECONDS // 50))
    assert len(done.runs[0].devices["ssd"]) == 2
