"""Changes of a flash drive that bring a figure nearer to a data sheet's: of the parameter that decides it, or of what bounds it."""

import math
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from typing import Any

from flashsim.apps.calibration.nominal_figures import NominalFigure
from flashsim.core.errors import FlashsimError, InvalidParameterError
from flashsim.core.units import KIB, MB, MICROSECONDS, SECONDS, format_size
from flashsim.device.figures import LONG
from flashsim.ssd.parameters import SsdParameters

#: Rates of flash channels: interfaces of ONFI and Toggle chips of 2010 to 2022 with eight pins, transfers a microsecond.
_CHANNEL_RATES = [rate * MB for rate in (400, 533, 667, 800, 1066, 1200, 1400, 1600, 2000, 2400)]
#: How many times as fast as those of the base chips may be, and the shortest program of one bit a cell, before there are more dies.
_FASTER, _LEAST_SLC = 1.5, 50 * MICROSECONDS
#: Program time with one bit a cell, of a cache that the base does not have.
_SLC_PROGRAM = 200 * MICROSECONDS
#: Shares of its time that a controller works, and of the link's rate of reads that writes have, which is taken to bound them at least; and
#: what a rate may be beyond a figure without bounding it.
_BUSY, _OF_LINK, _BEYOND = 0.85, 0.85, 1.05
#: Shares of spare flash between which a steady state may decide.
_LEAST_SPARE, _MOST_SPARE = 0.02, 0.4
#: How drives collect garbage whose steady state was measured under load: no write waits for a whole victim, or for another plane.
_APART: dict[str, Any] = {"gc_slicing": True, "allocation": "dynamic", "multi_plane": False, "planes_per_die": 1}
#: Erase blocks of a plane that must be left when dies are added, and how often more of something may be of no use.
_LEAST_BLOCKS, _VAIN = 32, 2


def transfer_of(flash: SsdParameters) -> int:
    """Time of a mapping unit on its channel, ns."""
    return flash.unit_size * SECONDS // flash.channel_rate + 1


def with_chips(flash: SsdParameters, **changes: Any) -> SsdParameters:
    """A drive with other chips, channels or mapping units, and with the controller's part of latencies as before."""
    page, unit, rate, read, program = (
        changes.get(name, getattr(flash, name)) for name in ("page_size", "mapping_unit", "channel_rate", "read", "program")
    )
    later = (unit or page) * SECONDS // rate + 1 - transfer_of(flash)
    changes["read_latency"] = max(1, flash.read_latency + read - flash.read + later)
    changes["write_latency"] = max(1, flash.write_latency + program - flash.program + later)
    return replace(flash, **changes)


