"""Turn a trace into another format, and say what did not fit."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from flashsim.core.errors import FlashsimError
from flashsim.core.protocols import Progress
from traces.format.base import left_out, load_writable, read_trace, recognise
from traces.schema import SCHEMA, Batches, default


@dataclass
class Conversion:
    """What a conversion did.

    Parameters
    ----------
    requests
        How many there were.
    dropped
        Columns with content that the target does not hold.
    rounded
        Whether the target holds coarser times.
    left_out
        What files of the source's format may hold that no trace does (`traces.format.base.left_out`).
    """

    requests: int = 0
    dropped: list[str] = field(default_factory=list)
    rounded: bool = False
    left_out: str = ""


def convert(
    source: str | Path, target: str | Path, to: str, progress: Progress | None = None, from_format: str | None = None
) -> Conversion:
    """Write a trace file in another format; it appears under its name only once it is complete.

    Raises
    ------
    MissingFileError, DamagedFileError
        The source is not there, or is no trace.
    InvalidParameterError
        A request that the format cannot hold; a format that cannot be written.
    FlashsimError
        The target cannot be written.
    """
    member, target = load_writable(to), Path(target)
    name = from_format or recognise(source)
    told = Conversion(left_out=left_out(name))
    partial = target.with_name(f".{target.name}.{os.getpid()}.converting")
    try:
        member.write(_watched(read_trace(source, name), told, member.CARRIES, member.RESOLUTION, progress), partial)
        os.replace(partial, target)
    except OSError as problem:
        raise FlashsimError(f"trace: cannot write {target}: {problem.strerror or problem}") from problem
    finally:
        partial.unlink(missing_ok=True)
    told.dropped = [name for name in SCHEMA.names if name in told.dropped]
    return told


def _watched(batches: Batches, told: Conversion, carries: frozenset[str], resolution: int, progress: Progress | None) -> Batches:
    """The batches, noting what in them is lost."""
    for batch in batches:
        for name in SCHEMA.names:
            if name == "id" or name in carries or name in told.dropped:
                continue
            values, empty = batch.column(name), "" if name == "label" else default(name)
            if values.null_count == len(values):
                continue
            plain = values.cast("string") if name == "label" else values
            if empty is None or pc.any(pc.not_equal(plain, empty)).as_py():
                told.dropped.append(name)
        times = batch.column("arrival").drop_null().to_numpy(zero_copy_only=False)
        told.rounded |= resolution > 1 and bool(np.any(times % resolution))
        told.requests += batch.num_rows
        if progress:
            progress(told.requests, told.requests)
        yield batch
