"""Why transactions on systems of pools take their time: waits and steps add up, and the sentence names the cause."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import flashsim as fs
from flashsim.core.errors import FlashsimError
from flashsim.core.records import empty_table
from flashsim.core.request import READ, WRITE
from flashsim.core.units import SECONDS
from flashsim.execution.pooled.tables import ISSUED
from flashsim.experiments.why.pools import Waits
from flashsim.operations.face.pool import PoolOutcome
from flashsim.pools.devices import DISKS_3_1
from tests.commands import Run


@cache
def system(design: str, workload: str = "zipf:pages=8000,each=20", time: str = "10s") -> PoolOutcome:
    return fs.pool(workload, design=design, memory="8MiB", ssd="24MiB", time=time, clients=16)


@pytest.mark.parametrize("design", ["none", "lc"])
def test_waits_and_steps_add_up(design: str) -> None:
    outcome = system(design)
    why, rate = outcome.why(), outcome.summary()["transactions_s"].iloc[0]
    (phase,) = why.as_dict()["phases"]
    assert sum(phase["parts"].values()) == phase["io"] and min(phase["parts"].values()) >= 0
    steps = dict(why.result.total_steps())
    run = steps.pop("run")
    assert sum(steps.values()) == pytest.approx(run) and run == pytest.approx(16 / rate)
    assert steps["formula"] == pytest.approx(1 / (outcome.against_formula()["formula_throughput"].iloc[0] / 16))
    assert why.result.runs.runs <= 2 * len(why.result.runs.mechanisms) + 2
    assert abs(steps["ideal device against the formula"]) < 0.02 * run
    assert "requests wait for the disks" in why.title and why.plot().figure is not None


def test_the_formula_prices_mechanisms_as_a_pencil_does() -> None:
    """Sixteen clients before eight disks: all of these are busy, so that a round takes twice the service of its reads."""
    outcome = system("none")
    why, (run,) = outcome.why().result, outcome.result.runs
    reads = run.total("disk_reads", run.part) / run.total("transactions", run.part)
    service, transactions = reads * DISKS_3_1.servers / DISKS_3_1.read, run.total("transactions", run.part)
    costs = {name: cost / transactions / SECONDS for name, cost in why.by_formula.items()}
    assert why.counted[0] / transactions / SECONDS == pytest.approx(2 * service, rel=0.01)
    assert costs.pop("disk queue") == pytest.approx(service, rel=0.01) and all(abs(cost) < 0.01 * service for cost in costs.values())


def test_writes_cost_the_disks_their_time() -> None:
    outcome = system("cw", "zipf:pages=8000,each=20,write-share=0.9")
    worth = outcome.why().mechanisms().set_index("mechanism")["alone_s"]["writes of the disks"]
    assert worth > 0.3 * 16 / outcome.summary()["transactions_s"].iloc[0]


def test_an_ssd_that_serves_reads_is_why_a_design_is_faster() -> None:
    difference = fs.why(system("none"), system("lc"))
    assert difference.title.startswith("Over the last 2 s: lc is") and "waiting for the disks" in difference.title
    reads = [float(words.split()[0].strip(",")) for words in difference.title.split("per transaction ")[1].split(" instead of ")[:2]]
    assert reads[0] < reads[1] and "reads of the disks instead of" in difference.title
    assert "lc keeps dirty pages on the SSD until its cleaner writes them" in difference.title
    first, *changes, last = difference.summary()["seconds"].tolist()
    assert first + sum(changes) == pytest.approx(last)


def test_a_small_flash_drive_is_taken_apart_too() -> None:
    load = "zipf:pages=4000,each=20,write-share=0.5"
    outcome = fs.pool(load, design="lc", memory="4MiB", ssd="16MiB", ssd_device="micron-p300/200", time="4s", clients=8)
    names = set(outcome.why().mechanisms()["mechanism"])
    assert {"waiting for the disks", "garbage collection (the SSD)", "waiting for dies (the SSD)"} <= names


def test_what_clients_wait_for_at_once_counts_once() -> None:
    """Reads of one client overlap, and one read lasts beyond the end. Writes and reads of the cleaner do not count."""
    rows = empty_table(5, ISSUED)
    rows.who, rows.device_number = [0, 0, 1, 0, 7], [0, 1, 1, 0, 1]
    rows.time, rows.completed, rows.operation = [0, 10, 90, 20, 5], [40, 60, -1, 70, 50], [READ, READ, READ, WRITE, READ]
    waits = Waits(20, 100, 2, ["disk", "ssd"])
    waits.take(0, rows)
    assert waits.times == {"disk": 20, "ssd": 20 + 10} and waits.reads == {"disk": 0, "ssd": 1}


def test_results_of_several_kinds_are_not_compared() -> None:
    rows = {"r": "do2009:customer@0.01", "s": "do2009:orders@0.01", "on": "c_custkey=o_custkey", "memory": "512KiB"}
    with pytest.raises(FlashsimError, match="one is a join"):
        fs.why(system("none"), fs.join(**rows, device="ocz-core-60gb", algorithm="bnl"))


def test_the_command_prints_and_writes_why(flashsim: Run, tmp_path: Path) -> None:
    out = tmp_path / "pool.json"
    result = flashsim(f"pool run zipf:pages=4000,each=20 --design lc --memory 4MiB --ssd 16MiB --time 4s --clients 8 --why --json {out}")
    assert result.exit_code == 0 and "Why: " in result.output and "ms per transaction" in result.output, result.output
    (run,) = json.loads(out.read_text())["runs"]
    assert run["why"]["sentence"] in " ".join(result.output.split())
    assert np.isclose(sum(run["why"]["phases"][0]["steps"].values()), 2 * run["why"]["phases"][0]["steps"]["run"])


def test_pools_of_other_workloads_and_runs_without_transactions_are_refused() -> None:
    with pytest.raises(FlashsimError, match="differ in more than their designs"):
        fs.why(system("none"), system("none", "zipf:pages=9000,each=20"))
    with pytest.raises(FlashsimError, match="no transaction ended"):
        fs.pool("zipf:pages=8000,each=20", design="none", memory="8MiB", time="1us", clients=16).why()