def with_capacity(flash: SsdParameters, capacity: int, share: float, **changes: Any) -> SsdParameters:
    """A drive of a capacity with a share of flash besides, and with changes that the number of its blocks depends on.

    Raises InvalidParameterError: it cannot have that capacity.
    """
    later = {name: changes.get(name, getattr(flash, name)) for name in ("channels", "packages_per_channel", "slc_cache", "slc_mode")}
    pools = later["channels"] * later["packages_per_channel"] * flash.dies_per_package * flash.planes_per_die
    own = later["slc_cache"] / (pools * flash.unit_size * max(1, flash.slc_pages)) if later["slc_mode"] == "static" else 0
    blocks = round(-(-capacity // flash.unit_size) * (1 + share) / (pools * flash.slots_per_block)) + flash.spare_blocks + math.ceil(own)
    blocks += changes.get("gc_reserve", flash.gc_reserve)
    try:
        return replace(flash, capacity=capacity, blocks_per_plane=blocks, **changes)
    except InvalidParameterError as problem:
        if problem.parameter not in ("capacity", "blocks_per_plane"):
            raise
        raise InvalidParameterError(
            "capacity", format_size(capacity), f"a drive of {share:.1%} more flash cannot have it: {problem}"
        ) from None


def slc_changes(flash: SsdParameters, cache: int) -> tuple[dict[str, Any], dict[str, str]]:
    """What an SLC cache of so many bytes changes, or none, with the sources."""
    if not cache:
        return dict.fromkeys(("slc_cache", "slc_program", "slc_read", "slc_idle"), 0), {}
    changes, reasons = {"slc_cache": cache}, {"slc_cache": "data sheet"}
    if flash.slc_cache:
        return changes, reasons
    least = flash.gc_streams + flash.placement_handles + 1
    more = {"slc_mode": "dynamic", "slc_program": _SLC_PROGRAM, "gc_reserve": max(flash.gc_reserve, least), "gc_slicing": False}
    return changes | more, reasons | dict.fromkeys(more, "estimate: with an SLC cache in free blocks, as most drives for sale have")


class FlashChanges:
    """Brings figures of a flash drive nearer to those of a data sheet, and keeps the source of each parameter that it changes."""

    def __init__(self, base: SsdParameters, name: str, shown: Collection[str], overprovisioned: bool) -> None:
        self._base, self._name, self._shown = base, name, shown
        #: Whether spare flash decides the steady state, and whether rates of writes in order leave the time of a program to it.
        self._spare_decides = not overprovisioned and ("sequential_write_full" in shown or "sequential_write" in shown)
        self._program_is_free = True
        #: Measured values of figures when there was made more of something.
        self._reached = dict[str, list[float]]()
        self.reasons = dict[str, str]()

    def nearer(self, flash: SsdParameters, figure: NominalFigure) -> SsdParameters:
        """A drive whose figure is nearer to the cited one."""
        ratio, low = figure.ratio, figure.ratio < 1
        chips = {kind: getattr(flash, kind) + transfer_of(flash) for kind in ("read", "program")}
        match figure.name:
            case "sequential_read":
                if low and flash.link_read_rate > _BEYOND * figure.measured:
                    return self._widen(flash, figure)
                return self._set(flash, figure, link_read_rate=max(1, round(flash.link_read_rate / ratio)))
            case "sequential_write":
                return self._write_in_order(flash, figure)
            case "sequential_write_full":
                return self._set_program(flash, figure)
            case "steady_write_iops":
                return self._with_spare(flash, figure) if self._spare_decides else self._set_program(flash, figure)
            case "random_read_iops":
                overhead = flash.read_latency - chips["read"]
                if low and overhead * figure.measured < _BUSY * SECONDS:
                    return self._widen(flash, figure)
                return self._set(flash, figure, read_latency=chips["read"] + max(1, round(overhead * ratio)))
            case "random_write_iops":
                overhead = flash.write_latency - chips["program"]
                if low and overhead * figure.measured < _BUSY * SECONDS:
                    return self._set_program(flash, figure)
                return self._set(flash, figure, write_latency=chips["program"] + max(1, round(overhead * ratio)))
        later = round(figure.measured / ratio - figure.measured)
        if figure.name == "random_read":  # the host's part goes first where chips would have to be much faster than the base's
            mean = sum(flash.read_pages) / len(flash.read_pages) if flash.read_pages else flash.read
            read = max(1, round(flash.read * (1 + later / mean)))
            if flash.read_submission and later < 0 and read < self._base.read / _FASTER:
                return self._set(flash, figure, read_submission=max(0, flash.read_submission + later))
            self.reasons["read"] = f"what the data sheet's {_words(figure)} leaves"
            return with_chips(flash, **_scale(flash, "read", read, "read_pages"))
        if flash.whole_page_buffer and not flash.bus_rate:  # acknowledged there, while the controller takes others
            return self._set(flash, figure, write_submission=max(0, flash.write_submission + later))
        return self._set(flash, figure, write_latency=max(chips["program"] + 1, flash.write_latency + later))

    def _set(self, flash: SsdParameters, figure: NominalFigure, **changes: Any) -> SsdParameters:
        self.reasons |= dict.fromkeys(changes, f"what the data sheet's {_words(figure)} leaves")
        return replace(flash, **changes)

    def _write_in_order(self, flash: SsdParameters, figure: NominalFigure) -> SsdParameters:
        """Writes go at the pace of the link, or of flash, if that is slower; as a steady state tells, data sheets give what lasts."""
        cited = figure.measured / figure.ratio
        lasting = "steady_write_iops" in self._shown and not flash.slc_cache and cited < _OF_LINK * flash.link_read_rate
        if lasting and flash.link_write_rate < _BEYOND * cited:
            self.reasons["link_write_rate"] = "estimate: as of reads, since flash is slower"
            return replace(flash, link_write_rate=flash.link_read_rate)
        if lasting or figure.measured < 0.95 * min(flash.link_write_rate, cited):
            return self._set_program(flash, figure)
        return self._set(flash, figure, link_write_rate=max(1, round(flash.link_write_rate / figure.ratio)))

    def _set_program(self, flash: SsdParameters, figure: NominalFigure) -> SsdParameters:
        """Another time of programs, into the SLC cache or not; more dies where chips would have to be much faster than the base's."""
        size = 1 if figure.name.startswith("sequential") else max(4 * KIB, flash.unit_size)
        if figure.ratio < 1 and figure.measured / figure.ratio * size * _BEYOND > flash.channels * flash.channel_rate:
            return self._more(flash, figure, "channels")
        cached = bool(flash.slc_cache) and figure.name not in LONG
        now, transfer = (cached and flash.slc_program) or flash.program, transfer_of(flash)
        program = max(1, round((now + transfer) * figure.ratio) - transfer)
        if figure.ratio < 1 and program < (_LEAST_SLC if cached else self._base.program / _FASTER):
            return self._more(flash, figure, "dies")
        if cached:
            return self._set(flash, figure, slc_program=program)
        self.reasons["program"] = f"what the data sheet's {_words(figure)} leaves"
        self._program_is_free &= not figure.name.startswith("sequential")
        return self._set_pace(with_chips(flash, **_scale(flash, "program", program, "program_pages", "program_step", "program_long_step")))

    def _with_spare(self, flash: SsdParameters, figure: NominalFigure) -> SsdParameters:
        """Another share of spare flash: the write amplification of uniform writes is about (1 + share) / (2 share).

        Source: Agarwal and Marrow, "A closed-form expression for write amplification in NAND flash", IEEE Globecom Workshops 2010.
        """
        spare = flash.effective_overprovisioning
        share = 1 / max((1 + spare) / spare * figure.ratio - 1, 1 / _MOST_SPARE / 2)
        if share > _MOST_SPARE and (apart := self._apart(flash)) != flash:
            return apart
        if self._program_is_free and not _LEAST_SPARE <= share <= _MOST_SPARE:
            return self._set_program(flash, figure)
        flash = with_capacity(flash, flash.capacity, min(max(share, _LEAST_SPARE), _MOST_SPARE))
        besides = f"{flash.effective_overprovisioning:.1%} of flash besides the capacity decide the write amplification"
        self.reasons["blocks_per_plane"] = f"fitted: the data sheet's {figure.cited:,} writes a second in the steady state; {besides}"
        return flash

    def _apart(self, flash: SsdParameters) -> SsdParameters:
        """The drive with planes that collect garbage as dies of their own, in slices; as it is where that is not possible."""
        reserve, dies = flash.gc_streams + flash.placement_handles + 1, flash.dies_per_package * flash.planes_per_die
        changes = _APART | {"gc_reserve": max(flash.gc_reserve, reserve), "dies_per_package": dies}
        with suppress(FlashsimError):
            flash = replace(flash, **changes)
            self.reasons |= dict.fromkeys(changes, "estimate: as drives of data centres collect garbage whose steady state was measured")
        return flash

    def _widen(self, flash: SsdParameters, figure: NominalFigure) -> SsdParameters:
        """More of what bounds reads: of dies, of channels or their rate, or of commands in the drive."""
        random, most = figure.name == "random_read_iops", flash.queue_depth * flash.queues
        read = sum(flash.read_pages) / len(flash.read_pages) if flash.read_pages else flash.read
        size = (max(4 * KIB, flash.code_word) if flash.code_word else flash.unit_size) if random else flash.page_size
        pages, transfer = figure.measured / (1 if random else size) / SECONDS, size * SECONDS / flash.channel_rate
        together = flash.planes_per_die if flash.multi_plane and not random else 1
        busy = {"dies": pages * (read / together + (0 if flash.cache_read else transfer)) / flash.dies}
        busy["channels"] = pages * transfer / flash.channels
        if commands := min(most, flash.command_slots or most) if random else flash.command_slots * flash.command_slot / size:
            busy["commands"] = pages * (flash.read_submission + flash.read_latency) / commands
        return self._more(flash, figure, max(busy, key=lambda part: busy[part]))

    def _more(self, flash: SsdParameters, figure: NominalFigure, part: str) -> SsdParameters:
        """Twice as many dies or commands, or faster channels, up to the fastest of these years; then twice as many, with as many dies.

        The write buffer holds what all dies program, and as much that gathers.  The drive stays as it is where more was of no use before.
        """
        reached, changes = self._reached.setdefault(figure.name, []), dict[str, Any]()
        faster = [rate for rate in _CHANNEL_RATES if rate > flash.channel_rate]
        if part == "commands":
            changes = {name: 2 * getattr(flash, name) for name in ("queue_depth", "command_slots") if getattr(flash, name)}
        elif part == "channels" and faster:
            changes = {"channel_rate": faster[0]}
        elif part == "channels":
            changes = {"channels": 2 * flash.channels, "packages_per_channel": -(-flash.packages_per_channel // 2)}
        elif flash.blocks_per_plane >= 2 * _LEAST_BLOCKS:
            changes = {"packages_per_channel": 2 * flash.packages_per_channel}
            if 0 < flash.write_buffer < 4 * flash.pools * flash.group * flash.unit_size:
                changes["write_buffer"] = 2 * flash.write_buffer
        if len(reached) > _VAIN and figure.measured < _BEYOND * reached[-1 - _VAIN]:
            return flash
        reached.append(figure.measured)
        words = f"estimate: the least with which the data sheet's {_words(figure)} is met, from that of {self._name} upwards"
        self.reasons |= dict.fromkeys(changes, words)
        if part != "dies" and "channels" not in changes:
            return with_chips(flash, **changes)
        return self._set_pace(with_capacity(flash, flash.capacity, flash.effective_overprovisioning, **changes))

    def _set_pace(self, flash: SsdParameters) -> SsdParameters:
        """The drive with its pace of writes beside collection in proportion to what its dies program."""
        base = self._base
        faster, names = flash.pools / base.pools * base.program / flash.program, ("collection_rate", "collection_debt", "collection_floor")
        changes = {name: round(getattr(base, name) * faster) for name in names if base.collection_rate}
        self.reasons |= dict.fromkeys(changes, f"estimate: as {self._name}, in proportion to what all dies program")
        return replace(flash, **changes)


def _words(figure: NominalFigure) -> str:
    return figure.name.replace("_", " ")


def _scale(flash: SsdParameters, name: str, to: int, *others: str) -> dict[str, Any]:
    """A time of the chips, and others in proportion."""
    factor, now = to / getattr(flash, name), {each: getattr(flash, each) for each in others}
    lists = {each: tuple(max(1, round(time * factor)) for time in times) for each, times in now.items() if isinstance(times, tuple)}
    return {each: round(time * factor) for each, time in now.items() if each not in lists} | lists | {name: to}
