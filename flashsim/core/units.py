"""Units: time is integer nanoseconds, space is integer bytes; the only module that converts.

Power is integer milliwatts and energy integer picojoules: a milliwatt for a nanosecond.  Each unit's name is what it comes to: what is in
milliseconds is multiplied by `MILLISECONDS`, and what is to be shown in them is divided.
Sizes written by people carry a unit: ``100MB`` is 10**8 bytes and ``100MiB`` is 100 * 2**20; bare numbers are refused.
"""

import re
from contextlib import suppress
from decimal import Decimal, InvalidOperation

from flashsim.core.errors import InvalidParameterError

NANOSECONDS = 1
MICROSECONDS = 1_000
MILLISECONDS = 1_000_000
SECONDS = 1_000_000_000
MINUTES, HOURS = 60 * SECONDS, 3600 * SECONDS
MILLISECONDS_A_SECOND = SECONDS // MILLISECONDS  #: Formulas reckon in milliseconds and tell seconds.

#: Picojoules, and milliwatts.
MICROJOULES, JOULES = 10**6, 10**12
WATTS = 1000

KB, MB, GB, TB = 10**3, 10**6, 10**9, 10**12
KIB, MIB, GIB, TIB = 2**10, 2**20, 2**30, 2**40

NEVER = 2**62  #: The latest virtual time; "no event".

_SIZE_UNITS = {
    "b": 1, "kb": KB, "mb": MB, "gb": GB, "tb": TB, "kib": KIB, "mib": MIB, "gib": GIB, "tib": TIB,
}  # fmt: skip
#: Units of sizes, the largest first.
_BINARY = ((TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB"))
_DECIMAL = ((TB, "TB"), (GB, "GB"), (MB, "MB"), (KB, "KB"))
_DURATION_UNITS = {"ns": NANOSECONDS, "us": MICROSECONDS, "ms": MILLISECONDS, "s": SECONDS, "min": MINUTES, "h": HOURS}
_ENERGY_UNITS = {"pj": 1, "nj": 10**3, "uj": MICROJOULES, "mj": 10**9, "j": JOULES}
_POWER_UNITS = {"mw": 1, "w": WATTS}
#: Digits that a number below `NEVER` has at most, and more than any unit tells apart behind the point.
_MOST_DIGITS = 19
_QUANTITY = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]+)\s*")


def _parse(text: str, parameter: str, units: dict[str, int], examples: str) -> int:
    match = _QUANTITY.fullmatch(text)
    scale = units.get(match[2].lower()) if match else None
    if text.startswith("-") and _QUANTITY.fullmatch(text[1:]):
        raise InvalidParameterError(parameter, repr(text), "it must not be negative")
    if match is None or scale is None:
        raise InvalidParameterError(parameter, repr(text), f"a number with a unit is needed, such as {examples}")
    whole, _, fraction = match[1].partition(".")
    value = NEVER if len(whole.lstrip("0")) > _MOST_DIGITS else int(whole[-_MOST_DIGITS:]) * scale
    is_whole = not fraction.strip("0")
    if fraction := fraction[:_MOST_DIGITS]:
        value += round(int(fraction) * scale / 10 ** len(fraction))
        is_whole = is_whole or int(fraction) * scale % 10 ** len(fraction) == 0
    if not is_whole and ((value < KIB or scale == 1) if units is _SIZE_UNITS else value == 0):  # of more a fraction is not noticed
        what = "a size is a whole number of bytes" if units is _SIZE_UNITS else f"it must be 0, or at least 1 {next(iter(units))}"
        raise InvalidParameterError(parameter, repr(text), what)
    if value >= NEVER:
        raise InvalidParameterError(parameter, repr(text), "it is too large for any device")
    return value


def parse_size(text: str, parameter: str = "size") -> int:
    """Bytes of a size with a unit, such as ``"8KiB"``, ``"100MB"`` or ``"1.5GiB"``, in any case; error messages name `parameter`.

    >>> parse_size("100MB"), parse_size("100MiB")
    (100000000, 104857600)
    """
    return _parse(text, parameter, _SIZE_UNITS, "8KiB, 100MB or 1.5GiB")


