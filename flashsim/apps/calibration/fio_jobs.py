"""Jobs of fio as its JSON has them, and whether one shows the drive alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flashsim.apps.calibration.drive_figures import OPERATIONS, number
from flashsim.core.errors import DamagedFileError
from flashsim.core.request import SECTOR
from flashsim.core.units import KIB, MICROSECONDS, MILLISECONDS_A_SECOND

_BOTH = tuple(OPERATIONS)
#: Operations of each of fio's loads; with ``rand`` before it, at random places.
_KINDS = {"read": ("read",), "write": ("write",), "rw": _BOTH, "readwrite": _BOTH}
#: Options of fio with which a job shows more than what the drive can do, and values without effect.
_HELD_BACK = ("rate", "thinktime", "latency_target", "verify", "bsrange", "bssplit", "percentage_random", "random_distribution", "zonemode")
_OF_WRITES = ("fsync", "fdatasync", "sync", "sync_file_range")
#: Least percentile of whole units that is taken: one digit says too little.
LEAST_DIGITS = 10
_WITHOUT_EFFECT = ("0", "none", "random")


@dataclass(frozen=True)
class FioJob:
    """What fio shows of a job or of a group of copies, by the names of fio 3's JSON."""

    number: int
    result: Mapping[str, Any]
    options: Mapping[str, str]
    #: Numbers of its threads, by which its logs are named.
    threads: range
    #: What is missing to read it; nothing of most.
    problem: str = ""
    #: What its file does not show, though it changes figures; nothing of most.
    unknown: str = ""

    @property
    def order(self) -> str:
        """Fio's load: ``rw``, without the number of requests for each of which it draws a place."""
        name, _, more = str(self.options.get("rw", self.options.get("readwrite", "read"))).partition(":")
        return f"{name}:{more}" if more and not name.startswith("rand") else name

    @property
    def operations(self) -> tuple[str, ...]:
        """Operations that it is of, without those of which a mixed load has no request; none of other jobs."""
        every = _KINDS.get(self.order.removeprefix("rand"), ())
        return tuple(name for name in every if self.result.get(name, {}).get("total_ios")) or every[:1]

    @property
    def is_random(self) -> bool:
        return self.order.startswith("rand")

    @property
    def requests(self) -> int:
        return sum(int(self.result[name]["total_ios"]) for name in self.operations)

    def why_not(self) -> str:
        """Why it does not show the drive alone; nothing if it does."""
        if self.result.get("error"):
            return "it ended with an error"
        if self.problem:
            return self.problem
        if "mixed" in self.result:
            return "its reads and writes are counted together (unified_rw_reporting)"
        if not self.operations:
            return f"its rw={self.order} is not a load of reads, writes or both, in order or at random"
        besides = [name for name in (*_BOTH, "trim") if name not in self.operations and self.result.get(name, {}).get("total_ios")]
        if besides:
            return f"its rw={self.order} has {besides[0]}s besides, as with verify or trim"
        names = _HELD_BACK + (_OF_WRITES if "write" in self.operations else ())
        held_back = next((name for name in names if str(self.options.get(name, "0")) not in _WITHOUT_EFFECT), None)
        if held_back:
            return f"its {held_back}={self.options[held_back]} shows more than the drive"
        if len(self.operations) > 1 and self.options.get("rate_iops"):
            return "its rate_iops holds reads and writes back apart"
        shown = [self.result[name] for name in self.operations]
        if self.requests and any(abs(each["io_bytes"] - self.size * each["total_ios"]) > 0.01 * each["io_bytes"] for each in shown):
            return "its requests are not of one size"
        return "" if self.rate or self.depth else "less than half of its requests had iodepth outstanding"

    @property
    def rate(self) -> float:
        """Requests a second that arrive, of each thread; 0: as the depth says."""
        rates = str(self.options.get("rate_iops", "0")).split(",")
        return number(rates[min(len(rates) - 1, OPERATIONS[self.operations[0]])] or 0, f"job {self.number}: rate_iops")

    @property
    def depth(self) -> int:
        """Requests of a thread that were outstanding at most of its submissions; 0 if that was no one number."""
        depth, levels = int(self.options.get("iodepth", 1)), self.result.get("iodepth_level")
        level = ">=64" if depth >= 64 else str(1 << depth.bit_length() - 1)
        return depth if not levels or levels.get(level, 0) >= 50 else int(levels.get("1", 0) >= 50)

    @property
    def is_direct(self) -> bool:
        """True if it went past the page cache: ``buffered`` is the opposite of ``direct``, and of both the last one counts."""
        given = [(name == "direct") == (str(value) != "0") for name, value in self.options.items() if name in ("direct", "buffered")]
        return given[-1:] == [True]

    @property
    def runtime(self) -> int:
        return max(int(self.result.get(name, {}).get("runtime", 0)) for name in self.operations or _BOTH)

    @property
    def size(self) -> int:
        first = self.result[self.operations[0]]
        return round(first["io_bytes"] / first["total_ios"] / SECTOR) * SECTOR


def jobs_of_document(document: Any, path: Path) -> list[FioJob]:
    """Jobs of fio's JSON, in its order; `DamagedFileError` if it is of another program, or lacks what fio's always has."""
    results = document.get("jobs") if isinstance(document, dict) else None
    if not isinstance(results, list) or "fio version" not in document:
        raise DamagedFileError(f"figures: {path} is JSON, but not of fio (fio --output-format=json)")
    jobs, threads = list[FioJob](), 1
    try:
        names = [(result.get("groupid", number), result.get("jobname", number)) for number, result in enumerate(results, start=1)]
        for place, (result, name) in enumerate(zip(results, names, strict=True), start=1):
            common, own = document.get("global options", {}), result.get("job options", {})
            options = {key: value for key, value in common.items() if key not in own} | own
            copies = max(1, int(options.get("numjobs", 1)) // names.count(name))  # one entry for all copies, or for each
            problem = "" if options else "its rw and iodepth are missing, as in JSON of early fio 2 (take --output-format=normal)"
            shown = {operation: _of_fio_2(result[operation]) for operation in (*_BOTH, "trim") if operation in result}
            jobs.append(FioJob(place, {**result, **shown}, options, range(threads, threads + copies), problem))
            threads += copies
    except (KeyError, TypeError, AttributeError, ValueError) as problem:
        raise DamagedFileError(f"figures: {path}: a job of fio lacks {problem}") from None
    return jobs


def _of_fio_2(shown: Mapping[str, Any]) -> Mapping[str, Any]:
    """Results of an operation in ns and bytes: fio 2 shows latencies in us, and KiB as ``io_bytes``."""
    latencies = {name: shown[name] for name in ("clat", "lat") if name in shown and f"{name}_ns" not in shown}
    if not latencies:
        return shown
    changed = {
        f"{name}_ns": {"percentile": {share: MICROSECONDS * us for share, us in each.get("percentile", {}).items() if us >= LEAST_DIGITS}}
        for name, each in latencies.items()
    }
    in_kib = shown["io_bytes"] * MILLISECONDS_A_SECOND < 32 * shown["bw"] * shown["runtime"]  # bw is in KiB a second in both
    return {**shown, **changed, "io_bytes": shown["io_bytes"] * (KIB if in_kib else 1)}
