"""Recorded requests on other machines and placements: each costs what it costs to run the join there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from algorithms.joins import base as joins
from flashsim.apps.papers.do2009.runs import JOINS, Setup, lay_out_setup
from flashsim.execution.recording import RequestRecording
from flashsim.experiments.runs import joining
from flashsim.experiments.runs.drives import DriveInUse
from flashsim.experiments.runs.joining import simulate_join

SCALE = 0.002
DRIVES = [DriveInUse("toshiba-5400-320gb", full=True), DriveInUse("ocz-core-60gb", full=True, start=4096, overwrites=5)]


@pytest.mark.parametrize("page_io", [False, True])
@pytest.mark.parametrize("join", JOINS)
def test_a_recorded_join_costs_what_it_costs_to_run_it(join: str, page_io: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    recording, setup = RequestRecording(), Setup(join, 300, page_io=page_io)
    files, setting = lay_out_setup(setup, SCALE, 1)
    first = simulate_join(setting, files, DRIVES, recording=recording)
    assert first.runs[0].result_rows == len(files[1].relation)
    for placement in ("ext3", "packed", "spread", "two-disks"):
        here, drives = replace(setting, placement=placement), DRIVES[::-1]
        run = simulate_join(here, lay_out_setup(setup, SCALE, 1)[0], drives)
        with monkeypatch.context() as patch:
            patch.setattr(joining, "run", None)  # it is not asked to run the join
            again = simulate_join(here, lay_out_setup(setup, SCALE, 1)[0], drives, recording=recording)
        assert [each.as_dict() for each in again.runs] == [each.as_dict() for each in run.runs]
        assert [again.phase_seconds(index) for index in (0, 1)] == [run.phase_seconds(index) for index in (0, 1)]


def test_another_join_or_other_files_are_run_anew() -> None:
    recording, setup = RequestRecording(), Setup("grace-hash", 300)
    files, setting = lay_out_setup(setup, SCALE, 1)
    of: Any = simulate_join(setting, files, DRIVES[:1], recording=recording)
    key = (setting.algorithm, of.parameters, of.allocation)
    assert recording.holds(key, files)
    assert not recording.holds(("bnl", *key[1:]), files)
    assert not recording.holds(key, lay_out_setup(replace(setup, page_size=4096), SCALE, 1)[0])
    assert not recording.holds(key, lay_out_setup(setup, SCALE, 2)[0])


def test_a_join_that_does_not_end_leaves_nothing() -> None:
    recording, setup = RequestRecording(), Setup("bnl", 300)
    files, setting = lay_out_setup(setup, SCALE, 1)
    begun = recording.record(joins.plan("bnl", *files, setting.parameters()), "bnl", files)
    next(begun)
    begun.close()
    assert not recording.holds("bnl", files)