def parse_count(text: str, parameter: str = "count") -> int:
    """A whole number, written with an exponent if that is shorter.

    >>> parse_count("1e6"), parse_count("-3")
    (1000000, -3)
    """
    value = Decimal("nan")
    with suppress(InvalidOperation):
        value = Decimal(text)
    if value.is_finite() and abs(value) >= NEVER:
        raise InvalidParameterError(parameter, repr(text), f"it must be below {NEVER}")
    if not value.is_finite() or value != int(value):
        raise InvalidParameterError(parameter, repr(text), "it must be a whole number")
    return int(value)


def parse_duration(text: str, parameter: str = "duration") -> int:
    """Nanoseconds of a duration with a unit, such as ``"0.35ms"``; a correction may be negative.

    >>> parse_duration("0.35ms"), parse_duration("-20us")
    (350000, -20000)
    """
    if text.startswith("-"):
        return -_parse(text[1:], parameter, _DURATION_UNITS, "20us, 0.35ms or 2s")
    return _parse(text, parameter, _DURATION_UNITS, "20us, 0.35ms or 2s")


def parse_energy(text: str, parameter: str = "energy") -> int:
    """Picojoules of an energy with a unit (``pJ``, ``nJ``, ``uJ``, ``mJ``, ``J``).

    >>> parse_energy("0.75uJ")
    750000
    """
    return _parse(text, parameter, _ENERGY_UNITS, "40pJ, 0.75uJ or 2mJ")


def parse_power(text: str, parameter: str = "power") -> int:
    """Milliwatts of a power with a unit (``mW``, ``W``).

    >>> parse_power("1.65W")
    1650
    """
    return _parse(text, parameter, _POWER_UNITS, "60mW or 1.65W")


def _short(value: float) -> str:
    return f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}"


def format_size(size: int) -> str:
    """A size for people: exact where a few digits will do, otherwise about; from 100 MB on in decimal units, as drives are sold.

    Of several units that will do the one with the fewest digits is taken, and of those a binary one.

    >>> format_size(8192), format_size(100_000_000), format_size(1536)
    ('8 KiB', '100 MB', '1.5 KiB')
    >>> format_size(500_000_000_000), format_size(320_072_933_376), format_size(9_503)
    ('500 GB', '320.1 GB', '9.28 KiB')
    """
    if size < KB:
        return f"{size} B"
    exact = [
        text
        for units, digits in ((_BINARY, 4), (_DECIMAL, 3))
        for unit, name in units
        if unit <= size < 10**digits * unit and float((text := f"{size / unit:.{digits}g} {name}").split()[0]) * unit == size
    ]
    if exact:
        return min(exact, key=lambda text: len(text.split()[0].replace(".", "")))
    return next(f"{_short(size / unit)} {name}" for unit, name in (_BINARY if KIB <= size < 100 * MB else _DECIMAL) if size >= unit)


def format_duration(duration: int) -> str:
    """A duration in nanoseconds for people.

    >>> format_duration(350_000), format_duration(1_500_000_000), format_duration(10 * HOURS)
    ('350 us', '1.5 s', '10 h')
    """
    if duration >= HOURS and duration % (HOURS // 100) == 0:
        return f"{duration / HOURS:g} h"
    for unit, name in ((SECONDS, "s"), (MILLISECONDS, "ms"), (MICROSECONDS, "us")):
        if abs(duration) >= unit:
            return f"{_short(duration / unit)} {name}"
    return f"{duration} ns"


def format_energy(energy: float) -> str:
    """An energy in picojoules for people.

    >>> format_energy(750_000), format_energy(40)
    ('0.75 uJ', '40 pJ')
    """
    for name, unit in (("J", JOULES), ("mJ", 10**9), ("uJ", MICROJOULES)):
        if abs(energy) >= unit / 10:
            return f"{_short(energy / unit)} {name}"
    return f"{_short(energy)} pJ"


def format_power(power: float) -> str:
    """A power in milliwatts for people.

    >>> format_power(1650), format_power(60)
    ('1.65 W', '60 mW')
    """
    return f"{_short(power / WATTS)} W" if abs(power) >= WATTS else f"{_short(power)} mW"


def transfer_time(size: int, rate: float) -> int:
    """Nanoseconds to move `size` bytes at `rate` bytes a second, at least 1, rounded to nearest."""
    return max(1, round(size * SECONDS / rate))
