"""Why the fetches of a plan take their time on a device: more of them than the bound, and the time of each."""

from collections.abc import Sequence

import numpy as np

from algorithms.page_access.plan import FetchPlan
from flashsim.core.request import READ, Integers, make_requests
from flashsim.core.units import MILLISECONDS
from flashsim.device.device import Device
from flashsim.device.latency_parts import parts_of
from flashsim.device.mechanisms import mechanisms_of
from flashsim.execution.run import PhaseCost
from flashsim.experiments.runs.drives import DriveInUse, disk_of
from flashsim.experiments.why.answers import RunWhy
from flashsim.experiments.why.counterfactuals import Counterfactuals, IdealDrive, Ideals
from flashsim.experiments.why.paths import PhasePath, dies_and_reads

FETCHES = "fetches"


def why_fetch(plan: FetchPlan, bound: int, device: str, page_size: int, *, exact: bool = False) -> RunWhy:
    """Take the fetches of a plan on a device apart: serial reads of a page. The formula has as many fetches as the bound."""
    size = plan.graph.pages * page_size
    requests = make_requests(READ, np.asarray(plan.pages, np.int64) * page_size, page_size, serial=True)

    def drive_with(ideals: Ideals) -> Device:
        drive = IdealDrive(DriveInUse(device), ideals).device(size)
        drive.load(0, size)
        return drive

    def evaluate(ideals: Sequence[Ideals]) -> list[Integers]:
        ends = [drive_with(each).serve(requests, settle=False)["completed"].max(initial=0) for each in ideals]
        return [np.array([end], np.int64) for end in ends]

    drive = drive_with(())
    drive.record_spans()
    completions, path = drive.serve(requests, settle=False), PhasePath()
    record = drive.spans()
    path.add(requests, parts_of(drive, record, requests, completions), dies_and_reads(record, completions))
    cost = PhaseCost(FETCHES, io_time=int(path.parts.sum()), reads=len(requests))
    runs = Counterfactuals(mechanisms_of(drive.preset), np.array([cost.io_time]), evaluate, exact)
    disk = disk_of(drive.preset, page_size)
    each = (disk.seek_ms + disk.latency_ms + disk.page_transfer_ms) * MILLISECONDS
    return RunWhy(device, "", [cost], {FETCHES: path}, runs, [bound * each], [len(requests) * each])
