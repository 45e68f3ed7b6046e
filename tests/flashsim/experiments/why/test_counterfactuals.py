"""Mechanisms made ideal: in engine and specification alike, as with the parameter itself, and worths that add up."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from flashsim.core.errors import FlashsimError
from flashsim.core.mechanisms import DeviceMechanism, changes_of
from flashsim.core.request import READ, Integers, make_requests
from flashsim.core.rng import generator
from flashsim.device import presets
from flashsim.device.device import Device
from flashsim.device.mechanisms import mechanisms_of
from flashsim.experiments.runs.drives import DriveInUse, ReadyDrive
from flashsim.experiments.why.counterfactuals import Counterfactuals, IdealDrive, Ideals
from flashsim.ssd.engine.drive import SsdEngine
from flashsim.ssd.ideals import CAUSES, SERVERS
from flashsim.ssd.mechanisms import mechanisms_of as flash_mechanisms_of
from flashsim.ssd.specification.drive import SsdSpecification
from flashsim.testing.flash_drives import drive, random_drive, random_workload, serve_all, with_steps
from tests.flashsim.ssd.drive_kinds import KINDS, drive_for
from tests.tiers import seeds


@pytest.mark.parametrize("block", seeds(0, 2, deep=25))
def test_ideal_drives_are_the_same_in_engine_and_specification(block: int) -> None:
    for seed in range(8 * block, 8 * block + 8):
        parameters = drive_for(KINDS[seed % len(KINDS)], random_drive(seed))
        parameters = with_steps(seed, parameters) if seed % 2 else parameters
        draw = generator(seed, "ideal")
        names = [name for name in (*CAUSES, *SERVERS) if draw.random() < 0.4]
        has = {mechanism.name for mechanism in flash_mechanisms_of(parameters)} | {*CAUSES}
        parameters = replace(parameters, ideal="+".join(name for name in names if name in has))
        requests, at = random_workload(seed, parameters, 60)
        loaded = int(generator(seed, "load").integers(0, parameters.logical_pages + 1)) * parameters.unit_size
        times = []
        for model in (SsdEngine(parameters), SsdSpecification(parameters)):
            model.load(0, loaded)
            times.append(serve_all(model, requests, at))
        assert np.array_equal(*times), f"seed {seed}, {parameters.ideal}"


def test_a_map_that_takes_no_time_is_as_fast_as_one_in_memory() -> None:
    """Reads alone, so that no decision depends on it; each translation page that is read takes a nanosecond at the die and the channel."""
    small = drive_for("dftl", drive())
    large = replace(small, map_cache=1 << 30)
    requests = make_requests(
        READ, generator(1, "reads").integers(0, small.logical_pages, 200) * small.unit_size, small.unit_size, serial=True
    )
    ends = {}
    for name, parameters in (("as it is", small), ("ideal", replace(small, ideal="map")), ("in memory", large)):
        model = SsdEngine(parameters)
        model.load(0, parameters.capacity)
        ends[name] = int(serve_all(model, requests, np.zeros(len(requests), np.int64))["completed"].max())
    reads_of_map = 200
    assert 0 <= ends["ideal"] - ends["in memory"] <= 4 * reads_of_map
    assert ends["as it is"] - ends["in memory"] > reads_of_map * small.read / 2


def test_seeks_at_their_mean_are_those_of_a_disk_whose_seeks_are_all_alike() -> None:
    preset = presets.load("toshiba-5400-320gb")
    (mechanism,) = [each for each in mechanisms_of(preset) if each.name == "seeks"]
    mean = preset.nominal.seek
    alike = replace(preset, parameters=replace(preset.parameters, seek_table=((1, mean / 1e6),), seek_formula=(), seek_first=()))
    requests = make_requests(READ, generator(2, "reads").integers(0, 10**6, 50) * 4096, 4096, serial=True)
    ideal = IdealDrive(DriveInUse("toshiba-5400-320gb"), (mechanism,))
    times = [device.serve(requests)["completed"].max() for device in (ideal.device(1 << 32), Device(alike))]
    assert times[0] == times[1]


def test_an_ideal_drive_has_the_state_of_the_drive_that_it_is_of() -> None:
    """What was written before is there, and the clock goes on."""
    used = Device.open("ocz-vertex-3")
    used.load(0, 1 << 24)
    used.serve(make_requests(READ, 0, 4096))
    (dies,) = [each for each in mechanisms_of(used.preset) if each.name == "dies"]
    ideal = IdealDrive(ReadyDrive(used), (dies,)).device(1 << 24)
    assert ideal.now >= used.now and np.array_equal(ideal.content.mapping, used.content.mapping)
    assert ideal.preset.parameters == replace(used.preset.parameters, ideal="dies")


@pytest.mark.parametrize("name", ["micron-7450-pro-960gb", "samsung-980-pro-1tb", "ocz-core-60gb", "nvme-qlc-2tb"])
def test_a_drive_that_takes_over_a_state_keeps_its_own_parameters(name: str) -> None:
    """Pace, retries and queues are in the same records as the state."""
    preset = presets.load(name)
    for mechanism in mechanisms_of(preset):
        changed = replace(preset, parameters=replace(preset.parameters, **changes_of((mechanism,))))
        states = [Device(preset).like(changed).content, Device(changed).content]
        for record in ("control", "buffer"):
            values = [getattr(state, record) for state in states]
            assert all(values[0][field] == values[1][field] for field in values[0].dtype.names), (mechanism.name, record)


def test_what_costs_nothing_alone_but_something_behind_others_is_removed_too() -> None:
    """Two servers in series: while the first is busy nothing waits for the second, which comes to light once the first is ideal."""

    def evaluate(ideals: list[Ideals]) -> list[Integers]:
        named = [{each.name for each in ideal} for ideal in ideals]
        return [np.array([100 if "first" not in names else 40 if "second" not in names else 10]) for names in named]

    runs = Counterfactuals([DeviceMechanism(name, name, name) for name in ("first", "second", "third")], np.array([100]), evaluate)
    assert runs.ideal == runs.all_ideal == 10 and runs.runs <= 2 * 3 + 2
    assert [(each.mechanism.name, int(each.alone[0]), int(each.removed[0])) for each in runs.worths][:2] == [
        ("first", 60, 60),
        ("second", 0, 30),
    ]


def times_of(worths: dict[str, int], together: int = 0) -> tuple[list[frozenset[str]], Counterfactuals]:
    """Counterfactuals of two phases in which each mechanism costs so much, and two of them `together` as much again."""
    seen = list[frozenset[str]]()
    first, base = frozenset(list(worths)[:2]), np.array([1000 + sum(worths.values()) + together, 7])

    def evaluate(ideals: list[Ideals]) -> list[Integers]:
        named = [frozenset(each.name for each in ideal) for ideal in ideals]
        seen.extend(named)
        return [base - np.array([sum(worths[name] for name in each) + together * bool(each & first), 0]) for each in named]

    return seen, Counterfactuals([DeviceMechanism(name, name, f"{name} costs") for name in worths], base, evaluate)


@pytest.mark.parametrize("together", [0, 50])
def test_worths_add_up_and_runs_are_few(together: int) -> None:
    seen, runs = times_of({"a": 5, "b": 300, "c": 0, "d": 40}, together)
    assert runs.runs == len(seen) + 1 == len(set(seen)) + 1 <= 2 * 4 + 2 and frozenset() not in seen
    assert runs.order[0] == "b" and runs.order[-1] == "c"
    assert np.array_equal(runs.ideal + sum(each.removed for each in runs.worths), runs.base)
    alone = {each.mechanism.name: int(each.alone[0]) for each in runs.worths}
    assert alone == {"a": 5 + together, "b": 300 + together, "c": 0, "d": 40}
    assert int(runs.interaction[0]) == -together


def test_a_mechanism_that_is_unknown_is_refused() -> None:
    with pytest.raises(FlashsimError, match="ideal: 'gravity' is unknown"):
        replace(drive(), ideal="gravity")
    with pytest.raises(FlashsimError, match="given twice"):
        replace(drive(), ideal="dies+dies")


def test_changes_of_several_mechanisms_are_joined() -> None:
    mechanisms = (DeviceMechanism("a", "a", "a", {"queue_depth": 3}, "dies"), DeviceMechanism("b", "b", "b", {"read_retry": 0.0}, "map"))
    assert changes_of(mechanisms) == {"queue_depth": 3, "read_retry": 0.0, "ideal": "dies+map"}


@pytest.mark.parametrize(
    "name", [name for name in presets.names() if presets.load(name).kind in ("ssd", "hdd") and not presets.load(name).array]
)
def test_every_mechanism_of_a_preset_can_be_ideal_alone_and_with_all_others(name: str) -> None:
    preset = presets.load(name)
    mechanisms = mechanisms_of(preset)
    for those in (*((each,) for each in mechanisms), tuple(mechanisms)):
        assert replace(preset.parameters, **changes_of(those)) is not None
