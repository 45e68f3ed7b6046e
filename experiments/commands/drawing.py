"""The timeline that commands write: its options, and the window of time that they name."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Any

import typer

from experiments.presentation import timeline as timelines
from flashsim.core.errors import InvalidParameterError
from flashsim.core.provenance import provenance
from flashsim.core.units import NEVER, parse_duration
from flashsim.device.device import Device

Timeline = Annotated[
    Path | None, typer.Option("--timeline", metavar="FILE.json[.gz]", help="Write a timeline that Perfetto opens (trace-event format).")
]
TimelineFrom = Annotated[str | None, typer.Option("--timeline-from", metavar="TIME", help="Begin the timeline at this time, such as 1.5s.")]
TimelineTo = Annotated[str | None, typer.Option("--timeline-to", metavar="TIME", help="End the timeline at this time.")]


def timeline_window(timeline: Path | None, begin: str | None, end: str | None) -> tuple[int, int]:
    """The window of time, ns.

    Raises
    ------
    InvalidParameterError
        A time without a unit, an end that is not after the begin, or a window without a timeline.
    """
    for name, value in (("timeline-from", begin), ("timeline-to", end)):
        if value and not timeline:
            raise InvalidParameterError(name, value, "there must be a --timeline")
    window = parse_duration(begin, "timeline-from") if begin else 0, parse_duration(end, "timeline-to") if end else NEVER
    if window[0] >= window[1]:
        raise InvalidParameterError("timeline-to", end, f"it must be after {begin or 0}")
    return window


def draw(
    target: Path, named: Path, window: tuple[int, int], asked: dict[str, Any], device: Device
) -> AbstractContextManager[timelines.Timeline]:
    """Begin the timeline of a device in the file `target`, which is packed if its final name says so."""
    flash = device.preset.flash
    dies, channels = (flash.dies, flash.channels) if flash else (0, 0)
    return timelines.write_timeline(
        target, named.suffix == ".gz", device.name, dies=dies, channels=channels, begin=window[0], end=window[1], about=provenance(asked)
    )
