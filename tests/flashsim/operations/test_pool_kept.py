"""Runs of systems of pools are kept and resumed, the same side by side and one after the other, at any scale, and swept."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flashsim as fs
from flashsim.core import activity
from flashsim.core.errors import InvalidParameterError
from flashsim.core.units import HOURS, MIB, SECONDS
from flashsim.experiments.designs import session
from flashsim.experiments.designs.session import DesignRuns, PoolStudy, execute
from flashsim.experiments.runs.jobs import Settings, leave_messages, worker_messages
from flashsim.pools import PoolOptions
from tests.cases import with_each
from tests.processes import wait_until


@pytest.fixture
def own_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where results are kept, at first none."""
    monkeypatch.setattr("flashsim.experiments.runs.kept.place", lambda kind, name: tmp_path / "kept" / kind / name)
    return tmp_path / "kept"


def small(**changes: Any) -> PoolStudy:
    """Two designs for a short while, or something else."""
    usual: dict[str, Any] = {"workload": "zipf:pages=400,write-share=0.5,each=4", "designs": ["none", "lc"], "memory": 40 * 512}
    switches = PoolOptions(clients=3, read_ahead=1, expansion=2)
    return PoolStudy(**usual | {"ssd": 200 * 512, "time": SECONDS // 4, "page_size": 512, "options": switches} | changes)


def rows(done: DesignRuns) -> list[dict[str, Any]]:
    """All that is told but for the time that it took."""
    return [{name: value for name, value in row.items() if name != "cpu_s"} for row in done.rows()]


def test_a_run_goes_on_where_it_was_interrupted(own_results: Path) -> None:
    def interrupt(done: float, total: float, message: str = "") -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execute(small(), interrupt)
    (first,) = own_results.rglob("*.json")
    written = first.stat().st_mtime_ns
    resumed, fresh = execute(small()), execute(small(), settings=Settings(fresh=True))
    assert (resumed.recalled, fresh.recalled) == (1, 0) and rows(resumed) == rows(fresh)
    assert execute(small(last=0.5)).recalled == 2  # which is told of the same runs
    assert execute(small(designs=["none", "dw", "lc"])).recalled == 2
    assert execute(small(seed=1)).recalled == 0 and rows(execute(small(seed=1))) != rows(resumed)
    assert written <= first.stat().st_mtime_ns


def test_a_design_of_ones_own_runs_again_once_it_has_changed(own_results: Path, here: Path) -> None:
    source = (Path(session.DESIGNS.load("dw").__file__)).read_text()  # type: ignore[attr-defined]
    Path("mine.py").write_text(source)
    mine = small(designs=["mine.py"])
    assert [execute(mine).recalled for _ in range(2)] == [0, 1]
    Path("mine.py").write_text(source + "# changed\n")
    assert execute(mine).recalled == 0


def test_designs_side_by_side_do_the_same(own_results: Path) -> None:
    told: list[str] = []
    beside = execute(small(), lambda done, total, message="": told.append(message), Settings(jobs=2))
    assert rows(beside) == rows(execute(small(), settings=Settings(fresh=True))) and beside.recalled == 0
    assert {"none", "lc"} <= set(told)


def test_what_workers_say_is_heard_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flashsim.experiments.runs.jobs._OFTEN", 0.01)
    monkeypatch.setattr(activity, "_workers", None)
    monkeypatch.setattr(activity, "_take_share", float)
    said: list[tuple[str, float]] = []
    with worker_messages(lambda message, share: said.append((message, share))) as folder:
        leave_messages(folder)
        with activity.activity("running lc") as progress:

            def is_heard() -> bool:
                activity.report_share(0.25)
                progress(1, 2, "fast")
                return ("running lc 50% fast", 0.25) in said

            assert wait_until(is_heard)
        assert not list(Path(folder).iterdir())
    assert not Path(folder).exists()


def test_sizes_and_times_are_scaled_alike(own_results: Path) -> None:
    """And told in full; rates hardly change."""
    switches = PoolOptions(clients=4, read_ahead=1, expansion=1, checkpoint=2 * SECONDS)
    whole = small(
        workload="uniform:pages=8000,write-share=0.2,each=4", memory=800 * 512, ssd=3000 * 512, time=20 * SECONDS, options=switches
    )
    runs = [execute(replace(whole, scale=scale)) for scale in (1.0, 0.25)]
    full, part = (each.runs[1].system for each in runs)
    assert (part.pages, part.memory, part.ssd) == (full.pages // 4, full.memory // 4, full.ssd // 4)
    assert (part.interval, part.checkpoint, part.clients) == (full.interval // 4, full.checkpoint // 4, full.clients)
    for one, other in zip(runs[0].runs, runs[1].runs, strict=True):
        assert one.series()["seconds"] == pytest.approx(other.series()["seconds"])
        assert other.series()["hours"][-1] == pytest.approx(20 * SECONDS / HOURS)
        assert other.row()["transactions_s"] == pytest.approx(one.row()["transactions_s"], rel=0.1)
        assert other.row()["told_over_s"] == pytest.approx(4)
    assert "at scale 0.25" in runs[1].title() and "20 s" in runs[1].title()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A trace of pages that some requests write."""
    path = tmp_path_factory.mktemp("traces") / "pages.csv"
    drawn = np.random.default_rng(1).zipf(1.3, 4000) % 600
    path.write_text("page,write\n" + "".join(f"{page},{int(page % 3 == 0)}\n" for page in drawn))
    return str(path)


@pytest.mark.parametrize(
    "workload",
    ["tpc-c:warehouses=1", "tpc-e:database=20MiB", "tpc-h:scale=0.01", "zipf:pages=3000,write-share=0.3", "recorded"]
    + [f"ycsb:records=20000,workload={letter}" for letter in "abcdef"],
)  # fmt: skip
def test_every_workload_runs_with_every_design(workload: str, recorded: str, own_results: Path) -> None:
    asked = PoolStudy(
        workload=recorded if workload == "recorded" else workload,
        designs=session.DESIGNS.names(),
        memory=2 * MIB,
        ssd=4 * MIB,
        time=SECONDS // 5,
        options=PoolOptions(clients=4, partitions=4),
    )
    done = execute(asked)
    assert len(done.runs) == 10
    for each, row in zip(done.runs, done.rows(), strict=True):
        missed = row["references"] - row["hits"] - row["created"]
        assert row["references"] > 0 and (missed >= row["ssd_reads"] + row["disk_reads"] or "tpc-h" in workload)  # scans read several
        told = each.kinds()
        assert sum(kind["transactions"] for kind in told) == (row["transactions"] if told else 0) and bool(told) == ("tpc" in workload)
        assert all(kind["transactions_s"] * 60 == pytest.approx(row["metric_value"]) for kind in told if kind["kind"] == "new-order")
        assert 0 <= row["dirty_share"] <= row["used_share"] <= 1 and (row["ssd_reads"] == 0 or each.system.ssd)
    again = execute(replace(asked, designs=["lc"]), settings=Settings(fresh=True))
    assert rows(again)[0] == next(row for row in rows(done) if row["design"] == "lc")


def test_a_sweep_over_designs_and_sizes_is_kept(own_results: Path) -> None:
    told = {"workload": "zipf:pages=2000,write-share=0.3", "ssd": "8MiB", "time": "0.1s", "clients": 4, "jobs": 1}
    first = fs.sweep(fs.pool, **told, design=["none", "lc"], memory=["4MiB", "100KiB"], dirty_limit=["10%", "90%"])
    assert "8 runs" in first.title and "0 of them kept" in first.title and "4 were refused" in first.title
    second = fs.sweep(fs.pool, **told, design=["none", "lc", "dw"], memory=["4MiB"], dirty_limit=["10%", "90%"])
    assert "4 of them kept" in second.title
    alone = fs.pool(**told, design="lc", memory="4MiB", dirty_limit="90%")
    assert alone.result.recalled == 1  # the sweep made it
    swept = second.summary()
    chosen = swept[(swept.design == "lc") & (swept.dirty_limit == "90%")]
    assert chosen.transactions_s.tolist() == alone.summary().transactions_s.tolist()
    assert len(second.series()) == 600


def test_a_sweep_runs_on_a_cluster(own_results: Path) -> None:
    distributed = pytest.importorskip("distributed")
    told = {"workload": "zipf:pages=2000", "ssd": "8MiB", "memory": "4MiB", "time": "0.1s", "clients": 4, "design": ["none", "lc"]}
    with distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster:
        there = fs.sweep(fs.pool, **told, cluster=cluster.scheduler_address)
    here = fs.sweep(fs.pool, **told, jobs=1)
    assert "0 of them kept" in there.title and "2 of them kept" in here.title and len(there) == 2


@with_each("scale", [0, -1, 1.1, float("nan")])
def test_scales_out_of_bounds_are_refused(scale: float) -> None:
    with pytest.raises(InvalidParameterError, match="scale"):
        fs.pool("zipf:pages=2000", memory="4MiB", design="none", scale=scale)
