"""Runs are made once, several at a time, kept, and resumed; their results do not depend on how many processes made them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from flashsim.apps.papers import base as papers
from flashsim.apps.papers.do2009.runs import Setup
from flashsim.core.errors import FlashsimError
from flashsim.core.source_files import SourceTree, source_tree
from flashsim.experiments.runs import jobs, kept
from flashsim.experiments.runs.jobs import Job, Settings

SCALE = 0.01


def noted(number: int, folder: str, stop_at: int) -> dict[str, Any]:
    """A run that leaves a file each time that it is made, and may be interrupted."""
    path = Path(folder) / f"{number}-{len(os.listdir(folder))}"
    path.touch()
    if number == stop_at and not any(name.startswith(f"{number}-") for name in os.listdir(folder) if name != path.name):
        raise KeyboardInterrupt
    return {"square": number * number}


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FLASHSIM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(
        kept, "identity", lambda what, module: "-".join(map(str, what.values())).translate(str.maketrans('/:"{}, ', "_______"))
    )
    return tmp_path / "cache"


def test_an_interrupted_run_goes_on_and_makes_nothing_twice(own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "noted").mkdir()
    wanted = [Job.of(noted, number=number, folder=str(tmp_path / "noted"), stop_at=3) for number in range(6)]
    monkeypatch.setattr(Job, "make", lambda job: noted(**job.parameters))
    with pytest.raises(KeyboardInterrupt):
        jobs.make(wanted, Settings())
    results = jobs.make(wanted, Settings())
    assert [results[job] for job in wanted] == [{"square": number * number} for number in range(6)]
    made = [name.split("-")[0] for name in os.listdir(tmp_path / "noted")]
    assert sorted(made) == ["0", "1", "2", "3", "3", "4", "5"]  # the interrupted one alone was begun twice
    assert [results.runs[job].recalled for job in wanted] == [True] * 3 + [False] * 3
    again = jobs.make(wanted, Settings())
    assert dict(again) == dict(results) and all(one.recalled for one in again.runs.values())
    jobs.make(wanted[:1], Settings(fresh=True))
    assert len(os.listdir(tmp_path / "noted")) == 8


def test_runs_of_a_group_are_one_task(own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "noted").mkdir()
    tasks: list[list[int]] = []

    def each(function: Any, items: list[list[Job]], *rest: Any) -> Any:
        for item in items:
            tasks.append([job.parameters["number"] for job in item])
            yield item, function(item)

    monkeypatch.setattr(jobs, "each", each)
    monkeypatch.setattr(Job, "make", lambda job: noted(**job.parameters))
    groups = ["a", "", "b", "a", "", "b"]
    wanted = [Job.of(noted, group=group, number=number, folder=str(tmp_path / "noted"), stop_at=9) for number, group in enumerate(groups)]
    results = jobs.make(wanted, Settings())
    assert tasks == [[0, 3], [1], [2, 5], [4]]
    assert [results[job]["square"] for job in wanted] == [0, 1, 4, 9, 16, 25]


def test_what_is_asked_for_twice_is_made_once(own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "noted").mkdir()
    job = Job.of(noted, number=2, folder=str(tmp_path / "noted"), stop_at=9)
    monkeypatch.setattr(Job, "make", lambda job: noted(**job.parameters))
    assert jobs.make([job, job], Settings())[job] == {"square": 4}
    assert len(os.listdir(tmp_path / "noted")) == 1


@pytest.mark.parametrize("damaged", ["[]", "{}", "5", "null", '"text"', '{"result": 1}', '{"result": 1, "seconds": "?"}', "{half", "\xff"])
def test_a_damaged_kept_result_is_made_again(damaged: str, own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "noted").mkdir()
    job = Job.of(noted, number=2, folder=str(tmp_path / "noted"), stop_at=9)
    monkeypatch.setattr(Job, "make", lambda job: noted(**job.parameters))
    for _ in range(2):  # the second time it is kept again
        assert jobs.make([job], Settings())[job] == {"square": 4}
    (file,) = own_cache.rglob("*.json")
    file.write_text(damaged, encoding="latin-1")
    assert jobs.make([job], Settings()).runs[job].recalled is False
    assert jobs.make([job], Settings()).runs[job].recalled is True


def test_kept_results_are_named_after_all_that_they_depend_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLASHSIM_CACHE", str(tmp_path))
    one, other = (kept.identity({"scale": scale}, "flashsim.apps.papers.do2009.runs") for scale in (0.1, 0.2))
    kept.keep({"x": 1}, one)
    assert kept.recall(one) == {"x": 1} and kept.recall(other) is None
    assert kept.identity({"scale": 0.1}, "flashsim.apps.papers.do2009.other_runs") != one
    next(tmp_path.rglob("*.json")).write_text("{half")
    assert kept.recall(one) is None


@pytest.mark.parametrize("run", ["runs:run_join", "other_runs:with_divisions"])
def test_only_what_a_simulation_rests_on_makes_it_again(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = f"flashsim.apps.papers.do2009.{run.partition(':')[0]}"
    before, genuine = kept.sources_digest.__wrapped__(module), source_tree()

    def changed(edited: str) -> bool:
        tree = SourceTree(genuine.sources | {edited: genuine.sources[edited] + b"# changed"})
        monkeypatch.setattr(kept, "source_tree", lambda: tree)
        return kept.sources_digest.__wrapped__(module) != before

    rooms = (
        "flashsim.experiments.presentation",
        "flashsim.experiments.formulas",
        "flashsim.apps.papers.reproduction",
        "flashsim.apps.papers.face",
        "flashsim.operations.command",
        "flashsim.apps.serving",
    )
    assert all(any(name.startswith(room) for name in genuine.sources) for room in rooms), "a room has another name now"
    none = [name for name in genuine.sources if name.startswith(rooms)]
    none += ["models.haas", "models.join_costs.bnl", "models.optimum", "models.ssd_joins", "flashsim.apps.papers.base"]
    assert [name for name in none if changed(name)] == []
    again = [
        "flashsim.experiments.runs.joining",
        "algorithms.joins.bnl",
        "algorithms.sorting.runs",
        "flashsim.ssd.engine.drive",
        "models.allocation.divisions",
    ]
    assert [name for name in again if not changed(name)] == []


#: How buffers are divided is part of the joins.
_DIVISIONS = {name for name in source_tree().sources if name.startswith("models.allocation")}


def test_every_simulation_of_a_paper_rests_on_no_formula() -> None:
    """Any run that drives devices; what only calculates may rest on what it likes."""
    tree = source_tree()
    found = {job.function for paper in map(papers.load, papers.PAPERS.names()) for name in paper.exhibits for job in _jobs(paper, name)}
    closures = [tree.closure([function.partition(":")[0]], members=True) for function in found]
    simulations = [closure for closure in closures if not any(name.startswith("flashsim.experiments.presentation") for name in closure)]
    assert len(simulations) >= 4 and len(closures) - len(simulations) <= 1
    for closure in simulations:
        assert {name for name in closure if name.startswith(("models.", "flashsim.experiments.formulas"))} <= {"models.disk", *_DIVISIONS}


def test_runs_compile_the_engines_that_they_need_and_no_others() -> None:
    compiled = {part.module for part in jobs._parts({"flashsim.apps.papers.do2009.runs"}, ["bast"])}
    assert {"flashsim.hdd.engine.drive", "flashsim.ssd.engine.drive", "flashsim.ssd.ftl.bast"} <= compiled
    assert not any(name.startswith(("flashsim.device", "flashsim.execution")) for name in compiled)
    assert jobs._parts({"flashsim.hdd.state.seek"}, []) == []
    flash = {part.module for part in jobs._parts({"flashsim.apps.papers.li2009.runs"}, ["page"], ["ssd"])}
    assert "flashsim.ssd.engine.drive" in flash and not any(name.startswith("flashsim.hdd") for name in flash)


def test_members_and_the_longest_parts_of_a_pool_are_compiled_before_its_runs() -> None:
    paper = papers.load("do2012")
    assert {part.module for part in paper.parts()} >= {"algorithms.replacement.lru_k", "algorithms.extensions.tac"}
    flash, pool, disk, *others = jobs._parts({"flashsim.pools.setup"}, [])
    assert [part.function for part in (flash, pool, disk)] == ["advance", "act", "advance"]
    assert disk.seconds > max(part.seconds for part in others)


def _jobs(paper: papers.Paper, exhibit: str) -> list[Job]:
    return paper.exhibit(exhibit).jobs([claim.id for claim in paper.claims], Settings(scale=SCALE))


def test_two_processes_give_the_same_results_as_one() -> None:
    wanted = [Setup("bnl", 600).job(Settings(SCALE)), Setup("grace-hash", 500).job(Settings(SCALE))]
    one, two = (jobs.make(wanted, Settings(SCALE, jobs=count, fresh=True)) for count in (1, 2))
    assert dict(one) == dict(two)


def test_a_cluster_gives_the_same_results_as_one_process() -> None:
    distributed = pytest.importorskip("distributed")
    wanted = [Setup("bnl", 600).job(Settings(SCALE)), Setup("grace-hash", 500).job(Settings(SCALE))]
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        there = jobs.make(wanted, Settings(SCALE, fresh=True, cluster=cluster.scheduler_address))
    assert dict(there) == dict(jobs.make(wanted, Settings(SCALE)))


@pytest.mark.parametrize("address, says", [("tcp://127.0.0.1:9", "no Dask scheduler answers"), ("nowhere", "no Dask scheduler answers")])
def test_a_cluster_that_does_not_answer_is_told(address: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(jobs, "_REACHED_WITHIN", 1)
    with pytest.raises(FlashsimError, match=says):
        jobs.make([Setup("bnl", 600).job(Settings(SCALE))], Settings(SCALE, fresh=True, cluster=address))
    assert {client.status for client in distributed.Client._instances} <= {"closed"}  # else it is closed at exit, with a traceback


def test_arguments_that_a_run_does_not_take_or_lacks_are_refused_when_it_is_named() -> None:
    def on(drives: list[str], scale: float = 1.0) -> None: ...

    with pytest.raises(TypeError, match="size"):
        Job.of(noted, number=1, folder="", stop_at=2, size=3)
    with pytest.raises(TypeError, match="drives"):
        Job.of(on, drives=["a"])  # type: ignore[arg-type]  # the name of an argument of the job's own
