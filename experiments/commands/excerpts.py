"""What commands that read a trace take besides its path: its format, and which part of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.values import completes
from flashsim.core.errors import RefusedError
from flashsim.core.units import parse_duration
from traces.excerpt import Excerpt

TraceFile = Annotated[Path, typer.Argument(metavar="FILE", help="A trace of any format; the format is told by its content.")]
FormatName = Annotated[
    str | None,
    typer.Option(
        "--format",
        "--from",
        metavar="NAME|FILE.py",
        help="The trace's format, if its content does not tell: {formats}.",
        autocompletion=completes("formats"),
    ),
]
Columns = Annotated[
    str | None,
    typer.Option(metavar="ROLE=NAME:UNIT,...", help="Columns of a CSV file, such as time=Stamp:ms,offset=LBA:sectors,length=Size:bytes."),
]
Devices = Annotated[
    list[int] | None, typer.Option("--device-number", metavar="N", help="Only requests of this device of the trace; may be repeated.")
]
Start = Annotated[str | None, typer.Option(metavar="TIME", help="Only from so long after the first request, such as 10s.")]
Window = Annotated[str | None, typer.Option(metavar="TIME", help="Only so long, from --start or the first request on.")]
Speed = Annotated[float, typer.Option(metavar="X", help="Let requests arrive, and programs think, X times as fast.")]


def excerpt(
    file: Path,
    format_name: str | None,
    columns: str | None,
    devices: list[int] | None = None,
    start: str | None = None,
    window: str | None = None,
    speed: float = 1,
) -> Excerpt:
    """The part of a trace that was asked for.

    Raises
    ------
    RefusedError, InvalidParameterError
        Columns of another format than csv; a value out of its bounds.
    """
    if columns is not None:
        if format_name not in (None, "csv"):
            raise RefusedError(f"--columns: {format_name} has its own; they are of --format csv")
        format_name = f"csv:{columns}"
    begin = parse_duration(start, "--start") if start else 0
    return Excerpt(file, format_name, tuple(devices or ()), begin, parse_duration(window, "--window") if window else None, speed)
