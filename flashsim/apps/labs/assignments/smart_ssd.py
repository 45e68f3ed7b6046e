"""Operators in a Smart SSD: aggregation in little memory, parts put together, a Bloom filter, and where a query should run."""

from __future__ import annotations

from itertools import chain, pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from algorithms.programs.aggregation import Aggregate, start
from algorithms.programs.base import through, whole_of
from flashsim.apps.labs.grading import Exercise, WholeNumber, answers
from flashsim.apps.labs.submission import Submission
from flashsim.core.units import SECONDS
from models.smart_scan import ScanRates, ScanWork, break_even, drive_time, host_time

TITLE = "operators in a Smart SSD: aggregation in little memory, a Bloom filter, and where a query should run"

#: The relative error of times and of a break-even.
_ERROR, _SHARE_ERROR = 1e-6, 2e-3
#: Extents of a scan, so many that the first one's way takes no time beside all of them.
_EXTENTS = 1e9

#: A key and a value, or NULLs.
Row = list[int | None]


def draw_batches(random: np.random.Generator) -> tuple[list[list[Row]], int]:
    """Batches of rows with NULLs, one group of NULLs alone, and the room of a table that is too small."""
    keys, values = random.integers(0, 14, 150).tolist(), random.integers(-50, 50, 150).tolist()
    pairs = zip(keys, values, strict=True)
    rows: list[Row] = [[key or None, None if key == 1 or value > 35 else value] for key, value in pairs]
    ends = [0, *np.cumsum(random.integers(1, 6, 25)).tolist(), 150]
    return [[[1, None]], *(rows[first:end] for first, end in pairwise(ends))], int(random.integers(3, 9))


def aggregate(batches: list[list[Row]]) -> list[list[Any]]:
    """Groups with count, sum and average by `algorithms.programs.aggregation`, NULL first."""
    schema = pa.schema([("key", pa.int64()), ("value", pa.int64())])
    functions = [Aggregate(each, "value", each) for each in ("count", "sum", "avg")]
    operator = start(schema, keys=["key"], aggregates=functions)
    table = pa.RecordBatch.from_pylist([{"key": key, "value": value} for key, value in chain(*batches)], schema)
    parts = list(through([operator], [table]))
    whole = whole_of(operator)
    assert whole is not None
    groups = [row for batch in through([whole], parts) for row in batch.to_pylist()]
    groups.sort(key=lambda group: (group["key"] is not None, group["key"] or 0))
    return [[group["key"], group["count"], None if group["sum"] is None else int(group["sum"]), group["avg"]] for group in groups]


class PartTable:
    """Parts by the rule: all are handed on when a new group finds the table full."""

    def __init__(self, room: int) -> None:
        self.room, self.groups = room, dict[int | None, list[Any]]()

    def step(self, rows: list[Row]) -> list[list[Any]]:
        """Parts that a batch hands on."""
        parts = []
        for key, value in rows:
            if key not in self.groups and len(self.groups) == self.room:
                parts += self.finish()
            _, count, total = self.groups.get(key, [key, 0, None])
            self.groups[key] = [key, count, total] if value is None else [key, count + 1, (total or 0) + value]
        return parts

    def finish(self) -> list[list[Any]]:
        """Parts that are left."""
        parts, self.groups = list(self.groups.values()), {}
        return parts


def sum_parts(parts: list[list[Any]]) -> list[list[Any]]:
    """Keys, counts and sums of parts."""
    groups: dict[int | None, list[Any]] = {}
    for key, count, total in parts:
        group = groups.setdefault(key, [key, 0, None])
        group[1:] = group[1] + count, group[2] if total is None else (group[2] or 0) + total
    return sorted(groups.values(), key=lambda group: (group[0] is not None, group[0] or 0))


def parts_fault(submission: Submission, instance: tuple[list[list[Row]], int]) -> str:
    """A table that is larger than its room, parts that tell something else than the rows, or more parts than need be."""
    batches, room = instance
    table, rule, parts, fewest, held = submission.new("Aggregation", room), PartTable(room), list[Any](), 0, set[int | None]()
    # Of each key the counts and sums that parts may have come to, since the last batch; and those to which they have.
    states, handed_on = dict[int | None, list[tuple[int, int]]](), dict[int | None, tuple[int, int]]()
    for number, batch in enumerate([*batches, None], start=1):
        answer = table.ask("finish") if batch is None else table.ask("step", batch)
        where = f"Aggregation({room}): {'finish()' if batch is None else f'batch {number}, step({batch}),'} returns {str(answer)[:80]}"
        for part in answer if isinstance(answer, list) else [answer]:
            match part:
                case [WholeNumber() | None, WholeNumber(), WholeNumber() | None]:
                    parts.append(part)
                case _:
                    return f"{where}, but a list of parts, each of a key, a count and a sum, is needed"
        fewest += len(rule.finish() if batch is None else rule.step(batch))
        states = {key: passed[-1:] for key, passed in states.items()}
        for key, value in batch or ():
            count, total = states.setdefault(key, [(0, 0)])[-1]
            states[key].append((count, total) if value is None else (count + 1, total + value))
        for key, more, value in answer:
            count, total = handed_on.get(key, (0, 0))
            handed_on[key] = count + more, total + (value or 0)
        held |= {key for key, _ in batch or ()}
        held -= {key for key, *_ in answer if handed_on[key] in states.get(key, ())}  # whether it came again afterwards is not sure
        if len(held) > room:
            return f"{where}: now it holds {len(held)} groups at least that parts have not told all of"
    right = [group[:3] for group in aggregate(batches)]
    if sum_parts(parts) != right:
        wrong = next(
            ((has, wanted) for has, wanted in zip(sum_parts(parts), right, strict=False) if has != wanted), (sum_parts(parts), right)
        )
        return f"Aggregation({room}): of {batches} the parts tell {str(wrong[0])[:200]}, but {str(wrong[1])[:200]} is right"
    return f"Aggregation({room}): {len(parts)} parts, but {fewest} suffice" if len(parts) > fewest else ""


