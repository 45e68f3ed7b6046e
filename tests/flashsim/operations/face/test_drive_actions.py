"""Actions of `fs.drive` beyond writing and reading: rest, streams, zones, namespaces."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import flashsim as fs
from flashsim.apps.calibration.nominal_figures import figures
from flashsim.core.errors import FlashsimError, RefusedError
from flashsim.core.request import WRITE, make_requests
from flashsim.device import presets
from flashsim.device.device import Device
from flashsim.device.presets import Preset
from flashsim.operations.face.drive import Drive
from flashsim.testing.flash_drives import PAGE, drive
from tests.cases import with_each

CACHED = {
    "cell": "tlc", "pages_per_block": 24, "blocks_per_plane": 40, "capacity": 1000 * PAGE, "gc_reserve": 3, "program": 1000,
    "write_latency": 1050, "slc_program": 200, "slc_cache": 128 * PAGE, "slc_idle": 1000,
}  # fmt: skip


def made(**changes: object) -> Drive:
    return Drive(Device(Preset("small", "ssd", "a drive of a test", drive(**changes), {})), "small", "new", 0, "empty")


def test_a_cache_is_folded_while_a_drive_rests() -> None:
    subject = made(**CACHED)
    subject.device.serve(make_requests(WRITE, np.arange(96) * PAGE, PAGE))
    assert subject.device.statistics()["programs_fold"] == 0
    subject.idle("1s")
    assert subject.device.statistics()["programs_fold"] == 96


def test_streams_have_blocks_of_their_own() -> None:
    """Two pages that are written again by another handle leave the blocks of the rest."""
    subject = made(placement_handles=2, queues=2, gc_reserve=3, blocks_per_plane=14)
    for stream, pages in ((0, 4), (1, 2)):
        subject.write(stream=stream, sequential=f"{pages * PAGE}B", request=f"{PAGE}B")
    flash, model = subject.device.preset.flash, subject.device._flash_model()
    assert flash is not None and model is not None
    blocks = (model.state.mapping[:4] - 1) // flash.pages_per_block
    assert not set(blocks[:2].tolist()) & set(blocks[2:].tolist())
    with pytest.raises(FlashsimError, match="stream: -1, but"):
        subject.write(stream=-1, sequential="4KiB")


def test_zones_are_appended_to_finished_and_reset() -> None:
    subject = fs.drive("wd-zn540-1tb", state="new")
    assert [subject.append(2, "64KiB") - subject.zones()["offset"][2] for _ in range(2)] == [0, 65536]
    subject.open(3)
    subject.close(3)
    subject.finish(2)
    assert subject.zones()["state"][2:5].tolist() == ["full", "closed", "empty"]
    subject.reset(2)
    table = subject.zones()
    assert table["state"][2] == "empty" and table["pointer"][2] == table["offset"][2]
    for wrong, message in ((lambda: subject.reset(10**6), "zone: 1000000, but"), (lambda: made().zones(), "has none")):
        with pytest.raises(FlashsimError, match=message):
            wrong()


K, ZONE = 1 << 14, 1077 << 20


@pytest.mark.parametrize(
    "rows",
    [
        [("write", page * K, K) for page in range(9)],
        [("write", 0, K), ("write", K, K), ("trim", 0, ZONE), ("write", 0, K)],
        [("write", 0, ZONE), ("write", ZONE, K)],
        [("read", 4096, 4096)],
    ],
)
def test_a_zoned_drive_takes_traces_in_order(rows: list[tuple[str, int, int]]) -> None:
    trace = pd.DataFrame(rows, columns=["operation", "offset", "length"])
    assert fs.replay(trace, "wd-zn540-1tb", empty=True).summary()["requests"].sum() == len(rows)


@with_each(
    ("rows", "message"),
    [
        ([("write", 0, 4096)], "write of 4096 B at 0, not in units of 16384 B: zone 0"),
        ([("write", page * K, K) for page in (0, 1, 0)], "write of 16384 B at 0: zone 0, .* Zone Invalid Write"),
        ([("write", ZONE - K, K), ("write", ZONE, K), ("write", 2 * K, K)], "write of 16384 B at 32768: zone 0, .* Zone Is Full"),
        ([("trim", 0, K)], "trim of 16384 B at 0: zone 0, .* Invalid Field"),
    ],
)
def test_other_traces_are_refused_before_a_zoned_drive_is_made(
    rows: list[tuple[str, int, int]], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flashsim.operations.face.replay.Device", None)
    with pytest.raises(RefusedError, match=f"trace: a zoned drive does not take its {message}"):
        fs.replay(pd.DataFrame(rows, columns=["operation", "offset", "length"]), "wd-zn540-1tb")


def test_what_writes_anywhere_is_refused_on_a_zoned_drive() -> None:
    for measure in (lambda: fs.bench("wd-zn540-1tb"), lambda: figures(presets.load("wd-zn540-1tb"))):
        with pytest.raises(RefusedError, match="device: wd-zn540-1tb is zoned, and takes writes in order only; .*read"):
            measure()
    assert (
        fs.bench("wd-zn540-1tb", "read", set="aio", precondition="sequential", size="4MiB", sizes=["4KiB"], levels=[1], count=8)
        .summary()
        .size
    )
