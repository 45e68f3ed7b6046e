"""Translation layers that merge blocks: what they refuse, and which merges they make."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from flashsim.core.errors import InvalidParameterError, RefusedError
from flashsim.ssd.engine import SsdEngine
from flashsim.ssd.ftl.base import FAMILY
from tests.flashsim.ssd.drives import PAGE, drive, drive_for

MERGING = [name for name in FAMILY.names() if not getattr(FAMILY.load(name), "COLLECTS", True)]


@pytest.mark.parametrize("name", MERGING)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"allocation": "round-robin"}, "allocation: 'round-robin'"),
        ({"allocation": "dynamic"}, "allocation: 'dynamic'"),
        ({"wear": "static"}, "wear: 'static'"),
        ({"gc_pool": "shared"}, "gc_pool: 'shared'"),
        ({"gc_streams": 2, "gc_reserve": 3}, "gc_streams: 2"),
        ({"gc_slicing": True, "gc_reserve": 3}, "gc_slicing"),
        ({"gc_stop": 3}, "gc_stop: 3"),
        ({"map_cache": 4096}, "map_cache: 4096 B"),
        ({"gc": "greedy"}, f"gc: 'greedy' does not go with ftl '{'{name}'}', which merges blocks"),
    ],
)
def test_what_they_refuse(name: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RefusedError) as refusal:
        SsdEngine(replace(drive_for(name, drive()), blocks_per_plane=20, **changes))
    assert message.format(name=name) in str(refusal.value)
    assert f"ftl '{name}'" in str(refusal.value) and "\n" not in str(refusal.value)


@pytest.mark.parametrize("name", MERGING)
def test_one_block_too_few(name: str) -> None:
    parameters = drive_for(name, drive(capacity=36 * PAGE))
    SsdEngine(parameters)
    with pytest.raises(InvalidParameterError, match="capacity: .* takes 5 data blocks of a plane, but .* there are 4"):
        SsdEngine(replace(parameters, blocks_per_plane=parameters.blocks_per_plane - 1))


def test_block_mapping_has_no_log_blocks() -> None:
    with pytest.raises(RefusedError, match="log_blocks: 1, but ftl 'block' has none"):
        SsdEngine(replace(drive_for("block", drive()), log_blocks=1))
