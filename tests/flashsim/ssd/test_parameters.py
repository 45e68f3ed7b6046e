"""Impossible drives, commands and loads are refused, each with one line that says why."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest

from flashsim.core.errors import InvalidParameterError, RefusedError, UnknownNameError
from flashsim.core.host_queue import one_command_each
from flashsim.core.request import READ, WRITE, make_requests
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.specification.drive import SsdSpecification
from flashsim.ssd.state.geometry import pool_order
from flashsim.testing.flash_drives import PAGE, Model, drive, serve_all
from tests.cases import with_each

MODELS = pytest.mark.parametrize("model", [SsdEngine, SsdSpecification])


@with_each(
    ("changes", "message"),
    [
        ({"capacity": 48 * PAGE}, "capacity: .* one page must stay free"),
        ({"page_size": 1000}, "page_size: 1000, but it must be a multiple of 512"),
        ({"gc_reserve": 1}, "gc_reserve: 1, but it must be at least 2"),
        ({"gc_reserve": 8}, "gc_reserve: 8, but a plane has 8 blocks"),
        ({"read_latency": 30}, "read_latency: 30 ns, but the chip and its channel already take 30 ns"),
        ({"write_latency": 50}, "write_latency: 50 ns, but the chip and its channel already take 50 ns"),
        ({"queue_depth": 0}, "queue_depth: 0"),
        ({"command_slots": -1}, "command_slots: -1, but it must be at least 0"),
        ({"command_slots": 1, "command_slot": 100}, "command_slot: 100, but it must be at least 512"),
        ({"command_slots": 1, "command_slot": 1000}, "command_slot: 1000, but it must be a multiple of 512"),
        ({"slot_order": "arrival"}, "slot_order: arrival, but there are no command_slots"),
        ({"command_slot": 512}, "command_slot: 512, but there are no command_slots"),
        ({"program_step": 10}, "program_step: 10, but reads interrupt no program"),
        ({"suspend": "erase", "read_priority": True, "program_step": 10}, "program_step: 10, but reads interrupt no program"),
        ({"suspend": "program", "read_priority": True, "erase_step": 50}, "erase_step: 50, but reads interrupt no erase"),
        ({"suspend_stop": 5}, "suspend_stop: 5, but reads interrupt nothing"),
        ({"gc_streams": 3}, "gc_streams: 3, but it must be at most 2"),
        ({"gc_streams": 2}, "gc_reserve: 2, but with 2 streams it must be at least 3"),
        ({"gc_slicing": True}, "gc_reserve: 2, but with 1 streams and slices it must be at least 3"),
        ({"gc_stop": 1}, "gc_stop: 1, but it must lie between gc_reserve, 2, and the 8 blocks of a plane"),
        ({"gc_stop": 8}, "gc_stop: 8, but it must lie between"),
        ({"gc_choices": 0}, "gc_choices: 0, but it must be at least 1"),
        ({"gc_pool": "shared"}, "capacity: 81920, but the blocks outside the reserve hold 81920"),
        ({"spare_blocks": 1, "factory_bad_blocks": 2}, "spare_blocks: 1, but as many as the 2 factory_bad_blocks are needed"),
        ({"spare_blocks": -1}, "spare_blocks: -1, but it must be at least 0"),
        ({"spare_blocks": 6}, "gc_reserve: 2, but a plane has 2 blocks that are not spare"),
        ({"spare_blocks": 9}, "spare_blocks: 9, but a plane has 8 blocks in all"),
        ({"factory_bad_blocks": -1}, "factory_bad_blocks: -1, but it must be at least 0"),
        ({"endurance": -1}, "endurance: -1, but it must be at least 0"),
        ({"endurance_spread": 0.6}, "endurance_spread: 0.6, but it must be at most 0.5"),
        ({"endurance_spread": float("nan")}, "endurance_spread: nan, but it must be a number"),
        ({"wear_gap": 0}, "wear_gap: 0, but it must be at least 1"),
        ({"planes_per_die": 0}, "planes_per_die: 0, but it must be at least 1"),
        ({"planes_per_die": 1.5}, "planes_per_die: 1.5, but it must be a number"),
        ({"pages_per_block": 1}, "pages_per_block: 1, but it must be at least 2"),
        ({"blocks_per_plane": 2**30}, "blocks_per_plane: 1073741824, but 2 planes .* may have at most 2147483646 pages in all"),
        ({"channels": 2**40}, "blocks_per_plane: 8, but 1099511627776 planes .* at most 2147483646"),
        ({"channels": 4, "allocation": "static", "capacity": 95 * PAGE}, "capacity: .* a plane takes 24 pages, and it can hold 23"),
        ({"read": 0}, "read: 0, but it must be at least 1"),
        ({"program": 0}, "program: 0, but it must be at least 1"),
        ({"erase": 0}, "erase: 0, but it must be at least 1"),
        ({"channel_rate": 0}, "channel_rate: 0, but it must be at least 1"),
        ({"capacity": 0}, "capacity: 0, but it must be at least 512"),
        ({"mapping_unit": 2 * PAGE}, "mapping_unit: 4096, but a flash page, 2048, must hold whole ones"),
        ({"code_word": 1536}, "code_word: 1536, but a mapping unit must hold whole ones"),
        ({"cell": "tlc", "read_pages": [20, 30]}, "read_pages: 2 durations, but with cell 'tlc' there must be 3, or none"),
        ({"program_pages": ["40ns", "50ns"]}, "program_pages: 2 durations, but with cell 'none' there must be 1, or none"),
        ({"cell": "slc", "read_pages": [0]}, "read_pages: 0, but it must be at least 1"),
        ({"cell": "slc", "read_pages": 20}, "read_pages: 20, but it must be a list of durations"),
        ({"read_retry": 1.5}, "read_retry: 1.5, but it must be at most 1"),
        ({"cell": "tlc", "one_shot": True, "write_buffer": 3 * PAGE}, "pages_per_block: 4, but one_shot: .* whole word lines of 3"),
        ({"mapping_unit": 1000}, "mapping_unit: 1000, but it must be a multiple of 512"),
        ({"mapping_unit": PAGE // 2, "write_buffer": PAGE, "capacity": 42 * PAGE}, "capacity: 86016, but .* hold 86016, and one page must"),
    ],
)
def test_impossible_drives(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameterError, match=message):
        SsdEngine(drive(**changes))


@MODELS
@with_each(
    ("operation", "offset", "length", "message"),
    [
        (READ, 40 * PAGE - 512, 1024, "the drive ends at 81920 B"),
        (WRITE, 100, 512, "multiples of 512"),
        (WRITE, 0, 0, "at least 512 B"),
        (7, 0, 512, "operation: 7"),
    ],
)
def test_impossible_commands(model: type[Model], operation: int, offset: int, length: int, message: str) -> None:
    device = model(drive())
    requests = make_requests(operation, offset, length)
    with pytest.raises(InvalidParameterError, match=message):
        device.submit(requests, one_command_each(requests), 0)
    assert device.outstanding == 0


@MODELS
def test_loading(model: type[Model]) -> None:
    device = model(drive())
    with pytest.raises(InvalidParameterError, match="the drive ends at"):
        device.load(PAGE, 40 * PAGE)
    device.load(0, 40 * PAGE)
    assert device.now == 0
    assert device.statistics()["flash_programs"] == 0
    assert [device.version(page) for page in range(40)] == list(range(1, 41))
    requests = make_requests(READ, 0, PAGE)
    device.submit(requests, one_command_each(requests), 0)
    with pytest.raises(RefusedError, match="1 requests are outstanding"):
        device.load(0, PAGE)


@with_each(
    ("changes", "message"),
    [
        ({"allocation_order": "CWD"}, "allocation_order: 'CWD' is unknown; did you mean"),
        ({"allocation_order": "CCWD"}, "allocation_order: 'CCWD' is unknown"),
        ({"allocation": "statik"}, "allocation: 'statik' is unknown; did you mean static"),
        ({"gc_pool": "plane"}, "gc_pool: 'plane' is unknown"),
        ({"wear": "statc"}, "wear levelling policy: 'statc' is unknown; did you mean static"),
    ],
)
def test_unknown_choices(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UnknownNameError, match=f"^{message}"):
        SsdEngine(drive(**changes))


@with_each(
    ("changes", "message"),
    [
        ({"write_buffer": 0}, "a write_buffer must hold the 2 that are programmed at once"),
        ({"write_buffer_mode": "coalescing"}, "not supported with a coalescing write_buffer"),
        ({"allocation": "static"}, "not supported with static allocation"),
        ({"gc_copyback": True}, "not supported with gc_copyback"),
        ({"ftl": "fast", "gc": "none", "log_blocks": 2, "capacity": 20 * PAGE}, "ftl 'fast' maps whole flash pages"),
    ],
)
def test_what_does_not_go_with_mapping_units(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RefusedError, match=f"^mapping_unit: .*{message}"):
        SsdEngine(drive(**{"mapping_unit": PAGE // 2, "write_buffer": 4 * PAGE, **changes}))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cell": "slc"}, "cell 'slc' has no several pages of a word line"),
        ({"cell": "mlc", "program_pages": [10, 20]}, "not supported with program_pages"),
        ({"cell": "mlc"}, "2 flash pages of a word line: a write_buffer must hold the 2 that are programmed at once"),
    ],
)
def test_what_does_not_go_with_word_lines_that_are_programmed_at_once(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RefusedError, match=f"^one_shot: {message}"):
        drive(one_shot=True, **changes)


def test_a_page_stays_within_its_chip_only_if_its_plane_collects_by_itself() -> None:
    with pytest.raises(RefusedError, match="^gc_copyback: .* gc_pool 'shared'"):
        drive(gc_copyback=True, gc_pool="shared", capacity=30 * PAGE)


def test_every_plane_takes_its_turn_in_every_order() -> None:
    """The first letter changes fastest; dies are numbered by channel, package and die of the package."""
    sizes = {"channels": 2, "packages_per_channel": 3, "dies_per_package": 2, "planes_per_die": 2}
    for order in permutations("CWDP"):
        found = pool_order(drive(**sizes, allocation_order="".join(order)))
        assert sorted(found) == list(range(24))
        parts = {"C": found // 2 % 2, "W": found // 2 // 2 % 3, "D": found // 2 // 6, "P": found % 2}
        weights = np.cumprod([1, *(int(parts[letter].max()) + 1 for letter in order[:3])])
        assert np.array_equal(sum(parts[letter] * weight for letter, weight in zip(order, weights, strict=True)), np.arange(24))


def test_effective_overprovisioning_leaves_out_spares_and_reserve() -> None:
    parameters = drive(blocks_per_plane=10, spare_blocks=2, factory_bad_blocks=1, capacity=40 * PAGE - 512)
    assert parameters.effective_overprovisioning == 2 * (10 - 2 - 2) * 4 / 40 - 1
    assert SsdEngine(parameters).statistics()["effective_overprovisioning"] == parameters.effective_overprovisioning


def test_the_operation_table_grows() -> None:
    """A command that needs more rows than the table has at first."""
    parameters = drive(capacity=4000 * PAGE, blocks_per_plane=600, queue_depth=64)
    requests = make_requests([WRITE, READ, WRITE], 0, 4000 * PAGE)
    engine, specification = SsdEngine(parameters), SsdSpecification(parameters)
    assert np.array_equal(serve_all(engine, requests), serve_all(specification, requests))


def test_what_is_acknowledged_is_kept_by_drives_that_acknowledge_late_or_are_protected() -> None:
    buffer: dict[str, Any] = {"write_buffer": 4 * PAGE}
    continued: dict[str, Any] = {"continuation_latency": 20, "continuation_limit": PAGE}
    kept = [{}, buffer | {"write_buffer_mode": "write-through"}, buffer | {"power_protected": True}]
    lost = [buffer, buffer | {"write_buffer_mode": "coalescing"}, continued]
    assert [drive(**changes).keeps_acknowledged for changes in kept + lost] == [True] * 3 + [False] * 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"write_buffer_batch": 5 * PAGE}, "write_buffer_batch: it must be no more than a write_buffer holds"),
        ({"write_buffer_batch": PAGE, "write_buffer_mode": "write-through"}, "write_buffer_batch: it must be .* which is write-back"),
        ({"write_buffer_batch": 1000}, "write_buffer_batch: 2048 are programmed at once, and it must be whole groups"),
    ],
)
def test_batches_and_slots_that_cannot_be(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RefusedError, match=message):
        drive(**{"write_buffer": 4 * PAGE, **changes})
