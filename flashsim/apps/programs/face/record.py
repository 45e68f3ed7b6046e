"""``flashsim record`` and ``fs.record``: the system calls of a program on files, while it runs unchanged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import pandas as pd
import pyarrow.compute as pc

from flashsim.apps.programs import recorder
from flashsim.core.errors import RefusedError, option
from flashsim.core.units import format_size
from flashsim.operations import fields
from flashsim.operations.fields import Count, Flag, Names, Target
from flashsim.operations.operation import operation, origin
from flashsim.operations.outcome import Outcome
from flashsim.studies.presentation.tables import Table, same
from flashsim.studies.presentation.terminal import Explanation, Part
from traces.calls.schema import READS, SYNCS, WRITES, Recording

_SHOWN = 12
#: Files of the system: libraries and what describes it.
_SYSTEM = r"/(usr|lib\w*|etc|bin|sbin)/"


class RecordOutcome(Outcome):
    """A recording of a program: its calls on files, and what the recording misses."""

    result: Recording

    def __init__(self, recording: Recording, title: str) -> None:
        super().__init__(recording, title)
        self.status = int(recording.facts["exit_code"])

    def calls(self) -> pd.DataFrame:
        """A row a call, by `traces.calls.schema.SCHEMA`."""
        frame: pd.DataFrame = self.result.table.to_pandas()
        return frame

    def summary(self) -> pd.DataFrame:
        """A row a file: calls that read, write and sync, and bytes that were read and written."""
        table = self.result.table
        files = table.filter(pc.and_(pc.equal(table["kind"], "file"), pc.greater_equal(table["file"], 0)))
        frame = files.select(["file", "path", "call", "result"]).to_pandas()
        frame["path"] = frame["path"].astype(str)
        of = {"reads": READS, "writes": WRITES, "syncs": SYNCS}
        for name, calls in of.items():
            frame[name] = frame["call"].isin(calls)
        moved = frame["result"].clip(lower=0).fillna(0).astype("int64")
        frame["bytes_read"], frame["bytes_written"] = moved * frame["reads"], moved * frame["writes"]
        sums = dict.fromkeys((*of, "bytes_read", "bytes_written"), "sum")
        rows = frame.groupby("file", sort=False).agg({"path": "last"} | sums)
        return rows.sort_values(["bytes_written", "bytes_read"], ascending=False).reset_index(drop=True)

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready: files, facts, and what is missed."""
        rows = self.summary().to_dict("records")
        return {"command": list(self.result.command), "files": rows, "missed": list(self.result.missed), **self.result.facts}

    def printout(self) -> Iterator[Part]:
        """Files, what the recording misses, and what it cost."""
        facts, rows = self.result.facts, self.summary()
        busy = rows[(rows.reads > 0) | (rows.writes > 0) | (rows.syncs > 0)]
        system = busy.path.str.match(_SYSTEM) & (busy.writes == 0)
        read, written = int(rows["bytes_read"].sum()), int(rows["bytes_written"].sum())
        yield from (self.title, f"{facts['seconds']:.2f} s; read from files: {format_size(read)}; written: {format_size(written)}", "")
        columns = same("path", "reads", "writes", "syncs", "bytes_read", "bytes_written")
        own = busy[~system]
        if len(own):
            yield Table.of(own.head(_SHOWN).to_dict("records"), columns)
        more = [f"{len(own) - _SHOWN:,} more files"] if len(own) > _SHOWN else []
        more += [f"{system.sum():,} files of the system, which were only read"] if system.any() else []
        if more:
            yield Explanation(f"Besides {' and '.join(more)}; --json has all.")
        for line in self.result.missed:
            yield f"not recorded: {line}"
        kept = ", and contents kept" if facts["contents"] else ""
        cost = f"Recording made the program about {facts['cost_s']:.2f} s longer ({facts['calls_seen']:,} calls were seen{kept})."
        yield from ("", Explanation(cost))


@operation
def record(
    command: Annotated[
        Any, Names("The program and its arguments, behind --.", "-- COMMAND ...", argument=True, python="A list of texts.")
    ] = None,
    *,
    out: Annotated[Any, Target("The recording.", "RUN.parquet")],
    pid: Annotated[int | None, Count("Attach to a process that runs, until it ends, or until Ctrl-C.")] = None,
    contents: Annotated[bool, Flag("Also record the bytes that are written.")] = False,
    extents: Annotated[bool, Flag("Also record where the files lie on their device, once the program has ended.")] = False,
    force: fields.Force = False,
) -> RecordOutcome:
    """Record what a program asks of files while it runs, unchanged: reads, writes, syncs, renames and more, by thread, with their times.

    It needs strace. What strace cannot see (writes through mapped memory, requests of io_uring) is said. The exit code is the program's.

    Examples::

        flashsim record --out run.parquet -- python3 -c "open('shop', 'w').write('apples')"
        flashsim record --out again.parquet --contents --json run.json -- sh -c "echo pears > shop; sync shop"

    Examples
    --------
    >>> import flashsim as fs
    >>> result = fs.record(["sh", "-c", "echo pears > shop"], out="run.parquet")  # doctest: +SKIP
    >>> result.summary()[["path", "writes", "bytes_written"]]  # doctest: +SKIP
    """
    if (command is None) == (pid is None):
        raise RefusedError("record: a command behind --, or " + option("pid") + "; one of them is needed")
    words: Sequence[str] = command or ()
    recording = recorder.record(words, pid, contents, extents=extents)
    recording.write(out, origin())
    title = f"{' '.join(words) if words else f'process {pid}'}: {recording.table.num_rows:,} calls recorded"
    return RecordOutcome(recording, title)
