"""Energy of a run of a drive, from its counters, the busy time of its channels, and how long it ran and served."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from flashsim.core.errors import InvalidParameterError
from flashsim.core.units import JOULES, SECONDS, format_energy, format_power, parse_energy, parse_power
from flashsim.ssd.parameters import SsdParameters


def _energy_field(meaning: str, parse: Callable[[str, str], int], show: Callable[[int], str], default: Any = dataclasses.MISSING) -> Any:
    """A field as in `flashsim.core.parameters`: an integer in pJ or mW, or text with a unit."""
    return dataclasses.field(default=default, metadata={"meaning": meaning, "parse": parse, "show": show, "least": 0, "type": int})


def _parse_energy_per_byte(written: str, parameter: str) -> int:
    if not written.endswith("/B"):
        raise InvalidParameterError(parameter, repr(written), "an energy a byte is needed, such as 120pJ/B")
    return parse_energy(written[:-2], parameter)


_energy = partial(_energy_field, parse=parse_energy, show=format_energy)
power = partial(_energy_field, parse=parse_power, show=format_power)
_energy_per_byte = partial(_energy_field, parse=_parse_energy_per_byte, show=lambda value: f"{format_energy(value)}/B")


@dataclass(frozen=True)
class EnergyFigures:
    """Declared energies (pJ) and powers (mW) of one drive; make it with `flashsim.core.parameters.build`."""

    page_read: int = _energy("from the cells of a flash page to its register")
    page_program: int = _energy("from the register of a flash page to its cells")
    block_erase: int = _energy("an erase of one block")
    channel_byte: int = _energy_per_byte("a byte over a flash channel, either way")
    controller: int = power("controller, memory and host link while a request is served, above idle")
    idle: int = power("the whole drive, always")
    loaded: int = power("the whole drive under load, as cited; nothing is computed from it, but the other figures should add up to it")


class Energy(NamedTuple):
    """Energy by part, pJ."""

    reads: int
    programs: int
    erases: int
    channels: int
    controller: int
    idle: int


def in_joules(parts: Mapping[str, int]) -> dict[str, float]:
    """Energies (pJ) in J, and their ``total``."""
    return {name: value / JOULES for name, value in (*parts.items(), ("total", sum(parts.values())))}


def energy_of(figures: EnergyFigures, parameters: SsdParameters, statistics: Mapping[str, Any], elapsed: int, active: int) -> Energy:
    """The energy of a run.

    A move is a read and a program; mapping units that are read at once are one flash page, and those that are programmed at once, be it all
    pages of a word line, are one program.  What takes the cells another time than a read or a program costs in proportion: a program of the
    SLC cache `slc_program` of `program`, a read once more `retry_time` of `read`.  Reads cost the same everywhere else.  Bytes on a channel
    are its busy time at its rate.

    `statistics` is what the drive counted in the run (`flashsim.core.model.DeviceModel.statistics`); `elapsed` and `active` are how long
    the run was, and for how much of that a request was being served, ns.
    """
    moved = sum(statistics["channel_busy_ns"]) * parameters.channel_rate // SECONDS
    retried = statistics.get("read_retries", 0) * (parameters.read_retry_time or parameters.read)
    reads = statistics["flash_reads"] - statistics.get("shared_reads", 0)
    cached = statistics.get("slc_programs", 0)
    one_bit = cached * (parameters.slc_program or parameters.program) // parameters.units
    return Energy(
        reads=reads * figures.page_read + retried * figures.page_read // parameters.read,
        programs=(statistics["flash_programs"] - cached) * figures.page_program // parameters.group
        + one_bit * figures.page_program // parameters.program,
        erases=statistics["flash_erases"] * figures.block_erase,
        channels=moved * figures.channel_byte,
        controller=active * figures.controller,
        idle=elapsed * figures.idle,
    )