def whole_fault(submission: Submission, instance: tuple[list[list[Row]], int]) -> str:
    """Parts that are put together wrongly."""
    batches, room = instance
    table = PartTable(room)
    parts = [part for batch in batches for part in table.step(batch)] + table.finish()
    return answers("whole", lambda parts: aggregate(batches), _ERROR)(submission, [parts])


def bloom(keys: list[int], bits: int) -> list[int]:
    """Bits that keys set."""
    return sorted({(key * 7919 + i * (key * 104729 % (bits - 1) + 1)) % bits for key in keys for i in range(3)})


def draw_filter(random: np.random.Generator) -> tuple[list[int], int]:
    """Some keys, of which two set a bit in common, and a filter's bits."""
    return random.integers(1, 10_000, 12).tolist(), int(random.integers(60, 120))


def draw_probe(random: np.random.Generator) -> tuple[list[Row], list[int], int]:
    """Rows beside a filter: with a key of it, with NULL, and others, of which some pass."""
    keys, bits = draw_filter(random)
    others = random.integers(1, 10_000, 60).tolist()
    drawn = [*keys[:6], None, None, *others]
    return [[drawn[each], place] for place, each in enumerate(random.permutation(len(drawn)))], bloom(keys, bits), bits


def passes(rows: list[Row], places: list[int], bits: int) -> list[Row]:
    """Rows of which all bits are set."""
    return [row for row in rows if row[0] is not None and {*bloom([row[0]], bits)} <= {*places}]


def draw_query(random: np.random.Generator) -> tuple[dict[str, float], dict[str, float]]:
    """A drive, its host and a scan; each of the parts is the slowest one at times."""
    rates = {"bus": float(random.integers(1000, 4000)), "link": float(random.integers(400, 1000))}
    rates |= {"cores": float(random.integers(2, 5)), "host_cores": float(random.integers(4, 17))}
    size = float(random.integers(50_000, 100_000))
    host, drive, results = (size / random.uniform(100, 400), size / random.uniform(300, 1000), size * float(random.choice([0.001, 0.9])))
    return rates, {"size": size, "drive": drive, "host": host, "results": results}


def describe_scan(rates: dict[str, float], work: dict[str, float]) -> tuple[ScanRates, ScanWork]:
    """The same for formulas."""
    counts = int(rates["cores"]), int(rates["host_cores"])
    return ScanRates(rates["link"], rates["bus"], *counts), ScanWork(
        work["size"], _EXTENTS, work["drive"] * SECONDS, work["host"] * SECONDS, work["results"]
    )


def times(rates: dict[str, float], work: dict[str, float]) -> list[float]:
    """Seconds on the host and inside the drive, by `models.smart_scan`."""
    machine, scan = describe_scan(rates, work)
    return [host_time(machine, scan) / SECONDS, drive_time(machine, scan._replace(host=0)) / SECONDS]


def draw_scan(random: np.random.Generator) -> tuple[dict[str, float], dict[str, float], int, float, int]:
    """Of three kinds: the drive is faster until its cores are too slow, or the link; or one place is faster for any share."""
    rates, work = draw_query(random)
    rows, host = int(random.integers(1000, 2000)), times(rates, work)[0]
    kind, cores = random.integers(3), rates["cores"]
    work |= {"drive": host * cores * (random.uniform(0.3, 0.8) if kind else float(random.choice([0.2, 1.5]))), "results": 0.0}
    by_core, by_link = (random.uniform(1.2, 3) if kind == each else random.uniform(0.05, 0.15) for each in (1, 2))
    return rates, work, rows, host * cores * by_core / rows, int(host * rates["link"] * by_link / rows) + 1


def share(rates: dict[str, float], work: dict[str, float], rows: int, match: float, result: int) -> float | None:
    """The break-even by `models.smart_scan`."""
    return break_even(*describe_scan(rates, work), match * SECONDS, 0, result, rows)


EXERCISES = {
    "Aggregation": Exercise(30, draw_batches, parts_fault),
    "whole": Exercise(20, draw_batches, whole_fault),
    "bloom": Exercise(10, draw_filter, answers("bloom", bloom)),
    "passes": Exercise(10, draw_probe, answers("passes", passes)),
    "times": Exercise(15, draw_query, answers("times", times, _ERROR)),
    "break_even": Exercise(15, draw_scan, answers("break_even", share, _SHARE_ERROR)),
}
