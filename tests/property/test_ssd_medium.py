"""On a drive whose write buffer survives a power cut no flush, forced write or trim waits for the medium."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from flashsim.core.request import FLUSH, FORCE_UNIT_ACCESS, TRIM, WRITE
from flashsim.core.rng import generator
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.parameters import SsdParameters
from flashsim.ssd.specification.drive import SsdSpecification
from flashsim.testing.flash_drives import PAGE, Model, random_drive, random_workload, serve_all
from tests.flashsim.ssd.drive_kinds import KINDS, drive_for
from tests.tiers import seeds

#: Times of programs and erases are multiplied by this; all else of a workload takes less than one of them.
SLOW = 10**6


def protected_drive(seed: int, ftl: str, buffer_pages: int) -> SsdParameters:
    """A drawn drive whose buffer acknowledges writes at once and survives a power cut."""
    plain = replace(random_drive(seed), endurance=0, power_protected=False, continuation_latency=0, continuation_limit=0)
    changed = drive_for(ftl, replace(plain, write_buffer=buffer_pages * PAGE, write_buffer_mode="write-back"))
    size = max(changed.write_buffer, buffer_pages * PAGE)
    unpaced: dict[str, Any] = {"collection_rate": 0, "collection_debt": 0, "collection_floor": 0, "collection_share": 1.0}
    return replace(changed, write_buffer=size, write_buffer_batch=0, write_buffer_mode="write-back", power_protected=True, **unpaced)


def slow_programs(parameters: SsdParameters) -> SsdParameters:
    return replace(
        parameters, program=SLOW * parameters.program, erase=SLOW * parameters.erase, slc_program=SLOW * parameters.slc_program,
        program_pages=tuple(SLOW * each for each in parameters.program_pages),
        write_latency=parameters.write_latency + (SLOW - 1) * parameters.program, program_step=SLOW * parameters.program_step,
        program_long_step=SLOW * parameters.program_long_step, erase_step=SLOW * parameters.erase_step,
    )  # fmt: skip


def quickest_program(parameters: SsdParameters) -> int:
    return min(each for each in (parameters.program, parameters.slc_program, *parameters.program_pages) if each)


@pytest.mark.parametrize("model", [SsdEngine, SsdSpecification])
@pytest.mark.parametrize("ftl", KINDS)
@pytest.mark.parametrize("seed", seeds(0, 1, deep=13))
def test_none_waits_for_a_program(seed: int, ftl: str, model: type[Model]) -> None:
    """With room in the buffer for all that is written, and programs under way from the first page on."""
    parameters = slow_programs(replace(protected_drive(seed, ftl, 400), write_buffer_threshold=0))
    requests, at = random_workload(seed, parameters, 40)
    requests["operation"] = generator(seed, "forced").choice([WRITE, TRIM, FLUSH], len(requests), p=[0.7, 0.1, 0.2])
    requests["flags"] = FORCE_UNIT_ACCESS
    requests["length"] = np.minimum(requests["length"], 4 * PAGE)
    device = model(parameters)
    completions = serve_all(device, requests, at)
    assert len(completions) == len(requests) and completions["completed"].max() < quickest_program(parameters)
    assert device.state.buffer.waiting < parameters.group  # all else has left for flash


@pytest.mark.parametrize("ftl", KINDS)
@pytest.mark.parametrize("seed", seeds(0, 2, deep=28))
def test_a_forced_write_takes_what_any_write_takes(seed: int, ftl: str) -> None:
    """However little room the buffer has."""
    parameters = protected_drive(seed, ftl, 1 + seed % 4)
    requests, at = random_workload(seed, parameters, 60)
    requests["flags"] = 0
    plain = serve_all(SsdEngine(parameters), requests, at)
    requests["flags"] = FORCE_UNIT_ACCESS
    assert np.array_equal(serve_all(SsdEngine(parameters), requests, at), plain)


@pytest.mark.parametrize("ftl", KINDS)
@pytest.mark.parametrize("mode", ["write-back", "write-through"])
def test_without_protection_or_through_the_buffer_it_waits(mode: str, ftl: str) -> None:
    parameters = replace(protected_drive(1, ftl, 8), write_buffer_mode=mode, power_protected=mode == "write-through")
    parameters = slow_programs(parameters)
    requests, _ = random_workload(1, parameters, 1)
    requests["operation"], requests["flags"] = WRITE, FORCE_UNIT_ACCESS
    assert serve_all(SsdEngine(parameters), requests)["completed"][0] >= quickest_program(parameters)
