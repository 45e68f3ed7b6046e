"""``flashsim device new``: the preset of a drive that shows the figures of a data sheet."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

from flashsim.apps.calibration.data_sheet import DataSheet, document_of, new_drive
from flashsim.apps.calibration.disk_changes import rotation_of
from flashsim.apps.calibration.face._preset_file import preset_file
from flashsim.core.activity import activity
from flashsim.core.errors import InvalidParameterError, RefusedError
from flashsim.core.parameters import build
from flashsim.core.request import SECTOR
from flashsim.core.units import MB, TB, WATTS, format_size
from flashsim.device import figures, presets
from flashsim.device.product import Product
from flashsim.experiments.presentation import tables
from flashsim.experiments.presentation.tables import Table
from flashsim.experiments.presentation.terminal import Part, next_steps
from flashsim.operations import fields
from flashsim.operations.fields import Count, Duration, Name, Number, Size, Target
from flashsim.operations.operation import operation
from flashsim.operations.outcome import Listing

#: Days of a year, of warranties.
_DAYS = 365
_STEADY = "Random writes of 4 KiB (or of --mapping-unit, if larger) per second in steady state, over the whole drive."
#: A number above 0.
_positive = fields.positive("a number above 0 is needed")


def _share(value: Any, parameter: str) -> float:
    """A share of a drive's capacity, which nobody doubles."""
    if (share := _positive(value, parameter)) >= 1:
        raise InvalidParameterError(parameter, value, "a share below 1 is needed: 0.2 is 20 %")
    return share


#: Options of disks alone, and those of both kinds of drives; all others are of flash drives.
_DISK, _BOTH = {"rpm", "seek", "cache", "heads"}, {"preset", "out", "title", "year", "capacity", "read_mbps", "force"}


