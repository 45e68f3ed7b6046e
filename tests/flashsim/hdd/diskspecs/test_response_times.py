"""An imported drive takes the time that its description says: requests worked out by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from flashsim.core.request import READ, WRITE, make_requests
from flashsim.device import presets
from flashsim.device.device import Device
from flashsim.device.engines import MODELS
from tests.flashsim.hdd.diskspecs.drive_files import write_drive

#: A block passes in 0.5 ms, seeks take 2 ms, nothing is cached, and the bus takes 0.1 ms a block to and 0.2 ms from the host.
PLAIN = {
    "diskspecs": (
        "Enable caching in buffer = 1,\n   Buffer continuous read = 3",
        "Enable caching in buffer = 0,\n   Buffer continuous read = 0",
    ),
    "model": ("Seek type = extracted,\n      Full seek curve = small.seek", "Seek type = constant,\n      Constant seek time = 2.0"),
}
LAYOUT = [
    ("Sparing scheme used = 1", "Sparing scheme used = 0"), ("Offset of first block = 22.000000", "Offset of first block = 0"),
    ("front = 20", "front = 0"), ("3.500000", "0"), ("5.000000", "0"), ("[ 3   ]", "[]"), ("[ 1, 3 ]", "[]"), ("= -0.25", "= 0.25"),
    ("Head switch time = 0.5", "Head switch time = 1.0"),
]  # fmt: skip


def plain_drive(folder: Path) -> Path:
    path = write_drive(folder, **PLAIN)
    for name, changes in (("model", LAYOUT), ("diskspecs", [("(write) water mark = 0.25", "(write) water mark = 0.0")])):
        text = (folder / f"small.{name}").read_text()
        for old, new in changes:
            assert old in text, old
            text = text.replace(old, new, 1)
        (folder / f"small.{name}").write_text(text)
    return path


@pytest.mark.parametrize("model", MODELS)
def test_requests_worked_out_by_hand(tmp_path: Path, model: str) -> None:
    """A revolution is 10 ms of 20 blocks; track 1 is head 1 of cylinder 0.  The arm begins on track 0, whose block 0 passes at 0 ms.

    1. Blocks 5 and 6 are asked for at 0: 0.3 ms of overhead, then block 5 comes by at 2.5 ms and 6 ends at 3.5; half of the request is
       there at 3.0, when the bus begins; the last block has crossed by 3.6, and completion takes 0.15: 3.75 ms.
    2. Block 45, cylinder 1, 1.25 ms later, at 5.0: 0.3 ms, the seek until 7.3; it passes from 12.5 to 13.0 and has crossed at 13.1:
       13.25 ms.
    3. Blocks 25 and 26 are written at 20.0: 0.7 ms for a write after a read, then 2 ms of seek (longer than the head switch) and 0.25 ms
       of settling until 22.95, meanwhile the blocks have crossed; they pass from 32.5 to 33.5, and 0.25 ms complete: 33.75 ms.
    """
    device = Device(presets.load(str(plain_drive(tmp_path))), model)
    blocks = np.array([(5, 2), (45, 1), (25, 2)])
    requests = make_requests([READ, READ, WRITE], blocks[:, 0] * 512, blocks[:, 1] * 512, serial=True)
    requests["think"] = [0, 1_250_000, 6_750_000]
    completed = device.serve(requests)["completed"]
    np.testing.assert_allclose(completed, [3_750_000, 13_250_000, 33_750_000], atol=5)  # an overhead of 1 ns a request is the least
