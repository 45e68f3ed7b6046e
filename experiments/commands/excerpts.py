"""Options of commands that read a trace: its format, and which part of it (`traces.excerpt.excerpt`)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.values import completes

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