@operation
def device_new(
    *,
    preset: Annotated[
        str, Name("Base: a flash drive or disk preset; values without an option are copied from it.", "PRESET", completes=("presets",))
    ],
    out: Annotated[Any, Target("Target file of the preset.", "PRESET.toml")],
    title: Annotated[str | None, Name("Title of the preset, one line.", "TEXT", seldom=True)] = None,
    year: Annotated[int | None, Count("Year of release; determines the CPU preset of joins.")] = None,
    capacity: Annotated[Any, Size("Capacity that the host can address.")] = None,
    overprovisioning: Annotated[float | None, Number("Overprovisioned flash as a share of the capacity.", "SHARE", parse=_share)] = None,
    read_mbps: Annotated[float | None, Number("Sequential reads, MB/s (disk: on the outermost tracks).", "N", parse=_positive)] = None,
    write_mbps: Annotated[
        float | None, Number("Sequential writes, MB/s, into the SLC cache if there is one.", "N", parse=_positive)
    ] = None,
    write_mbps_after: Annotated[float | None, Number("Sequential writes, MB/s, once the SLC cache is full.", "N", parse=_positive)] = None,
    read_iops: Annotated[int | None, Count("Random reads of 4 KiB per second at --queue-depth.")] = None,
    write_iops: Annotated[int | None, Count("Random writes of 4 KiB per second on an empty drive at --queue-depth.")] = None,
    steady_write_iops: Annotated[int | None, Count(_STEADY)] = None,
    read_latency: Annotated[Any, Duration("Latency of a 4 KiB read at queue depth 1.")] = None,
    write_latency: Annotated[Any, Duration("Latency of a 4 KiB write at queue depth 1.")] = None,
    slc_cache: Annotated[Any, Size("Size of the SLC cache of an empty drive; 0B for none.", parse=partial(fields.size, least=0))] = None,
    mapping_unit: Annotated[
        Any, Size("Mapping unit: bytes per entry of the mapping table.", parse=partial(fields.size, least=SECTOR))
    ] = None,
    queue_depth: Annotated[int | None, Count("Queue depth of the data sheet's rates; at most 32 with SATA.")] = None,
    written: Annotated[float | None, Number("Rated endurance: terabytes written (TBW).", "TB", option="--tbw", parse=_positive)] = None,
    dwpd: Annotated[float | None, Number("Rated endurance: drive writes per day within the warranty (DWPD).", "N", parse=_positive)] = None,
    warranty: Annotated[float | None, Number("Warranty in years; 5 by default.", "YEARS", parse=_positive, needs="dwpd")] = None,
    wear_amplification: Annotated[
        float | None, Number("Write amplification that the rated endurance assumes; 1 by default.", "N", parse=_positive, seldom=True)
    ] = None,
    idle_power: Annotated[float | None, Number("Idle power, W.", "W", parse=_positive, seldom=True)] = None,
    active_power: Annotated[float | None, Number("Power under load, W.", "W", parse=_positive)] = None,
    rpm: Annotated[float | None, Number("Disk: revolutions per minute.", "N", parse=_positive)] = None,
    seek: Annotated[Any, Duration("Disk: average seek time.")] = None,
    cache: Annotated[Any, Size("Disk: cache size.")] = None,
    heads: Annotated[int | None, Count("Disk: number of heads.", seldom=True)] = None,
    force: fields.Force = False,
) -> Listing:
    """Create a device preset from a data sheet.

    The drive is simulated and changed until it shows them within 1 %; what it misses by more than 3 % is said. What the data sheet does not
    tell is as of the drive that it comes from; its source says that this is an estimate, and in which range the presets' drives are.

    Examples::

        flashsim device new --preset intel-x25e-64gb --out mine.toml --capacity 80GB --read-mbps 240 --read-iops 30000 --read-latency 80us
        flashsim device new --preset micron-7450-pro-960gb --out dc.toml --read-mbps 6800 --write-mbps 1400 --steady-write-iops 80000
        flashsim device new --preset seagate-barracuda-7200.12 --out x18.toml --capacity 18TB --rpm 7200 --read-mbps 270 --seek 8.5ms

    Examples
    --------
    >>> import flashsim as fs
    >>> fs.device_new(preset="intel-x25e-64gb", out="mine.toml", capacity="80GB", read_iops=30000)  # doctest: +SKIP
    """
    given = locals()
    target, base = preset_file(out), presets.load(preset)
    names, kind = (given.keys() - _DISK - _BOTH, "a disk") if base.disk else (_DISK, "a flash drive")
    fields.refuse({name: given[name] is not None for name in sorted(names)}, f"{base.name} is {kind}")
    if written and dwpd:
        raise RefusedError("dwpd: what may be written is given in terabytes already")
    rates = {"sequential_read": read_mbps, "sequential_write": write_mbps, "sequential_write_full": write_mbps_after}
    shown = {name: round(value * MB) for name, value in rates.items() if value is not None}
    rotation = rotation_of(rpm) if rpm else None
    rest = {"random_read_iops": read_iops, "random_write_iops": write_iops, "random_read": read_latency, "random_write": write_latency}
    rest |= {"steady_write_iops": steady_write_iops, "mean_seek": seek, "rotational_latency": rotation and rotation // 2}
    shown |= {name: value for name, value in rest.items() if value is not None}
    idle, loaded = (None if power is None else round(power * WATTS) for power in (idle_power, active_power))
    endurance, years = None if written is None else round(written * TB), warranty or 5.0
    written_as = f" ({dwpd:g} drive writes a day for {years:g} years)" if dwpd else ""
    if dwpd:
        endurance = round(dwpd * (capacity or base.capacity) * _DAYS * years)
    sheet = DataSheet(
        shown, capacity, endurance, overprovisioning, idle, loaded, wear_amplification or 1.0, written_as,
        slc_cache, mapping_unit, queue_depth, rotation, cache, heads, build(Product, {"year": year} if year else {}),
    )  # fmt: skip
    name = Path(target).stem
    with activity("fitting") as progress:
        made = new_drive(preset, name, title or f"{name}, from a data sheet", sheet, progress)
    out.write_text(made.text(), encoding="utf-8")
    rows = made.rows()
    columns = {"figure": "name", "data sheet": "cited", "shown": "measured", "differs by": ("difference", tables.difference)}
    for row in rows:
        row |= {each: figures.show(row["name"], row[each]) for each in ("cited", "measured")}
    table = [Table.of(rows, columns)] if rows else []
    steps: list[Part] = ["", next_steps(f"flashsim device show {target}", f"every option --device takes {target}")]
    return Listing([f"{target}: like {made.base}, {format_size(made.preset.capacity)}\n", *table, *steps], rows, document_of(made.preset))
