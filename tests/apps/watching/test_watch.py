"""``fs.watch``: what it takes, what it refuses, and that a join's requests are those of its result."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

import flashsim as fs
from flashsim.core.errors import FlashsimError
from tests.cases import with_each


def test_a_drive_is_left_as_it_is() -> None:
    drive = fs.tiny_drive(blocks_per_plane=10, pages=100)
    drive.write(3)
    before = str(drive)
    for view in ("blocks", "time"):
        steps = fs.watch(drive, [3, 4, 3], view=view)
        assert len(steps) > 10
    assert str(drive) == before


def test_a_join_has_as_many_requests_as_its_result() -> None:
    r, s = pd.DataFrame({"key": range(4000)}), pd.DataFrame({"key": list(range(4000)) * 2})
    result = fs.join(r, s, on="key", algorithm="grace-hash", device="toshiba-5400-320gb", memory="16KiB", page_size="1KiB")
    requests = int(result.summary()["requests"].sum())
    assert f"Request {requests} of {requests}; " in fs.watch(result).frames[-1].caption


@with_each(
    ("arguments", "message"),
    [
        ((7,), "subject: int, but it must be a drive of fs.tiny_drive or a result of fs.join"),
        (("lab", [400]), "page: 400, but the drive has logical pages 0 to 399"),
        (("lab", [1], "queues"), "view: 'queues', but it must be one of blocks, time"),
        (("pending",), "flash operations of its last plan are pending"),
    ],
)
def test_what_cannot_be_is_refused_in_a_line(arguments: tuple[Any, ...], message: str) -> None:
    subject, *rest = arguments
    if subject in ("lab", "pending"):
        drive = fs.tiny_drive()
        if subject == "pending":
            drive.begin("write", 1)
        subject = drive
    with pytest.raises(FlashsimError, match=message):
        fs.watch(subject, *rest[:1], **({"view": rest[1]} if len(rest) > 1 else {}))
