"""What each part of a drive in depth is for: sums of times that are known beforehand, and what the buffer keeps.

In `small_drive` a command costs 100 ns, a sector passes in 100 ns and crosses the link in 200 ns.
"""

from __future__ import annotations

from typing import Any

import pytest

from flashsim.core.model import DeviceModel
from flashsim.core.request import READ, WRITE, make_requests
from flashsim.hdd.engine.drive import HddEngine
from flashsim.hdd.specification.drive import HddSpecification
from flashsim.testing.disks import SECTOR, serve, small_drive
from tests.cases import with_each

Model = type[HddEngine] | type[HddSpecification]
MODELS = pytest.mark.parametrize("model", [HddEngine, HddSpecification])


def after(model: Model, *accesses: tuple[int, int, int], pause: int = 100_000, **changes: Any) -> tuple[list[int], DeviceModel]:
    """Response times of (operation, first sector, sectors) one by one, with a pause between them, and the drive."""
    device = model(small_drive(**changes))
    times = []
    for operation, first, sectors in accesses:
        start = device.now
        (done,) = serve(device, make_requests(operation, first * SECTOR, sectors * SECTOR), start)
        times.append(int(done["completed"]) - start)
        device.advance(device.now + pause)
    return times, device


@MODELS
def test_a_hit_costs_its_work_and_its_transfer(model: Model) -> None:
    changes = {"read_hit_after_read": 11, "data_preparation": 22, "complete_read": 33, "bus_read": 250, "bulk_transfer": 240}
    times, device = after(model, (READ, 0, 1), (READ, 1, 4), **changes)
    assert times[1] == 100 + 11 + 22 + 4 * 250 + 33
    assert device.statistics()["read_hits"] == 1


@MODELS
def test_work_depends_on_what_came_before(model: Model) -> None:
    changes = {"read_hit_after_read": 10, "read_hit_after_write": 20, "write_hit_after_read": 30, "write_hit_after_write": 40}
    times, _ = after(model, (READ, 0, 1), (READ, 1, 1), (WRITE, 600, 1), (WRITE, 700, 1), (READ, 2, 1), **changes)
    assert times[1:] == [310, 330, 340, 320]


@MODELS
def test_a_miss_gives_the_link_away_while_it_waits(model: Model) -> None:
    """Sector 20 of track 0 begins 2000 ns after angle 0, and 3000 ns later again: the work of a miss delays the arm, not the platter."""
    plain, _ = after(model, (READ, 20, 2))
    assert plain == [2000 + 100 + 2 * 200]
    slow, _ = after(model, (READ, 20, 2), read_miss_after_read=1000, disconnect_read_after_read=500, reselect_first=70, data_preparation=30)
    assert slow == [2000 + 100 + 70 + 30 + 2 * 200]
    late, _ = after(model, (READ, 20, 2), read_miss_after_read=1950)
    assert late == [5000 + 100 + 2 * 200]


@MODELS
def test_a_read_waits_for_its_share_before_its_transfer(model: Model) -> None:
    for changes in ({"read_start": 0.75}, {"read_start_least": 6}):
        times, _ = after(model, (READ, 20, 8), link_rate=10**12, **changes)
        assert times == [2000 + 800 + 1]
    times, _ = after(model, (READ, 20, 8), read_start=1.0)
    assert times == [2000 + 800 + 8 * 200]


@MODELS
def test_a_link_that_is_given_away_is_taken_again(model: Model) -> None:
    """The link is faster than the media: each sector comes alone, or all together when the last one is waited for."""
    fast = {"link_rate": 51_200_000_000, "hold_reads": False, "reselect_first": 35}  # 10 ns a sector
    times, _ = after(model, (READ, 20, 3), **fast)
    assert times == [2000 + 100 + 35 + 10 + (100 - 45) + 35 + 10 + (100 - 45) + 35 + 10]
    times, _ = after(model, (READ, 20, 3), read_start=1.0, **fast)
    assert times == [2000 + 300 + 35 + 30]


@MODELS
def test_a_write_is_acknowledged_by_the_buffer_or_the_media(model: Model) -> None:
    times, _ = after(model, (WRITE, 20, 2), write_hit_after_read=10, data_preparation=20, complete_write=5)
    assert times == [100 + 10 + 20 + 2 * 200 + 5]
    changes = {"write_behind": 0, "write_miss_after_read": 50, "disconnect_write": 60, "reselect_first": 7, "complete_write": 5}
    times, _ = after(model, (WRITE, 20, 2), **changes)
    assert times == [2000 + 200 + 7 + 5]


@MODELS
def test_a_write_begins_on_the_media_when_enough_of_it_is_there(model: Model) -> None:
    """All 8 sectors are there after 1700 ns, 2 of them after 500; track 0's slot 10 comes round after 1000 ns, and after 4000 again.

    The media would overtake the link: the last sector is there at 1700 and must not pass before, so the first not before 1000.
    """
    direct = {"write_behind": 0}
    assert after(model, (WRITE, 10, 8), **direct)[0] == [4000 + 800]
    assert after(model, (WRITE, 10, 8), write_start=0.25, **direct)[0] == [1000 + 800]
    assert after(model, (WRITE, 10, 8), write_start_most=2, **direct)[0] == [1000 + 800]
    assert after(model, (WRITE, 9, 8), write_start=0.25, **direct)[0] == [900 + 3000 + 800]


