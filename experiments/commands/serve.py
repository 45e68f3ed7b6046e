"""``flashsim device serve``: a simulated drive, with content, for programs that speak NBD."""

from __future__ import annotations

import sys
import tempfile
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Annotated

import typer

from experiments.commands.shared import Force, JsonFile
from experiments.commands.values import completes
from experiments.presentation.progress import progress_bar
from experiments.presentation.terminal import say
from experiments.replaying import preconditioning
from experiments.runs.outputs import Outputs, write_json
from experiments.serving.journal import LATE, Journal
from experiments.serving.session import Ended, at_path, at_port, bring_into, check, content_of, serve, warm_up
from flashsim.core.errors import RefusedError
from flashsim.core.provenance import provenance
from flashsim.core.units import format_size
from flashsim.device import presets
from flashsim.device.device import Device
from flashsim.device.nbd.pacing import check_scale
from flashsim.device.nbd.server import MAXIMUM_CONNECTIONS
from traces.parquet_writer import ParquetWriter

_LOOPBACK = "127.0.0.1"


def serve_device(
    preset: Annotated[
        str,
        typer.Argument(
            metavar="PRESET",
            help="A preset's name, or a TOML file.",
            autocompletion=completes("presets"),
        ),
    ],
    socket: Annotated[Path | None, typer.Option("--socket", metavar="PATH", help="Listen on a socket in the file system.")] = None,
    port: Annotated[int | None, typer.Option("--port", metavar="N", min=0, max=65535, help="Listen on a TCP port; 0: any.")] = None,
    listen: Annotated[
        str | None, typer.Option("--listen", metavar="ADDRESS", help="With --port: where. Whoever reaches it may read and write.")
    ] = None,
    run: Annotated[str | None, typer.Option("--run", metavar="COMMAND", help="Serve while this shell command runs; it finds $uri.")] = None,
    time_scale: Annotated[
        float, typer.Option("--time-scale", metavar="F", help="Real seconds a simulated second; 0: no latency is imposed.")
    ] = 1.0,
    read_only: Annotated[bool, typer.Option("--read-only", help="Refuse writes.")] = False,
    content: Annotated[
        Path | None, typer.Option("--content", metavar="FILE", help="Keep what the drive holds in this file, made if it is not there.")
    ] = None,
    trace: Annotated[Path | None, typer.Option("--trace", metavar="TRACE.parquet", help="Record every request.")] = None,
    empty: Annotated[bool, typer.Option("--empty", help="Begin with an empty flash drive; otherwise it was written in order.")] = False,
    precondition: preconditioning.Asked = None,
    json: JsonFile = None,
    force: Force = False,
) -> None:
    """Serve a simulated drive to programs that speak NBD, such as fio, nbdcopy and nbdfuse, and report what they asked of it.

    It holds what is written to it, and takes the simulated drive's time for everything, to the precision of this machine. It serves at most
    128 clients at a time. SIGINT (Ctrl-C) or SIGTERM ends it. --force also replaces a socket that a server left behind.

    Examples::

        flashsim device serve ocz-core-60gb --socket drive.sock --trace asked.parquet
        flashsim device serve nvme-tlc-1tb --port 10809 --time-scale 20 --read-only
        flashsim device serve toshiba-5400-320gb --run 'echo "$uri"' --json served.json
    """
    if (socket is not None) + (port is not None) > 1:
        raise RefusedError("--port: there is a --socket already; take one of them")
    if listen and port is None:
        raise RefusedError("--listen: it needs a --port")
    if socket is None and port is None and not run:
        raise RefusedError("--socket: where shall clients find the drive? Give --socket or --port (or --run with a command)")
    with Outputs(force) as outputs, ExitStack() as open_files:
        chosen = presets.load(preset)
        check_scale(time_scale)
        check(chosen, empty, precondition)
        device = Device(chosen)
        if content:
            outputs.spare("--content", content)
        target = outputs.file("--json", json) if json else None
        trace_target = outputs.file("--trace", trace) if trace else None
        if port is not None:
            place = at_port(port, listen or _LOOPBACK)
        else:
            place = at_path(socket or Path(open_files.enter_context(tempfile.TemporaryDirectory()), "drive.sock"), force)
        open_files.enter_context(place)
        held = open_files.enter_context(closing(content_of(content, device, read_only)))
        with progress_bar("filling") as progress:
            state = bring_into(device, held, empty, precondition, progress)
        warm_up(device.preset)
        asked = {"device": device.name, "time_scale": time_scale, "read_only": read_only, "empty": empty, "precondition": precondition}
        writer = open_files.enter_context(ParquetWriter(trace_target, provenance(asked))) if trace_target else None
        journal = Journal(device.preset, writer)

        def ready() -> None:
            say(f"{device.name}, {format_size(device.capacity)}, {_paced(time_scale)}, at {place.uri}")
            if state:
                say(f"state before: {state}")
            sys.stdout.flush()

        ended = serve(device, held, place, journal, scale=time_scale, read_only=read_only, command=run, ready=ready)
        journal.close()
        statistics = device.statistics()
        if target:
            told = {"session": vars(ended), **journal.as_dict(statistics), "state": state, "provenance": provenance(asked)}
            write_json(target, told)
    say(_told(ended, journal))
    for table in journal.tables(statistics):
        say("", table)
    if ended.status:
        raise typer.Exit(ended.status)


def _paced(scale: float) -> str:
    return "no latency imposed" if scale == 0 else "in real time" if scale == 1 else f"{scale:g} real seconds a simulated one"


def _told(ended: Ended, journal: Journal) -> str:
    lines = [f"served for {ended.seconds:.1f} s: {ended.clients:,} connections, {journal.requests:,} requests"]
    counts = (
        (ended.turned_away, f"connections were refused: at most {MAXIMUM_CONNECTIONS} clients at a time"),
        (ended.broken, "connections broke off"),
        (ended.refused, "requests were refused and never reached the drive"),
        (journal.unanswered, "requests were not answered: their client had gone, or serving ended"),
        (journal.late, f"replies were late: they left more than {LATE:.0%} of their time after it"),
    )
    lines += [f"{count:,} {what}" for count, what in counts if count]
    return "\n".join([*lines, *([ended.read_only_because] if ended.read_only_because else [])])
