"""CPU work of the paper's joins, by kind, counted by the algorithms themselves, without any device.

The counts of the calibration cells at scale 1 are committed beside this module, since counting them takes two minutes;
``python -m flashsim.apps.papers.do2009.cpu_work`` counts them again and prints the file.
"""

import tomllib
from functools import cache
from pathlib import Path

from algorithms.joins.base import JoinParameters, plan
from flashsim.apps.papers.do2009.runs import JOINS, PAGE_SIZE, relations
from flashsim.core.protocols import Label
from flashsim.core.request import Completions, Requests
from flashsim.core.units import MIB
from flashsim.device.block_layer import command_counts
from flashsim.execution.drivers import run
from flashsim.execution.requests import Work
from flashsim.storage.heap_file import heap_file
from flashsim.storage.source.do2009 import SEED
from flashsim.studies.runs.joining import lay_out

#: The calibration columns of table 3: buffer pools in the paper's MB.
CALIBRATION_MEMORY = (200, 500)
FILE = Path(__file__).with_suffix(".toml")
#: What is counted: the user's work, and what the kernel handles, device commands of at most 128 KiB and bytes.
KINDS = (*Work, "commands", "bytes")
#: A join with a buffer pool.
Run = tuple[str, int]
#: Counts by kind, of kinds that a run has.
Counts = dict[str, int]
RUNS: list[Run] = [(join, memory) for join in JOINS for memory in CALIBRATION_MEMORY]


class _Commands:
    """Counts the commands and bytes of requests."""

    commands = bytes = 0

    def record(self, requests: Requests, completions: Completions | None, label: Label, after: int | None = None) -> None:
        self.commands += int(command_counts(requests["length"]).sum())
        self.bytes += int(requests["length"].sum())

    def close(self) -> None: ...


def count(join: str, memory: int, scale: float = 1.0, seed: int = SEED) -> Counts:
    """Run a join without devices and count its work: pages of 8 KiB, whole blocks, buffers as the paper divides them.

    The buffer pool, in the paper's MB, which are MiB, shrinks with the scale; too little is refused.
    """
    r, s = (lay_out(relation, PAGE_SIZE) for relation in relations(scale, seed))
    sink = _Commands()
    parameters = JoinParameters(round(memory * scale * MIB / PAGE_SIZE))
    (cost,) = run(lambda: plan(join, r, s, parameters), [r, s], sink=sink)
    return {**cost.total().work, "commands": sink.commands, "bytes": sink.bytes}


@cache
def committed() -> tuple[dict[Run, Counts], tuple[int, int]]:
    """Counts of each run at scale 1, and the pages of temporary files that would hold all customers, and all orders."""
    document = tomllib.loads(FILE.read_text(encoding="utf-8"))
    rows = {run: zip(KINDS, document["runs"]["{} {}".format(*run)], strict=True) for run in RUNS}
    return {run: {kind: number for kind, number in row if number} for run, row in rows.items()}, tuple(document["temporary_pages"])


def text() -> str:
    """The committed file; temporary files are written full."""
    lines = [
        "# Work of the four joins at scale 1 with the buffer pools of table 3's calibration columns (MB), and the pages of temporary files",
        "# that would hold each relation; printed by python -m flashsim.apps.papers.do2009.cpu_work.",
        f"temporary_pages = {[heap_file(relation, PAGE_SIZE).pages for relation in relations(1.0, SEED)]}",
        "kinds = [{}]\n\n[runs]".format(", ".join(f'"{kind}"' for kind in KINDS)),
    ]
    for join, memory in RUNS:
        counts = count(join, memory)
        lines.append(f'"{join} {memory}" = [{", ".join(f"{counts.get(kind, 0):_}" for kind in KINDS)}]')
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(text(), end="")
