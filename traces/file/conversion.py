"""Turn a trace into another format, and say what did not fit."""

import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flashsim.core.protocols import Progress
from traces.file.excerpt import Source, with_format
from traces.file.recording import complete_file
from traces.file.schema import SCHEMA, Batches, default, unknown_columns
from traces.format.base import WritableFormat, load_format, load_writable


@dataclass
class Conversion:
    """The result of a conversion."""

    requests: int = 0
    #: Columns with content that the target does not hold.
    dropped: list[str] = field(default_factory=list)
    #: Whether the target holds coarser times.
    rounded: bool = False
    #: What files of the source's format may hold that no trace does (`traces.format.base.Format.LEAVES_OUT`).
    left_out: str = ""
    #: Requests whose label the target does not hold although it holds others, and the first such label.
    labels_lost: int = 0
    label_lost: str = ""
    #: Requests that arrive before one that precedes them, the place of the first of them, from 0 on, and whether the target holds them.
    backward: int = 0
    first_backward: int = 0
    in_order: bool = False
    #: What the target holds where a column is not known, by column.
    fill_values: dict[str, str] = field(default_factory=dict)

    def lines(self, to: str) -> list[str]:
        """The losses on the way to a format, one line each."""
        lines = [f"what a trace does not keep of such files: {self.left_out}"] if self.left_out else []
        if self.dropped:
            lines.append(f"{to} does not hold: {', '.join(self.dropped)}")
        if self.labels_lost:
            lines.append(f"{to} does not hold the labels of {self.labels_lost:,} requests, such as {self.label_lost!r}")
        if self.backward:
            words = f"requests that arrive before one that precedes them: {self.backward:,}, the first being request {self.first_backward}"
            lines.append(f"{words}; {to} lets them arrive with that" if self.in_order else words)
        lines += [f"{column} is not known of all requests: {to} holds {value} there" for column, value in self.fill_values.items()]
        return lines + ([f"{to} holds coarser times: they were rounded down"] if self.rounded else [])


def convert(source: Source, target: str | Path, to: str, progress: Progress | None = None) -> Conversion:
    """Write a trace file, or a part of it, in another format; it appears under its name only once it is complete."""
    member, whole = load_writable(to), with_format(source)
    conversion = Conversion(in_order=member.IN_ORDER, left_out=load_format(whole.format or "").LEAVES_OUT)
    with complete_file(Path(target)) as partial:
        member.write(_watch(whole.batches(), conversion, member, progress), partial)
    conversion.dropped = [name for name in SCHEMA.names if name in conversion.dropped]
    return conversion


def _watch(batches: Batches, conversion: Conversion, member: WritableFormat, progress: Progress | None) -> Batches:
    latest = 0
    for batch in batches:
        for name in SCHEMA.names:
            values = batch.column(name)
            if name in member.FILLS and values.null_count:
                conversion.fill_values[name] = member.FILLS[name]
            if name == "label" and name in member.CARRIES:
                _note_labels(values, member.LABELS, conversion)
            elif name != "id" and name not in member.CARRIES | {*conversion.dropped} and _has_content(name, values):
                conversion.dropped.append(name)
        if "operation" in unknown_columns(batch.schema) & member.CARRIES and not member.KEEPS_UNKNOWN:
            conversion.fill_values["operation"] = "reads"
        times = batch.column("arrival").drop_null().to_numpy(zero_copy_only=False)
        conversion.rounded |= member.RESOLUTION > 1 and bool(np.any(times % member.RESOLUTION))
        before = np.maximum.accumulate(np.append(latest, times))
        if (is_back := times < before[:-1]).any() and not conversion.backward:
            conversion.first_backward = conversion.requests + int(np.argmax(is_back))
        conversion.backward, latest = conversion.backward + int(is_back.sum()), int(before[-1])
        conversion.requests += batch.num_rows
        if progress:
            progress(conversion.requests, conversion.requests)
        yield batch


def _has_content(name: str, values: pa.Array) -> bool:
    """True if a column has more than the value of unknown rows."""
    if values.null_count == len(values):
        return False
    plain, empty = (values.cast("string"), "") if name == "label" else (values, default(name))
    return empty is None or bool(pc.any(pc.not_equal(plain, empty)).as_py())


def _note_labels(labels: pa.DictionaryArray, pattern: str, conversion: Conversion) -> None:
    lost = [bool(label) and not re.fullmatch(pattern, label) for label in labels.dictionary.to_pylist()]
    if any(lost):
        rows = pc.fill_null(pa.array(lost).take(labels.indices), False)
        count = int(pc.sum(rows).as_py() or 0)
        if count and not conversion.labels_lost:
            conversion.label_lost = str(labels[pc.index(rows, True).as_py()].as_py())
        conversion.labels_lost += count