@MODELS
def test_a_second_write_elsewhere_may_give_the_link_away_first(model: Model) -> None:
    extra = {"extra_command": 10, "extra_disconnect_first": 20, "extra_pause": 30, "reselect_first": 40, "extra_disconnect": True}
    times, _ = after(model, (WRITE, 600, 1), (WRITE, 700, 1), (WRITE, 701, 1), (READ, 5, 1), (WRITE, 300, 1), **extra)
    assert [times[row] for row in (0, 1, 2, 4)] == [300, 100 + 10 + 20 + 30 + 40 + 200, 300, 300]


@MODELS
def test_settling_may_be_negative_and_a_seek_hides_a_head_switch(model: Model) -> None:
    """Zone 0 has 60 sectors a cylinder: the arm arrives a settling earlier or later, and the platter decides."""
    moves = []
    for changes in ({}, {"write_settle": -300}, {"write_settle": 700}, {"write_move": 2500}):
        _, device = after(model, (WRITE, 300, 1), **changes)
        moves.append(device.statistics()["seek_time"])
    assert moves[0] - moves[1] == 400 and moves[2] - moves[0] == 600 and moves[3] == 2500
    _, device = after(model, (READ, 90, 1), head_switch=900)
    assert device.statistics()["seek_time"] == 900


@MODELS
def test_segments_serve_as_many_streams(model: Model) -> None:
    streams = [(READ, base + step, 1) for step in range(4) for base in (0, 400, 800)]
    hits = [after(model, *streams, segments=count, read_ahead_again=True)[1].statistics()["read_hits"] for count in (1, 2, 3)]
    assert hits == [0, 0, 9]


@MODELS
def test_sectors_read_stay_only_if_the_drive_keeps_them(model: Model) -> None:
    again = [(READ, 10, 4), (READ, 10, 4)]
    assert after(model, *again)[1].statistics()["read_hits"] == 0
    assert after(model, *again, keep_read=True)[1].statistics()["read_hits"] == 1
    assert after(model, *again, keep_read=True, segment_size=8 * SECTOR)[1].statistics()["read_hits"] == 0


@MODELS
def test_sectors_that_pass_before_the_first_one_are_kept_if_asked(model: Model) -> None:
    backwards = [(READ, 20, 1), (READ, 12, 2)]
    assert after(model, *backwards, keep_read=True)[1].statistics()["read_hits"] == 0
    assert after(model, *backwards, keep_read=True, read_preceding=True)[1].statistics()["read_hits"] == 1


@MODELS
def test_written_data_serve_reads_from_a_read_segment(model: Model) -> None:
    written = [(WRITE, 10, 4), (READ, 10, 4)]
    assert after(model, *written, own_write_segment=False)[1].statistics()["read_hits"] == 0
    assert after(model, *written, own_write_segment=False, read_written=True)[1].statistics()["read_hits"] == 1


@MODELS
@with_each(
    ("changes", "end"),
    [
        ({}, 37), ({"read_ahead_bound": "track"}, 30), ({"read_ahead_bound": "cylinder"}, 37), ({"read_ahead_bound": "next-track"}, 30),
        ({"read_ahead": 2 * SECTOR}, 7), ({"read_ahead": 0}, 5),
    ],
)  # fmt: skip
def test_read_ahead_ends_where_it_is_told(model: Model, changes: dict[str, Any], end: int) -> None:
    """Tracks of 30 sectors, two a cylinder; 32 sectors of read-ahead behind sector 4."""
    for first, hits in ((end - 1, 1), (end + 1, 0)):
        if end > 5 or hits == 0:
            assert after(model, (READ, 0, 5), (READ, first, 1), **changes)[1].statistics()["read_hits"] == hits


@MODELS
def test_the_least_of_a_read_ahead_is_not_interrupted(model: Model) -> None:
    times, _ = after(model, (READ, 0, 1), (READ, 900, 1), pause=0)
    later, device = after(model, (READ, 0, 1), (READ, 900, 1), pause=0, read_ahead_least=30 * SECTOR)
    assert later[1] > times[1]
    assert device.statistics()["read_hits"] == 0


@MODELS
def test_hits_may_have_to_wait_for_destaging(model: Model) -> None:
    accesses = [(READ, 0, 1), (WRITE, 900, 4), (READ, 1, 1)]
    quick = [after(model, *accesses, pause=pause)[0][2] for pause in (0, 100_000)]
    slow = [after(model, *accesses, pause=pause, hits_while_writing=False)[0][2] for pause in (0, 100_000)]
    assert quick == [300, 300]
    assert slow[1] == 300 and slow[0] > 500


@MODELS
def test_the_arm_follows_a_measured_curve(model: Model) -> None:
    """Zone 0 has 12 cylinders of 60 sectors: to cylinder 6, half way between 4 and 8."""
    _, device = after(model, (READ, 360, 1), seek_table=[(1, 0.0005), (4, 0.001), (8, 0.003)])
    assert device.statistics()["seek_time"] == 2000
    _, device = after(model, (READ, 120, 1), seek_table=[(1, 0.0005), (4, 0.001), (8, 0.003)], seek_first=[(0.0001,), (0.0007,)])
    assert device.statistics()["seek_time"] == 700
    _, device = after(model, (READ, 540, 1), seek_formula=[(8, 0.001, 0.001, 0.0, 0.0002)])
    assert device.statistics()["seek_time"] == 1800
