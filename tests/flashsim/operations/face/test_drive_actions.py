"""Actions of `fs.drive` beyond writing and reading: rest, streams, zones, namespaces."""

from __future__ import annotations

import numpy as np
import pytest

import flashsim as fs
from flashsim.core.errors import FlashsimError
from flashsim.core.request import WRITE, make_requests
from flashsim.device.device import Device
from flashsim.device.presets import Preset
from flashsim.operations.face.drive import Drive
from flashsim.testing.flash_drives import PAGE, drive

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
