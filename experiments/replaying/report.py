"""The report of a replay: what the device showed as one HTML page, with its tables (CSV) and pictures (SVG) beside it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from experiments.presentation.plots import svg
from experiments.presentation.report import Report
from experiments.presentation.section import Section
from experiments.presentation.tables import captioned
from experiments.replaying.comparison import Comparison, by_operation
from experiments.replaying.device_plots import amplification_over_time, block_heat, busy_parts, latencies
from experiments.replaying.device_report import DeviceReport
from flashsim.core.units import MB, format_duration
from flashsim.ssd.state.block_map import BlockMap
from traces.histogram import Histogram

#: A distribution of fewer requests, and a history of fewer intervals, say less than the table beside them.
_LEAST_REQUESTS, _LEAST_INTERVALS = 20, 3


def write_report(
    folder: Path,
    title: str,
    lead: str,
    report: DeviceReport,
    origin: Mapping[str, Any],
    statistics: dict[str, Any] | None = None,
    blocks: BlockMap | None = None,
    comparison: Comparison | None = None,
) -> None:
    """Fill a folder with the report.

    Parameters
    ----------
    lead
        What was replayed on what, and how.
    statistics, blocks
        Of a simulated device.
    comparison
        With other runs of the same requests.
    """
    known = statistics or {}
    sections = [*_compared(comparison), *_shown(folder, report, known)]
    if blocks and (blocks.erases.any() or ((blocks.valid > 0) & (blocks.valid < blocks.pages)).any()):
        sections.append(Section("Erase blocks", "A row a die; retired blocks are blank.", pictures={"blocks": svg(block_heat(blocks))}))
    *_, counters = report.tables(known)
    sections.append(Section("Counters of the device", tables=[counters] if len(counters) else []))
    report.as_frame().to_csv(folder / "operations.csv", index=False)
    Report(title, lead, _figures(report, known), sections, origin).write(folder)
    if comparison:
        comparison.as_frame().to_csv(folder / "comparison.csv", index=False)


def _figures(report: DeviceReport, statistics: dict[str, Any]) -> list[tuple[str, str]]:
    """What a reader looks for first."""
    told = report.as_dict(statistics)
    figures = [("time", format_duration(told["duration"])), ("requests", f"{told['requests']:,}")]
    if told["iops"]:
        figures += [("requests a second", f"{told['iops']:,.0f}"), ("MB/s", f"{told['bytes_per_second'] / MB:,.1f}")]
    for name, row in told["operations"].items():
        figures.append((f"{name}: mean latency", format_duration(round(row["latency_mean"]))))
        figures.append((f"{name}: 99 % within", format_duration(round(row["latency_p99"]))))
    if told.get("write_amplification"):
        figures.append(("write amplification", f"{told['write_amplification']['total']:.2f}"))
    return figures


def _compared(comparison: Comparison | None) -> list[Section]:
    if comparison is None or len(comparison.runs) == 1:
        return []
    operations = [*by_operation(comparison.runs[comparison.name])]
    beside = {name: comparison.by_run(name) for name in (operations if len(operations) > 2 else operations[:1])}  # the last is all of them
    pictures = {f"comparison_{name}": latencies(times) for name, times in beside.items() if _says(times)}
    return [Section("Beside other runs of the same requests", "", [comparison.table()], _drawn(pictures))]


def _shown(folder: Path, report: DeviceReport, statistics: dict[str, Any]) -> list[Section]:
    rates, times, *others = report.tables(statistics)
    *others, _ = others
    distributions = {name: times for name, times in by_operation(report).items() if name != "all"}
    drawn = {"latency": latencies(distributions)} if _says(distributions) else {}
    text = "Queueing: from arrival to dispatch; service: from there to the end; latency: both."
    sections = [Section("Rates", tables=[rates]), Section("Latencies", text, [times], _drawn(drawn))]
    busy = report.busy_frame(statistics)
    pictures: dict[str, dict[str, Figure]] = {"part": {}, "programs for": {}}
    if len(busy):
        busy.to_csv(folder / "busy.csv", index=False)
        pictures["part"] = {"busy": busy_parts(busy)} if len(busy) > 2 else {}
    history = report.observation.history.as_frame() if report.observation and report.observation.history else None
    if history is not None and len(history):
        history.to_csv(folder / "write_amplification.csv", index=False)
        if history["write_amplification"].notna().sum() >= _LEAST_INTERVALS:
            pictures["programs for"] = {"write_amplification": amplification_over_time(history)}
    titles = {
        "requests outstanding": "Outstanding level",
        "part": "Busy parts",
        "programs for": "Write amplification",
        "GC pauses of dies": "Pauses",
        "energy": "Energy",
    }
    for table in others:
        what = table.columns[0]
        sections.append(Section(titles[what], tables=[captioned(table, title="")], pictures=_drawn(pictures.get(what, {}))))
    return sections


def _says(times: Mapping[str, Histogram]) -> bool:
    return any(each.count >= _LEAST_REQUESTS and len(each.distribution()[0]) > 1 for each in times.values())


def _drawn(figures: Mapping[str, Figure]) -> dict[str, str]:
    return {name: svg(figure) for name, figure in figures.items()}
