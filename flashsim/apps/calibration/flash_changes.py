"""Changes of a flash drive that bring a figure nearer to a data sheet's: of the parameter that decides it, or of what bounds it."""

import math
from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace
from typing import Any

from flashsim.apps.calibration.nominal_figures import NominalFigure
from flashsim.core.errors import FlashsimError, InvalidParameterError
from flashsim.core.units import KIB, MB, MICROSECONDS, SECONDS, format_size
from flashsim.ssd.parameters import SsdParameters

#: Rates of flash channels: interfaces of ONFI and Toggle chips of 2010 to 2022 with eight pins, transfers a microsecond.
_CHANNEL_RATES = [rate * MB for rate in (400, 533, 667, 800, 1066, 1200, 1400, 1600, 2000, 2400)]
#: How many times as fast as those of the base chips may program before there are more dies.
_FASTER = 1.5
#: The shortest program of a cell with one bit: half of what the presets have.
_LEAST_SLC = 50 * MICROSECONDS
#: Program time with one bit a cell, of a cache that the base does not have.
_SLC_PROGRAM = 200 * MICROSECONDS
#: What a controller or a link that bounds a figure is busy for at least, and what a rate may be beyond a figure without bounding it.
_BUSY, _BEYOND = 0.85, 1.05
#: Share of the link's rate of reads above which writes are taken to be bounded by the link, too.
_OF_LINK = 0.85
#: Shares of spare flash between which a steady state may decide.
_LEAST_SPARE, _MOST_SPARE = 0.02, 0.4
#: How drives collect garbage whose steady state was measured under load: no write waits for a whole victim, or for another plane.
_APART: dict[str, Any] = {"gc_slicing": True, "allocation": "dynamic", "multi_plane": False, "planes_per_die": 1}
#: Erase blocks of a plane that must be left when dies are added.
_LEAST_BLOCKS = 32
#: How often more of something may be of no use.
_VAIN = 2
_MET = 0.01  #: The difference at which a figure is met.


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
        self._base, self._name = base, name
        self._shown, writes = shown, "sequential_write_full" in shown or "sequential_write" in shown
        #: Whether spare flash decides the steady state, and whether rates of writes in order leave the time of a program to it.
        self._spare_decides, self._program_is_free = not overprovisioned and writes, True
        #: Measured values of figures when there was made more of something.
        self._reached = dict[str, list[float]]()
        self.reasons = dict[str, str]()

    def nearer(self, flash: SsdParameters, figure: NominalFigure) -> SsdParameters:
        """A drive whose figure is nearer to the cited one."""
        assert figure.cited is not None
        cited, ratio, transfer = figure.cited, figure.measured / figure.cited, transfer_of(flash)
        match figure.name:
            case "sequential_read":
                if ratio < 1 - _MET and flash.link_read_rate > _BEYOND * figure.measured:
                    return self._widened(flash, figure)
                return self._set(flash, figure, link_read_rate=max(1, round(flash.link_read_rate / ratio)))
            case "sequential_write":
                return self._written_in_order(flash, figure)
            case "sequential_write_full":
                return self._programming(flash, figure)
            case "steady_write_iops":
                return self._with_spare(flash, figure) if self._spare_decides else self._programming(flash, figure)
            case "random_read_iops":
                overhead = flash.read_latency - flash.read - transfer
                if ratio < 1 - _MET and overhead * figure.measured < _BUSY * SECONDS:
                    return self._widened(flash, figure)
                return self._set(flash, figure, read_latency=flash.read + transfer + max(1, round(overhead * ratio)))
            case "random_write_iops":
                overhead = flash.write_latency - flash.program - transfer
                if ratio < 1 - _MET and overhead * figure.measured < _BUSY * SECONDS:
                    return self._programming(flash, figure)
                return self._set(flash, figure, write_latency=flash.program + transfer + max(1, round(overhead * ratio)))
            case "random_read":
                return self._reading(flash, figure)
        later = round(cited - figure.measured)
        if flash.whole_page_buffer and not flash.bus_rate:  # acknowledged there, while the controller takes others
            return self._set(flash, figure, write_submission=max(0, flash.write_submission + later))
        return self._set(flash, figure, write_latency=max(flash.program + transfer + 1, flash.write_latency + later))

    def _set(self, flash: SsdParameters, figure: NominalFigure, **changes: Any) -> SsdParameters:
        self.reasons |= dict.fromkeys(changes, f"what the data sheet's {_words(figure)} leaves")
        return replace(flash, **changes)

    def _written_in_order(self, flash: SsdParameters, figure: NominalFigure) -> SsdParameters:
        """Writes go at the pace of the link, or of flash, if that is slower; as a steady state tells, data sheets give what lasts."""
        assert figure.cited is not None
        lasting = "steady_write_iops" in self._shown and not flash.slc_cache and figure.cited < _OF_LINK * flash.link_read_rate
        if lasting and flash.link_write_rate < _BEYOND * figure.cited:
            self.reasons["link_write_rate"] = "estimate: as of reads, since flash is slower"
            return replace(flash, link_write_rate=flash.link_read_rate)
        if lasting or figure.measured < 0.95 * min(flash.link_write_rate, figure.cited):
            return self._programming(flash, figure)
        return self._set(flash, figure, link_write_rate=max(1, round(flash.link_write_rate * figure.cited / figure.measured)))

    def _programming(self, flash: SsdParameters, figure: NominalFigure) -> SsdParameters:
        """Another time of programs, into the SLC cache or not; more dies where chips would have to be much faster than the base's."""
        assert figure.cited is not None
        size = 1 if figure.name.startswith("sequential") else max(4 * KIB, flash.unit_size)
        if figure.measured < figure.cited and figure.cited * size * _BEYOND > flash.channels * flash.channel_rate:
            return self._with_channels(flash, figure)
        cached = bool(flash.slc_cache) and figure.name not in ("sequential_write_full", "steady_write_iops")
        name, transfer = "slc_program" if cached else "program", transfer_of(flash)
        now = getattr(flash, name) or flash.program
        program = max(1, round((now + transfer) * figure.measured / figure.cited) - transfer)
        if program < (_LEAST_SLC if cached else self._base.program / _FASTER) and figure.measured < figure.cited:
            return self._with_dies(flash, figure)
        self.reasons[name] = f"what the data sheet's {_words(figure)} leaves"
        self._program_is_free &= not figure.name.startswith("sequential")
        if cached:
            return replace(flash, slc_program=program)
        return self._paced(with_chips(flash, **_scaled(flash, "program", program, "program_pages", "program_step", "program_long_step")))

    def _reading(self, flash: SsdParameters, figure: NominalFigure) -> SsdParameters:
        """Another time of reads from all pages alike; the host's part first where chips would have to be much faster than the base's."""
        assert figure.cited is not None
        later = round(figure.cited - figure.measured)
        mean = sum(flash.read_pages) / len(flash.read_pages) if flash.read_pages else flash.read
        read = max(1, round(flash.read * (1 + later / mean)))
        if flash.read_submission and later < 0 and read < self._base.read / _FASTER:
            return self._set(flash, figure, read_submission=max(0, flash.read_submission + later))
        self.reasons["read"] = f"what the data sheet's {_words(figure)} leaves"
        return with_chips(flash, **_scaled(flash, "read", read, "read_pages"))

    def _with_spare(self, flash: SsdParameters, figure: NominalFigure) -> SsdParameters:
        """Another share of spare flash: the write amplification of uniform writes is about (1 + share) / (2 share).

        Source: Agarwal and Marrow, "A closed-form expression for write amplification in NAND flash", IEEE Globecom Workshops 2010.
        """
        assert figure.cited is not None
        spare = flash.effective_overprovisioning
        amplification = (1 + spare) / (2 * spare) * figure.measured / figure.cited
        share = 1 / (2 * amplification - 1) if amplification > 1 / 2 else math.inf
        if share > _MOST_SPARE and (apart := self._apart(flash)) != flash:
            return apart
        if self._program_is_free and not _LEAST_SPARE <= share <= _MOST_SPARE:
            return self._programming(flash, figure)
        flash = with_capacity(flash, flash.capacity, min(max(share, _LEAST_SPARE), _MOST_SPARE))
        besides = f"{flash.effective_overprovisioning:.1%} of flash besides the capacity decide the write amplification"
        self.reasons["blocks_per_plane"] = f"fitted: the data sheet's {figure.cited:,} writes a second in the steady state; {besides}"
        return flash

    def _apart(self, flash: SsdParameters) -> SsdParameters:
        """The drive with planes that collect garbage as dies of their own, in slices; as it is where that is not possible."""
        least = {"gc_reserve": max(flash.gc_reserve, 2 + flash.gc_streams + flash.placement_handles - 1)}
        changes = _APART | least | {"dies_per_package": flash.dies_per_package * flash.planes_per_die}
        with suppress(FlashsimError):
            flash = replace(flash, **changes)
            self.reasons |= dict.fromkeys(changes, "estimate: as drives of data centres collect garbage whose steady state was measured")
        return flash

    def _widened(self, flash: SsdParameters, figure: NominalFigure) -> SsdParameters:
        """More of what bounds reads: of dies, of channels or their rate, or of commands in the drive."""
        read = sum(flash.read_pages) / len(flash.read_pages) if flash.read_pages else flash.read
        size = flash.page_size
        if figure.name == "random_read_iops":
            size = max(flash.code_word, min(4 * KIB, flash.unit_size)) if flash.code_word else flash.unit_size
        elif flash.multi_plane:
            read /= flash.planes_per_die
        pages = figure.measured / (1 if figure.name == "random_read_iops" else size)
        transfer = size * SECONDS / flash.channel_rate
        busy = {
            self._with_dies: pages * (read + (0 if flash.cache_read else transfer)) / flash.dies / SECONDS,
            self._with_channels: pages * transfer / flash.channels / SECONDS,
        }
        most = flash.queue_depth * flash.queues
        commands = min(most, flash.command_slots or most) if pages == figure.measured else flash.command_slots * flash.command_slot / size
        if commands:
            busy[self._with_queue] = pages * (flash.read_submission + flash.read_latency) / commands / SECONDS
        return max(busy, key=lambda change: busy[change])(flash, figure)

    def _with_dies(self, flash: SsdParameters, figure: NominalFigure) -> SsdParameters:
        """Twice as many dies, and a write buffer that holds what all of them program and as much that gathers."""
        if flash.blocks_per_plane < 2 * _LEAST_BLOCKS or not self._least(figure, "packages_per_channel"):
            return flash
        changes = {"packages_per_channel": 2 * flash.packages_per_channel}
        if 0 < flash.write_buffer < 4 * flash.pools * flash.group * flash.unit_size:
            changes["write_buffer"] = 2 * flash.write_buffer
            self.reasons["write_buffer"] = f"estimate: as {self._name}, in proportion to its dies"
        return self._paced(with_capacity(flash, flash.capacity, flash.effective_overprovisioning, **changes))

    def _with_channels(self, flash: SsdParameters, figure: NominalFigure) -> SsdParameters:
        """Faster channels, up to the fastest of these years; then twice as many, with as many dies where packages can be divided."""
        if faster := [rate for rate in _CHANNEL_RATES if rate > flash.channel_rate]:
            return with_chips(flash, channel_rate=faster[0]) if self._least(figure, "channel_rate") else flash
        if not self._least(figure, "channels", "packages_per_channel"):
            return flash
        changes = {"channels": 2 * flash.channels, "packages_per_channel": -(-flash.packages_per_channel // 2)}
        return self._paced(with_capacity(flash, flash.capacity, flash.effective_overprovisioning, **changes))

    def _with_queue(self, flash: SsdParameters, figure: NominalFigure) -> SsdParameters:
        if not self._least(figure, "queue_depth", *(["command_slots"] if flash.command_slots else [])):
            return flash
        return replace(flash, queue_depth=2 * flash.queue_depth, command_slots=2 * flash.command_slots)

    def _least(self, figure: NominalFigure, *names: str) -> bool:
        """Whether more may help, as it did before; the sources of these parameters then."""
        reached = self._reached.setdefault(figure.name, [])
        if len(reached) > _VAIN and figure.measured < _BEYOND * reached[-1 - _VAIN]:
            return False
        reached.append(figure.measured)
        words = f"estimate: the least with which the data sheet's {_words(figure)} is met"
        self.reasons |= dict.fromkeys(names, f"{words}, from that of {self._name} upwards")
        return True

    def _paced(self, flash: SsdParameters) -> SsdParameters:
        """The drive with its pace of writes beside collection in proportion to what its dies program."""
        base = self._base
        if not base.collection_rate:
            return flash
        faster = flash.pools / base.pools * base.program / flash.program
        names = ("collection_rate", "collection_debt", "collection_floor")
        self.reasons |= dict.fromkeys(names, f"estimate: as {self._name}, in proportion to what all dies program")
        return replace(flash, **{name: round(getattr(base, name) * faster) for name in names})


def _words(figure: NominalFigure) -> str:
    return figure.name.replace("_", " ")


def _scaled(flash: SsdParameters, name: str, to: int, *others: str) -> dict[str, Any]:
    """A time of the chips, and others in proportion."""
    factor, changes = to / getattr(flash, name), dict[str, Any]()
    for each in others:
        now = getattr(flash, each)
        changes[each] = tuple(max(1, round(time * factor)) for time in now) if isinstance(now, tuple) else round(now * factor)
    return changes | {name: to}
