"""Jobs of fio's normal output, as people paste it, in the records of fio's JSON."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from flashsim.apps.calibration.fio_jobs import FioJob
from flashsim.core.units import KIB, MICROSECONDS, MILLISECONDS, MILLISECONDS_A_SECOND

#: What stands before lines of a quotation or of a client's output.
_BEFORE = re.compile(r"^(?:\s*>)*\s*(?:<[\w.-]+>\s*)?")
_JOB_LINE = re.compile(r"(?P<name>.+?): \(g=(?P<group>\d+)\): rw=(?P<rw>\w+), bs=(?P<sizes>.+?),.* iodepth=(?P<iodepth>\d+)")
_RESULT = re.compile(r"(?P<name>.+?): \(groupid=(?P<group>\d+), jobs=(?P<copies>\d+)\): err=\s*(?P<error>\d+).*?(?:pid=\s*(?P<pid>\d+)|$)")
#: Lines of a result, of fio 3 and of fio 2.
_OPERATION = re.compile(r"(read|write|trim|mixed)\s*: (?:IOPS=|io=)")
_COUNTED = re.compile(r"IOPS=(?P<iops>[\d.]+\w?), .*\((?P<bytes>[\d.]+\w+)/(?P<runtime>\d+)msec\)(?:; (?P<resets>\d+) zone resets)?")
_COUNTED_2 = re.compile(r"io=\s*(?P<bytes>[\d.]+\w+)\s*, .*iops=\s*(?P<iops>[\d.]+\w?)\s*, runt=\s*(?P<runtime>\d+)\s*msec")
_PERCENTILES = re.compile(r"(clat|lat) percentiles \(([num])sec\):")
_ISSUED = re.compile(r"issued\s*\w*\s*: total=(?:r=)?(\d+)[,/](?:w=)?(\d+)[,/](?:\w=)?(\d+)(?:,(\d+))?")
_PROGRESS_OF_RATE = re.compile(r"Jobs: \d+ \(f=\d+\), (.*?):? \[")
_UNITS = {"n": 1, "u": MICROSECONDS, "m": MILLISECONDS}
_UNKNOWN = "of fio's text, which does not show direct=1, nor rate, thinktime, fsync and the like"


def is_text_of_fio(text: str) -> bool:
    return bool(re.search(r": \((?:g|groupid)=\d+[),]", text))


@dataclass
class _Result:
    """What fio prints of a job or of a group of copies: its first line, and those below."""

    first: Mapping[str, str]
    lines: list[str] = field(default_factory=list)


@dataclass
class _Run:
    """A run of fio: what stands before its first result, its job lines, and its results."""

    before: list[str]
    job_lines: list[Mapping[str, str]]
    results: list[_Result] = field(default_factory=list)
    is_complete: bool = False

    def keys(self) -> set[tuple[str, ...]]:
        return {(each.first["name"], each.first["group"], each.first["pid"]) for each in self.results}


def jobs_of_text(text: str) -> list[list[FioJob]]:
    """Jobs of each run of fio in a text, as far as it goes; of results that a run prints more than once the last ones."""
    runs, number = list[list[FioJob]](), 1
    for run in _runs(text):
        jobs, thread = list[FioJob](), 1
        for result in run.results:
            threads = range(thread, thread := thread + max(1, int(result.first["copies"])))
            jobs.append(_job(number + len(jobs), run, result, threads))
        runs, number = [*runs, jobs], number + len(jobs)
    return runs


def _runs(text: str) -> Iterable[_Run]:
    runs, before = [_Run([], [])], list[str]()
    for line in (_BEFORE.sub("", each).rstrip() for each in text.splitlines()):
        run = runs[-1]
        if match := _JOB_LINE.match(line):
            if run.results:
                runs.append(run := _Run(before, []))
            run.job_lines.append(match.groupdict())
        elif match := _RESULT.match(line):
            if run.is_complete:
                runs.append(run := _Run(before, []))
            if not run.results:
                run.before, before = before, []
            run.results.append(_Result(match.groupdict("")))
        else:
            run.is_complete |= line.startswith("Run status group")
            before.append(line)
            if run.results:
                run.results[-1].lines.append(line)
    last = list[_Run]()
    for run in runs:  # a run prints its results more than once, as with --status-interval
        if last and not run.job_lines and run.keys() & last[-1].keys():
            run.before, run.job_lines = last[-1].before, last.pop().job_lines
        last.append(run)
    return last


def _job(number: int, run: _Run, result: _Result, threads: range) -> FioJob:
    name, group, copies = result.first["name"], result.first["group"], len(threads)
    of_group = [each for each in run.job_lines if each["group"] == group]
    lines = [each for each in of_group if each["name"] == name] or (of_group if len(of_group) == 1 else [])
    given = _options(run.before, name)
    shown, levels, extra, problem = _shown(result.lines)
    options = dict(given or {}) | extra
    if lines:
        options = {key: value for key, value in options.items() if key != "readwrite"} | {key: lines[0][key] for key in ("rw", "iodepth")}
    rates = [match[1] for line in run.before if (match := _PROGRESS_OF_RATE.match(line))]
    options |= {"rate": rates[-1]} if rates and "rate_iops" not in options else {}
    sizes = re.findall(r"([\d.]+\w*)-([\d.]+\w*)", lines[0]["sizes"]) if lines else []
    sizes = sizes or [(each, each) for each in options.get("bs", options.get("blocksize", "4k")).split(",")]
    for place, operation in enumerate(("read", "write", "trim")):
        _complete(shown[operation], sizes[min(place, len(sizes) - 1)], options)
    if not lines and given is None:
        problem = f"the line of its load is missing ({name}: (g={group}): rw=..., bs=..., iodepth=...)"
    elif copies > 1 and len({(each["rw"], each["sizes"], each["iodepth"]) for each in of_group}) > 1:
        problem = "jobs of other loads ran at the same time"
    elif not levels and int(options.get("iodepth", 1)) > 1:
        problem = problem or "its line of IO depths is missing, which shows how many requests were outstanding"
    record = {**shown, "jobname": name, "groupid": int(group), "error": int(result.first["error"]), "iodepth_level": levels}
    return FioJob(number, record, options, threads, problem, "" if given is not None else _UNKNOWN)


def _shown(lines: Sequence[str]) -> tuple[dict[str, dict[str, Any]], dict[str, float], dict[str, str], str]:
    """Results by operation, shares of requests by depth, options that can be concluded, and what is missing."""
    shown: dict[str, dict[str, Any]] = {name: {"total_ios": 0, "io_bytes": 0, "iops": 0.0} for name in ("read", "write", "trim")}
    levels, options, now = dict[str, float](), dict[str, str](), dict[str, Any]()
    problem, percentiles = "its result ends before its line of reads or writes", dict[str, float]()
    unit = 1
    for line in lines:
        if match := _OPERATION.match(line):
            problem = "" if match[1] != "mixed" else "its reads and writes are counted together (unified_rw_reporting)"
            now = shown.setdefault(match[1], {})
            if counted := _COUNTED.search(line) or _COUNTED_2.search(line):
                now |= {
                    "iops": _number(counted["iops"], 1000),
                    "io_bytes": _number(counted["bytes"], KIB),
                    "runtime": int(counted["runtime"]),
                }
                options |= {"zonemode": "zbd"} if int(counted.groupdict().get("resets") or 0) else {}
            else:
                problem = f"its line of {match[1]}s is cut off"
        elif match := _PERCENTILES.match(line):
            percentiles, unit = now.setdefault(f"{match[1]}_ns", {"percentile": {}})["percentile"], _UNITS[match[2]]
        elif "percentiles (" in line:
            percentiles = {}
        elif line.startswith("IO depths"):
            levels = {level: float(share) for level, share in re.findall(r"(>?=?\d+)=([\d.]+)%", line)}
        elif match := _ISSUED.match(line):
            for name, total in zip(("read", "write", "trim"), match.groups(), strict=False):
                shown[name]["total_ios"] = int(total)
            options |= {"fsync": f"{int(match[2]) / int(match[4]):.0f}"} if int(match[4] or 0) else {}
        elif match := re.match(r"latency\s*: target=(\d+)", line):
            options |= {"latency_target": match[1]} if match[1] != "0" else {}
        for share, value in re.findall(r"([\d.]+)th=\[\s*(\d+)\]", line):
            percentiles[f"{float(share):.6f}"] = unit * int(value)
    return shown, levels, options, problem


def _complete(shown: dict[str, Any], sizes: tuple[str, str], options: dict[str, str]) -> None:
    """Counts to the request, where the text rounds: requests of one size, and requests a second from their number."""
    if not shown["io_bytes"]:
        return
    least, most = (round(_number(each, KIB)) for each in sizes)
    if least != most:
        options["bsrange"] = "-".join(sizes)
    shown["total_ios"] = shown["total_ios"] or round(shown["io_bytes"] / least)
    exact = least * shown["total_ios"]
    if abs(exact - shown["io_bytes"]) <= 0.01 * exact:
        shown["io_bytes"] = exact
        shown["iops"] = shown["total_ios"] * MILLISECONDS_A_SECOND / shown["runtime"] if shown["runtime"] else shown["iops"]


def _number(text: str, thousand: int) -> float:
    """A number with a prefix, such as ``12.3k``, ``4.00GiB`` or ``512B``."""
    match = re.match(r"([\d.]+)([kmgtp]?)", text, re.IGNORECASE)
    return float(match[1]) * thousand ** " kmgtp".index(match[2].lower() or " ") if match else 0.0


def _options(lines: Sequence[str], name: str) -> dict[str, str] | None:
    """Options of a job by its name, from a command line of fio or a job file before its result; None if there is none."""
    common, jobs, place = dict[str, str](), dict[str, dict[str, str]](), None
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        if command := re.search(r"\bfio\s+(-.*)", line):
            common, jobs = {}, {}
            place = common
            for key, value in re.findall(r"--?([a-z_]+)(?:(?:=| +(?=[^-\s]))(\"[^\"]*\"|'[^']*'|\S+))?", command[1]):
                value = value.strip("\"'") if value else "1"
                if key == "name":
                    place = common if value == "global" else jobs.setdefault(value, {})
                else:
                    place[key] = value
        elif section := re.fullmatch(r"\[([^\]]+)\]", line):
            place = common if section[1] == "global" else jobs.setdefault(section[1], {})
        elif place is not None and (option := re.fullmatch(r"([a-z_]+)(?:\s*=\s*(\S.*?))?", line)):
            place[option[1]] = option[2] or "1"
    return {**common, **jobs[name]} if name in jobs else None
