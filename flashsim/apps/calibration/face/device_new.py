"""``flashsim device new``: the preset of a flash drive that shows the figures of a data sheet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from flashsim.apps.calibration.data_sheet import DataSheet, document_of, new_drive
from flashsim.apps.calibration.face._preset_file import preset_file
from flashsim.core.activity import activity
from flashsim.core.errors import InvalidParameterError
from flashsim.core.units import MB, TB, WATTS, format_size
from flashsim.device import figures
from flashsim.experiments.presentation import tables
from flashsim.experiments.presentation.tables import Table
from flashsim.operations import fields
from flashsim.operations.fields import Count, Duration, Name, Number, Size, Target
from flashsim.operations.operation import operation
from flashsim.operations.outcome import Listing

#: A number above 0.
_positive = fields.positive("a number above 0 is needed")


def _share(value: Any, parameter: str) -> float:
    """A share of a drive's capacity, which nobody doubles."""
    if (share := _positive(value, parameter)) >= 1:
        raise InvalidParameterError(parameter, value, "a share below 1 is needed: 0.2 is 20 %")
    return share


@operation
def device_new(
    *,
    preset: Annotated[str, Name("A flash drive, for what nothing is said of.", "PRESET", completes=("presets",))],
    out: Annotated[Any, Target("The preset to write.", "PRESET.toml")],
    title: Annotated[str | None, Name("A line that says what it is.", "TEXT")] = None,
    capacity: Annotated[Any, Size("Bytes that the host can address.")] = None,
    overprovisioning: Annotated[float | None, Number("Flash besides that, as a share of it.", "SHARE", parse=_share)] = None,
    read_mbps: Annotated[float | None, Number("Reads in order, MB/s.", "N", parse=_positive)] = None,
    write_mbps: Annotated[float | None, Number("Writes in order, MB/s, as they last.", "N", parse=_positive)] = None,
    read_iops: Annotated[int | None, Count("Reads of 4 KiB a second, as many outstanding as the drive takes.")] = None,
    write_iops: Annotated[int | None, Count("Writes of 4 KiB a second, many outstanding, with free blocks.")] = None,
    read_latency: Annotated[Any, Duration("A read of 4 KiB alone.")] = None,
    write_latency: Annotated[Any, Duration("A write of 4 KiB alone.")] = None,
    written: Annotated[float | None, Number("Terabytes that may be written in its life.", "TB", option="--tbw", parse=_positive)] = None,
    idle_power: Annotated[float | None, Number("Watts when idle.", "W", parse=_positive)] = None,
    active_power: Annotated[float | None, Number("Watts under load.", "W", parse=_positive)] = None,
    force: fields.Force = False,
) -> Listing:
    """Write the preset of a flash drive that shows the figures of a data sheet.

    The drive is simulated and changed until it shows them within 1 %. What the data sheet does not tell is as of the drive that it comes
    from; its source says that this is an estimate, and in which range the presets' drives are.

    Examples::

        flashsim device new --preset intel-x25e-64gb --out mine.toml --capacity 80GB --read-mbps 240 --read-iops 30000 --read-latency 80us

    Examples
    --------
    >>> import flashsim as fs
    >>> fs.device_new(preset="intel-x25e-64gb", out="mine.toml", capacity="80GB", read_iops=30000)  # doctest: +SKIP
    """
    target = preset_file(out)
    rates = {"sequential_read": read_mbps, "sequential_write": write_mbps}
    shown = {name: round(value * MB) for name, value in rates.items() if value is not None}
    rest = {"random_read_iops": read_iops, "random_write_iops": write_iops, "random_read": read_latency, "random_write": write_latency}
    shown |= {name: value for name, value in rest.items() if value is not None}
    powers = [None if power is None else round(power * WATTS) for power in (idle_power, active_power)]
    sheet = DataSheet(shown, capacity, None if written is None else round(written * TB), overprovisioning, *powers)
    name = Path(target).stem
    with activity("fitting") as progress:
        made = new_drive(preset, name, title or f"{name}, from a data sheet", sheet, progress)
    out.write_text(made.text(), encoding="utf-8")
    rows = made.rows()
    columns = {"figure": "name", "data sheet": "cited", "shown": "measured", "differs by": ("difference", tables.difference)}
    for row in rows:
        row |= {each: figures.show(row["name"], row[each]) for each in ("cited", "measured")}
    table = [Table.of(rows, columns)] if rows else []
    return Listing([f"{target}: like {made.base}, {format_size(made.preset.capacity)}\n", *table], rows, document_of(made.preset))
