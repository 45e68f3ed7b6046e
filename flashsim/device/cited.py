"""Figures that a drive is meant to show: what a preset may cite, by name, and what each one means."""

import dataclasses
from dataclasses import dataclass
from typing import Any

from flashsim.core.parameters import count, duration, rate
from flashsim.core.units import MB, MICROSECONDS


def _maybe(declared: Any) -> Any:
    return dataclasses.field(default=None, metadata=declared.metadata)


@dataclass(frozen=True)
class CitedFigures:
    """Bytes a second, ns, requests a second, erases; None where a preset cites nothing.  Make it with `flashsim.core.parameters.build`."""

    mean_seek: int | None = _maybe(duration("the arm's way to a read anywhere, of a disk alone on it", 1))
    rotational_latency: int | None = _maybe(duration("from the end of that seek until the first sector comes by", 1))
    sequential_read: int | None = _maybe(rate("reads of 1 MiB in order, as many outstanding as the drive takes"))
    sequential_write: int | None = _maybe(rate("writes of 1 MiB in order, as many outstanding as the drive takes"))
    read_access: int | None = _maybe(duration("a read of one sector anywhere, alone on the drive", 1))
    random_read: int | None = _maybe(duration("a read of 4 KiB anywhere, alone on the drive", 1))
    random_read_iops: int | None = _maybe(count("reads of 4 KiB a second, as many outstanding as the drive takes"))
    random_write: int | None = _maybe(duration("a write of 4 KiB anywhere, alone on a drive with free blocks", 1))
    random_write_iops: int | None = _maybe(count("writes of 4 KiB a second, many outstanding, on a drive with free blocks"))
    page_read: int | None = _maybe(duration("a read of 8 KiB anywhere, alone on the drive", 1))
    page_write: int | None = _maybe(duration("a write of 8 KiB anywhere, alone on a drive with free blocks", 1))
    block_erases: int | None = _maybe(count("erases that an erase block lasts, from which years are told; no drive wears out by it"))

    def given(self) -> dict[str, int]:
        """The figures that are cited, in order of declaration."""
        return {name: value for name, value in vars(self).items() if value is not None}


def meaning(figure: str) -> str:
    return str(_FIELDS[figure].metadata["meaning"])


def show(figure: str, value: float) -> str:
    """A figure with its unit.

    Examples
    --------
    >>> show("sequential_read", 120_000_000), show("read_access", 350_000), show("random_read_iops", 35000)
    ('120 MB/s', '350 us', '35,000/s')
    """
    if figure == "block_erases":
        return f"{value:,.0f}"
    if _FIELDS[figure].metadata["parse"] is None:
        return f"{value:,.0f}/s"
    return f"{value / MB:.4g} MB/s" if figure.startswith("sequential") else f"{value / MICROSECONDS:.4g} us"


_FIELDS = {field.name: field for field in dataclasses.fields(CitedFigures)}
#: The names of all figures that can be measured, and those of the mechanism that only disks have.
NAMES = tuple(name for name in _FIELDS if name != "block_erases")
MECHANICAL = ("mean_seek", "rotational_latency")
