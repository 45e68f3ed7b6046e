"""Namespaces have addresses of their own on one drive; appends and resets of a zoned one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from flashsim.core.errors import CapacityError, InvalidParameterError, RefusedError
from flashsim.core.request import READ, WRITE, make_requests
from flashsim.device import presets
from flashsim.device.device import Device
from flashsim.device.namespaces import divide
from flashsim.ssd.precondition import Precondition
from flashsim.ssd.zones import ZoneError, ZoneState
from flashsim.testing.flash_drives import PAGE, drive
from tests.flashsim.ssd.test_zones import ZONE, ZONED


def device_of(**changes: object) -> Device:
    return Device(replace(presets.load("intel-x25e-64gb"), name="small", parameters=drive(**changes)))


def test_each_has_addresses_of_its_own() -> None:
    device, whole = device_of(), device_of()
    spaces = divide(device, {"log": 8 * PAGE, "data": 16 * PAGE})
    for space, first in ((spaces["log"], 0), (spaces["data"], 8)):
        requests = make_requests([WRITE, READ], [PAGE, 3 * PAGE], 2 * PAGE)
        space.submit(requests)
        moved = requests.copy()
        moved["offset"] += first * PAGE
        whole.submit(moved)
        assert np.array_equal(device.advance(every=True), whole.advance(every=True))
    assert device.statistics() == whole.statistics()
    with pytest.raises(CapacityError, match="request: 2048 B at 16384, but namespace log holds 16 KiB"):
        spaces["log"].submit(make_requests(READ, 8 * PAGE, PAGE))


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(CapacityError, match="namespace data: 80 KiB, but small has 64 KiB left"):
        divide(device_of(), {"log": 8 * PAGE, "data": 40 * PAGE})
    with pytest.raises(InvalidParameterError, match="namespace log: 100 B, but it must be a multiple of 512 B"):
        divide(device_of(), {"log": 100})
    with pytest.raises(InvalidParameterError, match="namespace log: '1GB', but a whole number of bytes is needed"):
        divide(device_of(), {"log": "1GB"})  # type: ignore[dict-item]


def test_boundaries_of_namespaces_are_those_of_zones_and_units() -> None:
    with pytest.raises(InvalidParameterError, match="namespace log: 16384 B, but it must end with a zone, of 32768 B"):
        divide(device_of(**ZONED), {"log": ZONE // 2, "data": ZONE})
    units = device_of(mapping_unit=1024, write_buffer=4 * PAGE, capacity=30 * PAGE)
    with pytest.raises(InvalidParameterError, match="namespace log: 1536 B, but it must end with a mapping unit, of 1024 B"):
        divide(units, {"log": 1536, "data": 1024})


def test_a_zoned_drive_is_empty_or_filled_in_order() -> None:
    device = device_of(**ZONED)
    device.append(0, PAGE)
    device.advance(every=True)
    device.zones.finish(0)
    device.precondition(Precondition("empty"))
    assert set(device.zones.states) == {ZoneState.EMPTY} and device.append(0, PAGE) == 0
    device.advance(every=True)
    device.precondition(Precondition("sequential"))
    assert set(device.zones.states) == {ZoneState.FULL}
    for fill in ("random", "steady"):
        with pytest.raises(RefusedError, match=f"small is zoned, and written in order: it is 'empty' or 'sequential', not '{fill}'"):
            device.precondition(Precondition(fill))
    with pytest.raises(InvalidParameterError, match=r"zone: 1.5, but small has zones 0 to 9"):
        device.append(1.5, PAGE)  # type: ignore[arg-type]
    for zone in (99, -1):
        with pytest.raises(InvalidParameterError, match=f"zone: {zone}, but the drive has zones 0 to 9"):
            device.zones.open(zone)


def test_appends_and_resets() -> None:
    device = device_of(**ZONED)
    assert [device.append(2, 3 * PAGE) for _ in range(2)] == [2 * ZONE, 2 * ZONE + 3 * PAGE]
    device.advance(every=True)
    assert device.statistics()["host_write_bytes"] == 6 * PAGE
    assert device.zones.states[2] is ZoneState.IMPLICITLY_OPENED
    with pytest.raises(ZoneError, match="append of 22528 B: zone 2, but the drive answers Zone Boundary Error"):
        device.append(2, 11 * PAGE)
    device.reset(2)
    device.advance(every=True)
    states = list(device.zones.states)
    assert states[2] is ZoneState.EMPTY and device.append(2, PAGE) == 2 * ZONE
    device.zones.require(device.zones.finish, 2)
    with pytest.raises(ZoneError, match=r"append of 2048 B: zone 2, but the drive answers Zone Is Full \(B9h\)"):
        device.append(2, PAGE)
    with pytest.raises(InvalidParameterError, match="zone: 10, but small has zones 0 to 9"):
        device.append(10, PAGE)
    with pytest.raises(RefusedError, match=r"zones: small has none \(zone_size\)"):
        device_of().append(0, PAGE)
