"""What a trace says of its workload, as tables."""

from typing import Any

from flashsim.core.units import format_duration, format_size
from flashsim.studies.presentation.tables import Entry, Table

_PERCENTILES = ("p50", "p90", "p99", "p99.9")
_HEADS = ("median", "90 %", "99 %", "99.9 %")
#: The files with the most requests are shown one by one.
_MOST_FILES = 20
#: Windows are shown as so many rows at most.
_MOST_ROWS = 12


def tables(summary: dict[str, Any]) -> list[Table]:
    """The tables of what `traces.summary.information.describe` told; none is empty."""
    every = [
        _operations(summary),
        _times(summary),
        outstanding(summary["outstanding"]),
        _facts(summary),
        _reuse(summary),
        _windows(summary),
        _by_length(summary),
        _files(summary),
    ]
    return [table for table in every if len(table)]


def _operations(summary: dict[str, Any]) -> Table:
    rows: list[list[Entry]] = []
    for name, operation in _named(summary).items():
        sizes = [format_size(round(operation["size"][key])) for key in ("mean", *_PERCENTILES)]
        rows.append([name, operation["requests"], format_size(operation["bytes"]), *sizes])
    return Table(["operation", "requests", "bytes", "mean size", *_HEADS], rows)


def _named(summary: dict[str, Any]) -> dict[str, Any]:
    """What there is by operation; requests of a file that does not tell operations are plain requests."""
    operations: dict[str, Any] = summary["operations"]
    return {"request": operations["read"]} if "operation" in summary["unknown"] and [*operations] == ["read"] else operations


def _times(summary: dict[str, Any]) -> Table:
    spreads = {f"latency of {name}s": operation["latency"] for name, operation in _named(summary).items() if "latency" in operation}
    if summary["between"]:
        spreads["from one arrival to the next"] = summary["between"]
    rows: list[list[Entry]] = [
        [name, *(format_duration(round(spread[key])) for key in ("mean", *_PERCENTILES))] for name, spread in spreads.items()
    ]
    return Table(["time", "mean", *_HEADS], rows)


def outstanding(level: dict[str, Any] | None) -> Table:
    """How many requests were outstanding (`flashsim.core.outstanding.OutstandingLevel.as_dict`); empty where nothing is timed."""
    if level is None:
        return Table([], [])
    row: list[Entry] = ["over time", level["mean"], *(level[name] for name in ("p50", "p90", "p99", "max")), f"{100 * level['idle']:.1f} %"]
    return Table(["requests outstanding", "mean", "50 %", "90 %", "99 %", "max", "time with none"], [row])


def _facts(summary: dict[str, Any]) -> Table:
    def share(value: float | None) -> str | None:
        return None if value is None else f"{100 * value:.1f} %"

    duration, error = summary["duration"], summary["footprint_error"]
    rows: list[list[Entry]] = [
        ["requests", f"{summary['requests']:,}"],
        ["devices", f"{summary['devices']:,}"],
        ["distinct bytes read or written", format_size(summary["footprint"]) + (f" (estimate, ± {100 * error:.1f} %)" if error else "")],
        ["share of bytes read", share(summary["read_share"])],
        ["share of requests that continue the one before", share(summary["sequential_share"])],
        ["duration", None if duration is None else format_duration(duration)],
    ]
    if "operation" in summary["unknown"]:
        rows.insert(1, ["operations", "not in the file"])
    if summary["step"]:
        rows.append(["step of times", format_duration(summary["step"])])
    if summary["backward"]:
        rows.append(["arrivals earlier than the one before", f"{summary['backward']:,}"])
    return Table(["fact", "value"], rows)


def _windows(summary: dict[str, Any]) -> Table:
    windows = summary["over_time"]
    if not windows:
        return Table([], [])
    rows: list[list[Entry]] = []
    step = -(-len(windows["requests"]) // _MOST_ROWS)
    for number in range(0, len(windows["requests"]), step):
        begin = number * windows["length"]
        when = format_duration(begin) if windows["unit"] == "ns" else f"{begin:,}"
        rows.append(
            [when, windows["requests"][number], *(format_size(windows[key][number]) for key in ("bytes", "working_set", "footprint"))]
        )
    length = format_duration(windows["length"]) if windows["unit"] == "ns" else f"{windows['length']:,} requests"
    error = f"distinct bytes are estimates, ± {100 * windows['standard_error']:.1f} %"
    some = "" if step == 1 else f"; shown is one window of {step}"
    header = ["window begins at", "requests", "bytes", "distinct bytes", "distinct since the begin"]
    return Table(header, rows, note=f"windows of {length}; {error}{some}")


def _reuse(summary: dict[str, Any]) -> Table:
    """What caches of several sizes would serve, up to the first that serves all that can be."""
    reuse = summary["reuse"]
    if not reuse or not reuse["distance"]:
        return Table([], [])
    rows: list[list[Entry]] = [
        [format_size(size), f"{100 * share:.1f} %"] for size, share in zip(reuse["cache"], reuse["served"], strict=True)
    ]
    sample = "" if reuse["rate"] == 1 else f", from a sample of 1 in {round(1 / reuse['rate']):,} pages"
    distances = ", ".join(
        f"{head} {format_size(reuse['distance'][key])}" for key, head in (("p50", "median"), ("p90", "90 %"), ("p99", "99 %"))
    )
    note = f"{reuse['references']:,} references to pages of {format_size(reuse['page'])}{sample}; reuse distance: {distances}"
    return Table(["LRU cache of", "references served"], rows[-_MOST_ROWS:], note=note)


def _by_length(summary: dict[str, Any]) -> Table:
    windows = summary["over_time"].get("by_length")
    if not windows or len(windows["length"]) < 2:
        return Table([], [])
    shown = [format_duration(length) if summary["over_time"]["unit"] == "ns" else f"{length:,} requests" for length in windows["length"]]
    sizes = ([format_size(size) for size in windows[name]] for name in ("mean", "most"))
    rows: list[list[Entry]] = [list(row) for row in zip(shown, *sizes, strict=True)]
    return Table(["windows of", "distinct bytes, mean", "most"], rows)


def _files(summary: dict[str, Any]) -> Table:
    counts = sorted(summary["labels"].items(), key=lambda entry: -entry[1])
    rows: list[list[Entry]] = [[name, count] for name, count in counts[:_MOST_FILES]]
    if len(counts) > _MOST_FILES:
        rows.append([f"{len(counts) - _MOST_FILES} more", sum(count for _, count in counts[_MOST_FILES:])])
    return Table(["file", "requests"], rows if summary["labels"] != {"": summary["requests"]} else [])
