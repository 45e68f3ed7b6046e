"""Devices of a system of pools from texts: a table's rates, a preset or a part of it, or several such drives; and their wear."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import gcd
from typing import Any

from flashsim.core.compiling import Part, parts_of
from flashsim.core.errors import InvalidParameterError
from flashsim.core.mechanisms import DeviceMechanism, changes_of
from flashsim.core.model import CompiledModel
from flashsim.core.parameters import count, switch
from flashsim.core.units import KIB, SECONDS, format_size
from flashsim.device import engines, presets
from flashsim.device.scaling import part_of
from flashsim.device.station import StationParameters
from flashsim.device.station.engine import StationEngine
from flashsim.execution.compiled_loop import Striped
from flashsim.pools.mechanisms import mechanisms_of_drive, mechanisms_of_rates
from flashsim.ssd.precondition import Precondition, precondition
from traces.references.base import parse

RATES = "rates"  #: The name of a station whose times come from requests a second.
#: Bytes in a row on one of several drives: what a scan of 32 pages reads at once, or the cleaner writes, lies on one.
STRIPE = 256 * KIB
#: Counters of the flash drives of a device together: bytes that the host wrote, bytes of flash pages programmed, those of them
#: that garbage collection moved, and blocks erased.
WORN = ("flash_written", "flash_programmed", "flash_moved", "flash_erases")
_YEAR = 365.25 * 24 * 3600
_FORM = re.compile(r"(?:(?P<drives>[1-9][0-9]{0,3})x)?(?P<preset>.+?)(?:/(?P<parts>[1-9][0-9]{0,8}))?")


@dataclass(frozen=True)
class Rates:
    """Requests of a page that a device serves a second; exponentially distributed times have these means, others are constant."""

    read: int = count("pages a second that are read at random, by all servers together")
    write: int = count("pages a second that are written at random, by all servers together")
    further: int = count("pages a second that a request goes on with behind its first one; 0 for no end of them", least=0, default=0)
    servers: int = count("requests served at once", default=1)
    exponential: bool = switch("whether times are exponentially distributed", default=False)
    speed: int = count("percent, divides the time of a request's first page", default=100)

    def station(self, page_size: int) -> StationParameters:
        ahead = SECONDS // self.further if self.further else 0
        read, write = (round(self.servers * SECONDS / (rate * self.speed / 100)) - ahead for rate in (self.read, self.write))
        return StationParameters(read, write, servers=self.servers, rate=self.further * page_size, exponential=self.exponential)


#: Do, 2012, table 3.1: eight disks and the Fusion ioDrive.
DISKS_3_1, SSD_3_1 = Rates(1015, 895, 26370, 8), Rates(12182, 12374)


#: Default rates of the disks and the SSD.
_PUBLISHED: dict[str, dict[str, int]] = {"disk": vars(DISKS_3_1), "ssd": vars(SSD_3_1)}


@dataclass(frozen=True)
class PoolDevice:
    """A device before it is made.

    `purpose`: one of `flashsim.execution.pooled.system.PURPOSES`. `text`: ``rates`` (Do, 2012, table 3.1), with other values as
    ``rates:read=1015,write=895,further=26370,servers=8``; a preset's name or TOML file, and one of 100 equal parts of it
    (`flashsim.device.scaling`) as ``iodrive-slc-160gb/100``; or eight drives of it that are striped, as ``8xtoshiba-5400-320gb``.
    `ideal`: names of mechanisms that take no time, of those that are its own (`mechanisms`).
    """

    purpose: str
    text: str
    ideal: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.is_rates:
            self.rates()
        else:
            engines.check_policies(self.preset)

    @property
    def is_rates(self) -> bool:
        return self.text.partition(":")[0] == RATES

    @property
    def drives(self) -> int:
        if self.is_rates:
            return 1
        array = self.preset.array
        return int(self._match["drives"] or 1) * (array.drives if array else 1)

    @property
    def stripe(self) -> int:
        """Bytes in a row on one drive, 0 for all."""
        if self.drives == 1:
            return 0
        array = self.preset.array
        return array.stripe if array else STRIPE

    @property
    def capacity(self) -> int:
        if self.is_rates:
            return StationParameters(1, 1).capacity
        each = self.preset.parameters.capacity
        return each // self.stripe * self.stripe * self.drives if self.stripe else each

    @property
    def is_flash(self) -> bool:
        return not self.is_rates and self.preset.flash is not None

    @property
    def lifetime_erases(self) -> int:
        """Erases that the blocks of its drives last together, of whole ones where it is parts of them; 0 where it is not known."""
        return 0 if self.is_rates else self.drives * self._whole.lifetime_erases

    def make(self, page_size: int, state: Precondition | None = None) -> CompiledModel | Striped:
        """The device, idle, as the compiled loop takes it; of flash drives each in a state, else empty."""
        changes = changes_of(tuple(each for each in self.mechanisms() if each.name in self.ideal)) if self.ideal else {}
        if self.is_rates:
            return StationEngine(replace(self.rates().station(page_size), **changes))
        engines.finish(self.preset)
        kind, _ = engines.classes_of(self.preset, "engine")
        drives: Sequence[Any] = [kind(replace(self.preset.parameters, **changes)) for _ in range(self.drives)]
        if state is not None:
            for number, drive in enumerate(drives):
                precondition(drive.state, replace(state, seed=state.seed + number))
        return Striped(drives, self.stripe) if self.drives > 1 else drives[0]

    def mechanisms(self) -> list[DeviceMechanism]:
        """Mechanisms of the device; names and titles say what the device is for."""
        return mechanisms_of_rates(self.purpose) if self.is_rates else mechanisms_of_drive(self.purpose, self.preset)

    def parts(self) -> list[Part]:
        return parts_of([StationEngine.__module__]) if self.is_rates else engines.parts_for(self.preset)

    def check_room(self, parameter: str, value: str, size: int) -> None:
        """Refuse a size above the capacity."""
        if size > self.capacity:
            request = value if value == format_size(size) else f"{value} ({format_size(size)})"
            raise InvalidParameterError(parameter, request, f"the {self.purpose}, {self.text}, holds {format_size(self.capacity)}")

    @cached_property
    def preset(self) -> presets.Preset:
        return part_of(self._whole, int(self._match["parts"])) if self._match["parts"] else self._whole

    @property
    def preset_name(self) -> str:
        """The preset or file, of which it may be several, or a part."""
        return self.text if self.is_rates else self._match["preset"]

    @cached_property
    def _whole(self) -> presets.Preset:
        return presets.load(self._match["preset"])

    @property
    def _match(self) -> re.Match[str]:
        match = _FORM.fullmatch(self.text)
        if match is None:
            raise InvalidParameterError(self.purpose, repr(self.text), "a device has a name")
        return match

    def rates(self) -> Rates:
        return parse(self.text, Rates, _PUBLISHED.get(self.purpose, {}))


def pages_in_a_row(devices: Sequence[PoolDevice], page_size: int) -> int:
    """Pages of which multiples no request may cross, so that each lies on one drive."""
    common = gcd(*(each.stripe for each in devices if each.purpose in ("disk", "ssd")))
    if common % page_size:
        raise InvalidParameterError("page size", format_size(page_size), f"stripes of {format_size(common)} must hold whole pages")
    return common // page_size if common else 1 << 30


def statistics(device: CompiledModel | Striped) -> list[dict[str, Any]]:
    return [drive.statistics() for drive in (device.drives if isinstance(device, Striped) else [device])]


def flash_counts(device: CompiledModel | Striped, page_size: int) -> list[int]:
    """The counters `WORN` of a device's flash drives until now; `page_size`: bytes of a flash page."""
    each = statistics(device)
    written, programs, moved, erases = (
        sum(drive[name] for drive in each) for name in ("host_write_bytes", "flash_programs", "programs_gc", "flash_erases")
    )
    return [written, programs * page_size, moved * page_size, erases]


def wear(sums: Mapping[str, float], seconds: float, lifetime_erases: int) -> dict[str, float | None]:
    """Bytes programmed a transaction, write amplification, erases a second, and years until the drive's blocks have had all their erases.

    `sums`: growth of `WORN` and ``transactions`` in `seconds`. `seconds`: virtual time. `lifetime_erases`: erases that the blocks of the
    whole drive last together; 0: unknown.

    >>> sums = {"flash_written": 8e9, "flash_programmed": 16e9, "flash_erases": 62500, "transactions": 1e6}
    >>> result = wear(sums, 1000, 7680 * 96 * 100_000)
    >>> result["ssd_programmed_per_transaction"], result["ssd_write_amplification"], round(result["ssd_years"], 2)
    (16000.0, 2.0, 37.38)
    """
    erases = sums["flash_erases"] / seconds
    return {
        "ssd_programmed_per_transaction": sums["flash_programmed"] / max(1, sums["transactions"]),
        "ssd_write_amplification": sums["flash_programmed"] / sums["flash_written"] if sums["flash_written"] else None,
        "ssd_erases_s": erases,
        "ssd_years": lifetime_erases / erases / _YEAR if lifetime_erases and erases else None,
    }
