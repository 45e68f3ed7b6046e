"""``flashsim device serve``: a simulated drive, with content, for programs that speak NBD."""

import os
import tempfile
from contextlib import ExitStack, closing, suppress
from functools import partial
from pathlib import Path
from time import monotonic_ns
from typing import Annotated, Any

from flashsim.apps.serving.content import FileContent, MemoryContent
from flashsim.apps.serving.drive import ServedDrive, check_scale
from flashsim.apps.serving.server import MAXIMUM_CONNECTIONS
from flashsim.apps.serving.session import LATE, ServingReport, SessionJournal, at_path, at_port, bring_into, export_of, serve, warm_up
from flashsim.core.activity import activity
from flashsim.core.errors import RefusedError, StandardOutputError, option
from flashsim.core.request import SECTOR
from flashsim.core.units import format_size
from flashsim.device import presets
from flashsim.device.device import Device
from flashsim.experiments.presentation.terminal import say
from flashsim.experiments.replaying.preconditioning import parse_state
from flashsim.operations import fields
from flashsim.operations.fields import Count, Field, Flag, Name, Number, Target
from flashsim.operations.operation import operation, origin
from flashsim.operations.outcome import Listing
from traces.file.recording import ParquetWriter


@operation
def device_serve(
    preset: Annotated[str, Name("A preset's name, or a TOML file.", "PRESET", completes=("presets",), argument=True)],
    *,
    socket: Annotated[str | None, Name("Listen on a Unix socket.", "PATH")] = None,
    port: Annotated[int | None, Count("Listen on a TCP port; 0: any free one.", parse=partial(fields.count, least=0, most=65535))] = None,
    listen: Annotated[
        str | None, Name("With --port: address. Everyone who can reach it may read and write.", "ADDRESS", needs="port")
    ] = None,
    run: Annotated[str | None, Field("Serve while this shell command runs; $uri is the address.", "COMMAND")] = None,
    time_scale: Annotated[float, Number("Real seconds per simulated second; 0 disables latencies.", metavar="F")] = 1.0,
    read_only: Annotated[bool, Flag("Refuse writes.")] = False,
    content: Annotated[str | None, Name("Store the contents of the drive in this file; created if absent.", "FILE", reads=True)] = None,
    trace: Annotated[Any, Target("Record all requests in this file.", "TRACE.parquet")] = None,
    empty: Annotated[bool, Flag("Start with an empty flash drive; by default it was written sequentially.")] = False,
    precondition: fields.Precondition = None,
    force: fields.Force = False,
) -> Listing:
    """Serve a simulated drive to other programs (NBD).

    Clients are programs such as fio, nbdcopy and nbdfuse; at the end their requests are reported.

    It holds what is written to it, and takes the simulated drive's time for everything, to the precision of this machine. It serves at most
    128 clients at a time. SIGINT (Ctrl-C) or SIGTERM ends it. A file of --content that was not made for this drive is refused without
    --force, which makes it as long and lets clients overwrite it, or --read-only; --force also replaces a socket that a server left behind.

    Examples::

        flashsim device serve ocz-core-60gb --socket drive.sock --trace asked.parquet
        flashsim device serve nvme-tlc-1tb --port 10809 --time-scale 20 --read-only
        flashsim device serve toshiba-5400-320gb --run 'echo "$uri"' --json served.json
    """
    if (socket is not None) + (port is not None) > 1:
        raise RefusedError("port: there is a " + option("socket") + " already; take one of them")
    if socket is None and port is None and not run:
        places = option("socket") + " or " + option("port") + " (or " + option("run") + " with a command)"
        raise RefusedError("socket: where shall clients find the drive? Give " + places)
    with ExitStack() as open_files:
        drive = presets.load(preset)
        check_scale(time_scale)
        if empty and precondition:
            raise RefusedError("empty: " + option("precondition") + " says in which state the drive begins; take one of them")
        if precondition:
            parse_state(precondition, drive)
        device = Device(drive)
        if port is not None:
            place = open_files.enter_context(at_port(port, listen or "127.0.0.1"))
        else:
            own = Path(socket) if socket else Path(open_files.enter_context(tempfile.TemporaryDirectory()), "drive.sock")
            place = open_files.enter_context(at_path(own, force))
        # content in a file, or else in at most half of the machine's memory
        in_file = FileContent(Path(content), device.capacity // SECTOR * SECTOR, read_only, force) if content else None
        store = open_files.enter_context(closing(in_file or MemoryContent(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2)))
        with activity("filling") as progress:
            state = bring_into(device, store, empty, precondition, progress)
        warm_up(device.preset)
        journal = SessionJournal(device.preset, open_files.enter_context(ParquetWriter(trace, origin())) if trace else None)

        def ready() -> None:
            pace = {0.0: "no latency imposed", 1.0: "in real time"}.get(time_scale, f"{time_scale:g} real seconds a simulated one")
            state_line = [f"state before: {state}"] if state else []
            with suppress(StandardOutputError):  # clients come all the same
                say(f"{device.name}, {format_size(device.capacity)}, {pace}, at {place.uri}", *state_line)

        export = export_of(device.preset, device.capacity, read_only)
        session = serve(ServedDrive(device, export, store, time_scale, monotonic_ns()), place, journal, run, ready)
        journal.close()
    statistics = device.statistics()
    document = {"session": vars(session), **journal.as_dict(statistics), "state": state, "provenance": origin()}
    tables = (part for table in journal.tables(statistics) for part in ("", table))
    listing = Listing([*_summary(session, journal), *tables], [vars(session)], document)
    listing.status = session.status or 0
    return listing


def _summary(session: ServingReport, journal: SessionJournal) -> list[str]:
    lines = [f"served for {session.seconds:.1f} s: {session.clients:,} connections, {journal.requests:,} requests"]
    counts = (
        (session.turned_away, f"connections were refused: at most {MAXIMUM_CONNECTIONS} clients at a time"),
        (session.broken, "connections broke off"),
        (session.refused, "requests were refused and never reached the drive"),
        (journal.unanswered, "requests were not answered: their client had gone, or serving ended"),
        (journal.late, f"replies were late: they left more than {LATE:.0%} of their time after it"),
    )
    lines += [f"{count:,} {what}" for count, what in counts if count]
    return [*lines, *([session.read_only_because] if session.read_only_because else [])]
