"""Prices of a program's work in a drive, from the few that a preset has, and on the host, from those of a CPU preset."""

from __future__ import annotations

from collections.abc import Mapping

from algorithms.programs.projection import COMPUTE
from flashsim.core.errors import RefusedError
from flashsim.device.presets import Preset
from flashsim.device.smart.inside import Inside
from flashsim.execution.cpu import DEFAULT, CpuModel
from flashsim.execution.requests import Work
from flashsim.studies.smart.tables import READ_COLUMNS

#: A function of a value costs a core inside a drive as much as so many tuples that qualify (estimate).
_FUNCTION = 0.1


def inside_of(preset: Preset) -> Inside:
    """The inside of a drive.

    Raises
    ------
    RefusedError
        It has none.
    """
    if preset.inside is None:
        raise RefusedError(f"device: {preset.name} has no [inside] to run programs in, only where='host'; samsung-smart-400gb has")
    return preset.inside


def drive_prices(inside: Inside) -> Mapping[str, float]:
    """Time of a core of a drive by kind of work, ns: whatever is done with a tuple that qualifies costs as much as its copy."""
    function = inside.match_work * _FUNCTION
    scan = {Work.PAGE: inside.page_work, Work.READ_TUPLE: inside.tuple_work, READ_COLUMNS: inside.column_work}
    return {**scan, Work.COMPARE: function, COMPUTE: function, DEFAULT: inside.match_work}


def priced(work: Mapping[str, int], prices: Mapping[str, float]) -> float:
    """Time of some work, ns."""
    return sum(prices.get(kind, prices[DEFAULT]) * count for kind, count in work.items())


def host_prices(cpu: CpuModel | None) -> Mapping[str, float]:
    """Time of a core of the host by kind of work, ns; none without a CPU."""
    return {DEFAULT: 0.0} if cpu is None else {DEFAULT: 0.0, **cpu.user}
