"""Jobs of fio's normal output, as people paste it, in the records of fio's JSON."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from flashsim.apps.calibration.fio_jobs import LEAST_DIGITS, FioJob
from flashsim.core.units import KIB, MICROSECONDS, MILLISECONDS, MILLISECONDS_A_SECOND

#: What a text of fio has, also a part of one.
TEXT = re.compile(r": \((?:g|groupid)=\d+[),]|(?:: IOPS|IO depths\s*: \d+)=|clat percentiles \(")
#: A line that a mail broke, and what stands before lines of a quotation, a comment or a client's output.
_BROKEN = re.compile(r"(: \(g=\d+\): rw=(?:(?!iodepth=).)*|IO depths(?:(?!=64).)*)\n(?:> ?(?!=)|\s)*")
_BEFORE = re.compile(r"^(?:\s*[>#])*\s*(?:<[\w.-]+>\s*)?")
_JOB_LINE = re.compile(
    r"(?P<name>.+?): \(g=(?P<group>\d+)\): rw=(?P<rw>\w+), bs=(?P<sizes>.+?)(?:, ioengine=(?P<engine>\w+).*)?, iodepth=(?P<iodepth>\d+)"
)
_RESULT = re.compile(r"(?P<name>.+?): \(groupid=(?P<group>\d+), jobs=(?P<copies>\d+)\): err=\s*(?P<error>\d+)(?:.*pid=\s*(?P<pid>\d+))?")
#: Lines of a result, of fio 3 and of fio 2.
_OPERATION = re.compile(r"(?<!\w)(read|write|trim|mixed)\s*: (?:IOPS=|io=)")
_COUNTED = re.compile(r"IOPS=(?P<iops>[\d.]+\w?), .*\((?P<bytes>[\d.]+\w+)/(?P<runtime>\d+)msec\)(?:; (?P<resets>\d+) zone resets)?")
_COUNTED_2 = re.compile(r"io=\s*(?P<bytes>[\d.]+\w+)\s*, .*iops=\s*(?P<iops>[\d.]+\w?)\s*, runt=\s*(?P<runtime>\d+)\s*msec(?P<resets>)")
_PERCENTILES = re.compile(r"(?<!\w)(?<!\) )(clat|lat) percentiles \(([num])sec\):")
_ISSUED = re.compile(r"issued\s*\w*\s*: total=(?:r=)?(\d+)[,/](?:w=)?(\d+)[,/](?:\w=)?(\d+)(?:,(\d+))?")
_PROGRESS_AT_RATE = re.compile(r"Jobs: \d+ \(f=\d+\), ([^:\[]+)")
_OPTION = re.compile(r"(?<!\S)--?([a-z_]+)(?:(?:=| +(?=[^-\s]))(\"[^\"]*\"|'[^']*'|\S+))?")
_UNITS = {"n": 1, "u": MICROSECONDS, "m": MILLISECONDS}
#: Engines that have one request outstanding, whatever iodepth says.
_ONE_AT_A_TIME = ("sync", "psync", "vsync", "pvsync", "pvsync2", "mmap")
_UNKNOWN = "of fio's text, which does not show direct=1, nor rate, thinktime, fsync and the like"


@dataclass
class _FioRun:
    """A run of fio: what stands before its first result, its job lines, and its results: the first line and those below."""

    before: list[str]
    job_lines: list[Mapping[str, str]] = field(default_factory=list)
    results: list[tuple[Mapping[str, str], list[str]]] = field(default_factory=list)
    is_complete: bool = False

    def keys(self) -> set[tuple[str, ...]]:
        return {(first["name"], first["group"], first["pid"]) for first, _ in self.results}


def jobs_of_text(text: str) -> list[list[FioJob]]:
    """Jobs of each run of fio in a text, as far as it goes; of results that a run prints more than once the last ones."""
    runs, number = list[list[FioJob]](), 1
    for run in _runs(text):
        jobs, thread = list[FioJob](), 1
        for first, lines in run.results:
            threads = range(thread, thread := thread + max(1, int(first["copies"])))
            jobs.append(_job(number + len(jobs), run, first, lines, threads))
        runs, number = [*runs, jobs], number + len(jobs)
    return runs


def _runs(text: str) -> list[_FioRun]:
    runs, before = [_FioRun([])], list[str]()
    for line in (_BEFORE.sub("", each).rstrip() for each in _BROKEN.sub(r"\1 ", text).splitlines()):
        if (match := _JOB_LINE.match(line)) and runs[-1].results:
            runs.append(_FioRun(before))
        if match:
            runs[-1].job_lines.append(match.groupdict(""))
        elif match := _RESULT.match(line):
            if runs[-1].is_complete:
                runs.append(_FioRun(before))
            if not runs[-1].results:
                runs[-1].before, before = before, []
            runs[-1].results.append((match.groupdict(""), []))
        else:
            before.append(line)
            runs[-1].is_complete |= "Run status group" in line
            for _, lines in runs[-1].results[-1:]:
                lines.append(line)
    last = list[_FioRun]()
    for run in runs:  # a run prints its results more than once with --status-interval
        if last and not run.job_lines and run.keys() & last[-1].keys():
            run.before, run.job_lines = last[-1].before, last.pop().job_lines
        last.append(run)
    return last


def _job(number: int, run: _FioRun, first: Mapping[str, str], lines: Sequence[str], threads: range) -> FioJob:
    name, group = first["name"], first["group"]
    of_group = [each for each in run.job_lines if each["group"] == group]
    own = next((each for each in of_group if each["name"] == name), of_group[0] if len(of_group) == 1 else None)
    given = _options(run.before, name)
    order = (given or {}).get("readwrite", (given or {}).get("rw", "read")).split(":")[0].replace("readwrite", "rw")
    load = " ".join((given or {}).get(key, "") for key in ("rw", "readwrite", "bs", "blocksize", "iodepth"))
    is_of_another = order != own["rw"] if own else "$" in load  # a command line of another run, or of a script
    given = None if is_of_another else given
    shown, levels, extra, problem = _parse_result(lines)
    options = {"rw": own["rw"]} if own and given is None else dict(given or {})
    options |= extra | ({"iodepth": own["iodepth"]} if own else {})
    at_rate = [match[1].strip() for line in run.before if (match := _PROGRESS_AT_RATE.search(line))]
    options |= {"rate": at_rate[-1]} if at_rate and "rate_iops" not in options else {}
    sizes = re.findall(r"([\d.]+\w*)-([\d.]+\w*)", own["sizes"]) if own else []
    sizes = sizes or [(each, each) for each in options.get("bs", options.get("blocksize", "4k")).split(",")]
    for place, operation in enumerate(("read", "write")):
        _complete(shown[operation], sizes[min(place, len(sizes) - 1)], options)
    deep = int(options.get("iodepth", 1)) > 1
    if not own and given is None:
        problem = f"the line of its load is missing ({name}: (g={group}): rw=..., bs=..., iodepth=...)"
    elif len(threads) > 1 and len({(each["rw"], each["sizes"], each["iodepth"]) for each in of_group}) > 1:
        problem = "jobs of other loads ran at the same time"
    elif not levels and deep:
        problem = problem or "its line of IO depths is missing, which shows how many requests were outstanding"
    elif given is None and own and deep and own["engine"] not in _ONE_AT_A_TIME and levels.get("1", 0) >= 50:
        problem = problem or f"one of iodepth={own['iodepth']} was outstanding, as with rate or thinktime, which fio's text does not show"
    record = {**shown, "jobname": name, "groupid": int(group), "error": int(first["error"]), "iodepth_level": levels}
    return FioJob(number, record, options, threads, problem, "" if given is not None else _UNKNOWN)


def _parse_result(lines: Sequence[str]) -> tuple[dict[str, dict[str, Any]], dict[str, float], dict[str, str], str]:
    """Results by operation, shares of requests by depth, options that they imply, and what is missing."""
    shown: dict[str, dict[str, Any]] = {name: {"total_ios": 0, "io_bytes": 0, "iops": 0.0} for name in ("read", "write", "trim")}
    levels, options, now, percentiles, unit = dict[str, float](), dict[str, str](), dict[str, Any](), dict[str, float](), 1
    problem = "its result ends before its line of reads or writes"
    for line in lines:
        if match := _OPERATION.search(line):
            now, counted = shown.setdefault(match[1], {}), _COUNTED.search(line) or _COUNTED_2.search(line)
            problem = "" if counted else f"its line of {match[1]}s is cut off"
            if counted:
                thousand = 1000 if counted.re is _COUNTED and "i" not in counted["bytes"] else KIB  # kB are 1000 B since fio 3
                now |= {"iops": _number(counted["iops"], 1000), "io_bytes": _number(counted["bytes"], thousand)}
                now["runtime"] = int(counted["runtime"])
                options |= {"zonemode": "zbd"} if int(counted["resets"] or 0) else {}
        elif match := _PERCENTILES.search(line):
            percentiles, unit = now.setdefault(f"{match[1]}_ns", {"percentile": {}})["percentile"], _UNITS[match[2]]
        elif "percentiles (" in line:  # of submissions, of flushes, of a priority
            percentiles = {}
        elif "IO depths" in line:
            shares = re.findall(r"(\d+)=([\d.]+)%", line)
            levels = {">=64" if level == "64" else level: float(share) for level, share in shares}
        elif match := _ISSUED.search(line):
            for name, total in zip(("read", "write", "trim"), match.groups(), strict=False):
                shown[name]["total_ios"] = int(total)
            options |= {"fsync": f"{int(match[2]) / int(match[4]):.0f}"} if int(match[4] or 0) else {}
        elif match := re.search(r"latency\s*: target=([1-9]\d*)", line):
            options["latency_target"] = match[1]
        for share, value in re.findall(r"([\d.]+)th=\[\s*(\d+)\]", line):
            percentiles |= {f"{float(share):.6f}": unit * int(value)} if int(value) >= LEAST_DIGITS else {}
    return shown, levels, options, problem


def _complete(shown: dict[str, Any], sizes: tuple[str, str], options: dict[str, str]) -> None:
    """Count what the text rounds: bytes of requests of one size, and requests a second."""
    if not shown["io_bytes"]:
        return
    options |= {"bsrange": "-".join(sizes)} if sizes[0] != sizes[1] else {}
    size = max(1, round(_number(sizes[0], KIB)))
    shown["total_ios"] = shown["total_ios"] or round(shown["io_bytes"] / size)
    if abs(shown["total_ios"] * size - shown["io_bytes"]) <= 0.01 * shown["io_bytes"] and shown["runtime"]:
        shown |= {"io_bytes": shown["total_ios"] * size, "iops": shown["total_ios"] * MILLISECONDS_A_SECOND / shown["runtime"]}


def _number(text: str, thousand: int) -> float:
    """A number with a prefix, such as ``12.3k``, ``4.00GiB`` or ``512B``."""
    match = re.match(r"(\d+\.?\d*)([kmgtp]?)", text, re.IGNORECASE)
    return float(match[1]) * thousand ** " kmgtp".index(match[2].lower() or " ") if match else 0.0


def _options(lines: Sequence[str], name: str) -> dict[str, str] | None:
    """Options of a job by its name, of a command line of fio or a job file; None without these, or if two say different things."""
    common, jobs, place = dict[str, str](), list[dict[str, str]](), dict[str, str]()
    for line in re.sub(r"\\\n|\n(?=--?[a-z])", " ", "\n".join(lines)).splitlines():
        if command := re.search(r"\bfio\s+(-.*)", line):
            common = place = {}
            options = [(key, value.strip("\"'") or "1") for key, value in _OPTION.findall(command[1])]
        elif section := re.fullmatch(r"\[([^\]]+)\]", line):
            options = [("name", section[1])]
        else:
            options = re.findall(r"^([a-z_]+)\s*=\s*(\S.*?)$", line) or [(line, "1")]
        for key, value in options:
            if key == "name" and value == "global":
                common = place = {}
            elif key == "name":
                place = dict(common)
                jobs += [place] if value == name else []
            else:
                place[key] = value
    return jobs[0] if jobs and all(job == jobs[0] for job in jobs) else None
